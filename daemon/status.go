package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// statusOptions are the flags of status.
type statusOptions struct {
	target
	region, account string
	watch, fresh    bool
	output          string
}

func statusCommand() *cobra.Command {
	var o statusOptions
	c := &cobra.Command{
		Use:   "status [account/region]",
		Short: "Show what is wanted and what runs",
		Example: "  kurad status\n" +
			"  kurad status acme/eu --fresh\n" +
			"  kurad status --region eu --watch",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showStatus(cmd.Context(), cmd.OutOrStdout(), o, args)
		},
	}
	o.flags(c)
	f := c.Flags()
	f.StringVar(&o.region, "region", "", "only servers of this region")
	f.StringVar(&o.account, "account", "", "only servers of this account")
	f.BoolVarP(&o.watch, "watch", "w", false, "show every change until interrupted")
	f.BoolVar(&o.fresh, "fresh", false, "read the runtime and probe the endpoint first (10 s at most)")
	f.StringVarP(&o.output, "output", "o", "table", "table or json")
	return c
}

// refresh is how often --watch asks again.
const refresh = 2 * time.Second

func showStatus(ctx context.Context, w io.Writer, o statusOptions, args []string) error {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("--output %q is neither table nor json", o.output)
	}
	var key fleet.ServerKey
	if len(args) == 1 {
		var err error
		if key, err = fleet.ParseServerKey(args[0]); err != nil {
			return err
		}
		if o.region != "" || o.account != "" {
			return fmt.Errorf("%s names one server: leave --region and --account out", key)
		}
	}
	c, err := o.client()
	if err != nil {
		return err
	}
	if len(args) == 1 {
		return o.follow(ctx, w, func(fresh bool) (any, error) { return readServer(ctx, c, key, fresh) })
	}
	return o.follow(ctx, w, func(fresh bool) (any, error) {
		list, err := c.ListServers(ctx, api.ServerFilter{Account: o.account, Region: o.region})
		if err == nil && fresh {
			list, err = observed(ctx, c, list)
		}
		return list, err
	})
}

// follow prints what read returns: once, or with --watch again and again. A terminal is
// redrawn, so that its ages go on; elsewhere only what changed is printed again.
func (o statusOptions) follow(ctx context.Context, w io.Writer, read func(fresh bool) (any, error)) error {
	last := ""
	again := time.NewTicker(refresh)
	defer again.Stop()
	for fresh := o.fresh; ; fresh = false {
		v, err := read(fresh)
		if o.watch && ctx.Err() != nil {
			return nil // interrupted, as it is meant to be
		}
		if err != nil {
			return err
		}
		state, err := json.Marshal(timeless(v))
		if err != nil {
			return err
		}
		if isTerminal(w) || last != string(state) {
			if o.watch && isTerminal(w) {
				fmt.Fprint(w, "\x1b[H\x1b[2J")
			}
			if err := o.print(w, v); err != nil {
				return err
			}
		}
		last = string(state)
		if !o.watch {
			return nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// timeless is what was read without what changes at every tick.
func timeless(v any) any {
	still := func(s fleet.ServerView) fleet.ServerView {
		s.LastObservedAt, s.FailedReads = nil, min(s.FailedReads, 1)
		return s
	}
	switch v := v.(type) {
	case []fleet.ServerView:
		list := make([]fleet.ServerView, len(v))
		for i := range v {
			list[i] = still(v[i])
		}
		return list
	case serverStory:
		v.ServerView = still(v.ServerView)
		return v
	default:
		return v
	}
}

func (o statusOptions) print(w io.Writer, v any) error {
	if o.output == "json" {
		return printJSON(w, v)
	}
	switch v := v.(type) {
	case []fleet.ServerView:
		printServers(w, v)
	case serverStory:
		printServer(w, v)
	}
	return nil
}

// serverStory is one server with what happened to it last, the newest last.
type serverStory struct {
	fleet.ServerView
	Events []fleet.Event `json:"events"`
}

func readServer(ctx context.Context, c *api.Client, key fleet.ServerKey, fresh bool) (serverStory, error) {
	s, err := c.GetServer(ctx, key, api.GetOptions{ObserveNow: fresh})
	if fleet.CodeOf(err) == fleet.CodeNotFound {
		return serverStory{}, fmt.Errorf("%w; `kurad status` shows those there are", err)
	}
	if err != nil {
		return serverStory{}, err
	}
	events, err := c.Events(ctx, api.EventFilter{Account: key.Account, Region: key.Region, Limit: 8})
	slices.Reverse(events)
	return serverStory{ServerView: s, Events: events}, err
}

// observed asks for a fresh observation of every server, a few at a time.
func observed(ctx context.Context, c *api.Client, list []fleet.ServerView) ([]fleet.ServerView, error) {
	fresh := make([]fleet.ServerView, len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, s := range list {
		g.Go(func() (err error) {
			fresh[i], err = c.GetServer(ctx, fleet.ServerKey{Account: s.Account, Region: s.Region}, api.GetOptions{ObserveNow: true})
			return err
		})
	}
	return fresh, g.Wait()
}
