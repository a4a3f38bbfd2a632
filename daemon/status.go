package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

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
	exitCode        bool
	output          string
	server          *fleet.ServerKey // the one to show; nil: all that region and account choose
}

func statusCommand() *cobra.Command {
	var o statusOptions
	c := &cobra.Command{
		Use:   "status [account/region]",
		Short: "Show what is wanted and what runs",
		Example: "  kurad status\n" +
			"  kurad status acme/eu --fresh\n" +
			"  kurad status --region eu --watch\n" +
			"  kurad status --account acme --exit-code",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showStatus(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o, args)
		},
	}
	o.flags(c)
	f := c.Flags()
	f.StringVar(&o.region, "region", "", "only servers of this region")
	f.StringVar(&o.account, "account", "", "only servers of this account")
	f.BoolVarP(&o.watch, "watch", "w", false, "show every change until interrupted")
	f.BoolVar(&o.fresh, "fresh", false, "read the runtime and probe the endpoint first (10 s at most)")
	f.BoolVar(&o.exitCode, "exit-code", false, "end with 6 unless everything that is shown has converged")
	outputFlag(c, &o.output)
	return c
}

func showStatus(ctx context.Context, w, said io.Writer, o statusOptions, args []string) error {
	if o.watch && o.exitCode {
		return usagef("--watch goes on until interrupted: leave --exit-code out, or use `kurad wait`")
	}
	if len(args) == 1 {
		key, err := fleet.ParseServerKey(args[0])
		if err != nil {
			return err
		}
		if o.region != "" || o.account != "" {
			return usagef("%s names one server: leave --region and --account out", key)
		}
		o.server = &key
	}
	c, err := o.client()
	if err != nil {
		return err
	}
	v, err := o.read(ctx, c, o.fresh)
	if err != nil {
		return err
	}
	if o.watch {
		return o.follow(ctx, w, said, v)
	}
	if err := o.print(w, v); err != nil {
		return err
	}
	if o.output == "table" && o.server == nil && o.region == "" && o.account == "" {
		o.printUnseen(ctx, w, said, c)
	}
	if !o.exitCode {
		return nil
	}
	return o.converged(v)
}

// printUnseen says below the fleet which endpoints and clusters cannot be read: no row says
// it of those without a server. What nobody has tried to read yet is no trouble.
func (o statusOptions) printUnseen(ctx context.Context, w, said io.Writer, c *api.Client) {
	orphans, err := c.Orphans(ctx)
	if err != nil { // the table is what was asked for
		if fleet.CodeOf(err) != fleet.CodeForbidden { // a token of some accounts is not told
			fmt.Fprintf(said, "whether every endpoint and cluster can be read is not known: %v\n", err)
		}
		return
	}
	printUnreadable(w, slices.DeleteFunc(orphans.Unreadable, func(u api.UnreadableEndpoint) bool { return u.Reason == fleet.ReasonNotObservedYet }))
}

// read reads what is to be shown: a list of servers, or one with its story.
func (o statusOptions) read(ctx context.Context, c *api.Client, fresh bool) (any, error) {
	if o.server != nil {
		return readServer(ctx, c, *o.server, fresh)
	}
	list, err := c.ListServers(ctx, api.ServerFilter{Account: o.account, Region: o.region})
	if err == nil && fresh {
		list, err = observed(ctx, c, list)
	}
	return list, err
}

// converged is what --exit-code asks.
func (o statusOptions) converged(v any) error {
	var waiting []string
	look := func(s fleet.ServerView) {
		if s.Verdict != fleet.VerdictConverged {
			waiting = append(waiting, fmt.Sprintf("%s/%s is %s", s.Account, s.Region, saidOf(s)))
		}
	}
	switch v := v.(type) {
	case []fleet.ServerView:
		for _, s := range v {
			look(s)
		}
	case serverStory:
		look(v.ServerView)
	}
	if len(waiting) > 0 {
		return &notConverged{"not converged: " + strings.Join(waiting, ", ")}
	}
	return nil
}

// saidOf is a server's verdict with its reason.
func saidOf(s fleet.ServerView) string {
	if s.Reason == "" {
		return string(s.Verdict)
	}
	return fmt.Sprintf("%s (%s)", s.Verdict, s.Reason)
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
		return serverStory{}, unknownServer(ctx, c, key, err)
	}
	if err != nil {
		return serverStory{}, err
	}
	events, err := c.Events(ctx, api.EventFilter{Account: key.Account, Region: key.Region, Limit: 8})
	slices.Reverse(events)
	return serverStory{ServerView: s, Events: events}, err
}

// unknownServer names the servers that were probably meant.
func unknownServer(ctx context.Context, c *api.Client, key fleet.ServerKey, err error) error {
	var names []string
	list, failed := c.ListServers(ctx, api.ServerFilter{})
	if failed == nil {
		for _, s := range list {
			names = append(names, s.Account+"/"+s.Region)
		}
	}
	if like := nearest(key.String(), names); len(like) > 0 {
		return fmt.Errorf("%w; did you mean %s? `kurad status` shows those there are", err, strings.Join(like, " or "))
	}
	return fmt.Errorf("%w; `kurad status` shows those there are", err)
}

// observed asks for a fresh observation of every server, a few at a time. One that went
// meanwhile is left out.
func observed(ctx context.Context, c *api.Client, list []fleet.ServerView) ([]fleet.ServerView, error) {
	fresh, gone := make([]fleet.ServerView, len(list)), make([]bool, len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, s := range list {
		g.Go(func() (err error) {
			fresh[i], err = c.GetServer(ctx, fleet.ServerKey{Account: s.Account, Region: s.Region}, api.GetOptions{ObserveNow: true})
			if gone[i] = fleet.CodeOf(err) == fleet.CodeNotFound; gone[i] {
				return nil
			}
			return err
		})
	}
	err := g.Wait()
	left := fresh[:0]
	for i, s := range fresh {
		if !gone[i] {
			left = append(left, s)
		}
	}
	return left, err
}
