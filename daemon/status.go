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

func showStatus(ctx context.Context, w, notes io.Writer, o statusOptions, args []string) error {
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
		return o.follow(ctx, w, notes, v)
	}
	if err := o.print(w, v); err != nil {
		return err
	}
	if o.output == "table" && o.server == nil && o.region == "" && o.account == "" {
		o.printUnseen(ctx, w, notes, c)
	}
	if waiting := unconverged(serversOf(v)...); o.exitCode && len(waiting) > 0 {
		return &notConverged{"not converged: " + strings.Join(waiting, ", ")}
	}
	return nil
}

// printUnseen says below the fleet which endpoints and clusters cannot be read: no row says
// it of those without a server. What nobody has tried to read yet is no trouble.
func (o statusOptions) printUnseen(ctx context.Context, w, notes io.Writer, c *api.Client) {
	orphans, err := c.Orphans(ctx)
	if err != nil { // the table is what was asked for
		if fleet.CodeOf(err) != fleet.CodeForbidden { // a token of some accounts is not told
			fmt.Fprintf(notes, "whether every endpoint and cluster can be read is not known: %v\n", err)
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

// serversOf returns the servers of what was read.
func serversOf(v any) []fleet.ServerView {
	if story, ok := v.(serverStory); ok {
		return []fleet.ServerView{story.ServerView}
	}
	list, _ := v.([]fleet.ServerView)
	return list
}

// unconverged says of the servers that have not converged how they are.
func unconverged(list ...fleet.ServerView) (waiting []string) {
	for _, s := range list {
		if s.Verdict != fleet.VerdictConverged {
			waiting = append(waiting, fmt.Sprintf("%s/%s is %s", s.Account, s.Region, verdictText(s)))
		}
	}
	return waiting
}

// verdictText is a server's verdict with its reason.
func verdictText(s fleet.ServerView) string {
	if s.Reason == "" {
		return string(s.Verdict)
	}
	return fmt.Sprintf("%s (%s)", s.Verdict, s.Reason)
}

// timeless is what was read without what changes at every tick.
func timeless(v any) any {
	servers := append([]fleet.ServerView{}, serversOf(v)...)
	for i := range servers {
		servers[i].LastObservedAt, servers[i].FailedReads = nil, min(servers[i].FailedReads, 1)
	}
	if story, ok := v.(serverStory); ok {
		return serverStory{ServerView: servers[0], Events: story.Events}
	}
	return servers
}

func (o statusOptions) print(w io.Writer, v any) error {
	return show(w, o.output, v, func(w io.Writer, v any) {
		switch v := v.(type) {
		case []fleet.ServerView:
			printServers(w, v)
		case serverStory:
			printServer(w, v)
		}
	})
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
	list, _ := c.ListServers(ctx, api.ServerFilter{})
	for _, s := range list {
		names = append(names, s.Account+"/"+s.Region)
	}
	return fmt.Errorf("%w; %s`kurad status` shows those there are", err, didYouMean(key.String(), names))
}

// observed asks for a fresh observation of every server, a few at a time. One that went
// meanwhile is left out.
func observed(ctx context.Context, c *api.Client, list []fleet.ServerView) ([]fleet.ServerView, error) {
	fresh := make([]fleet.ServerView, len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, s := range list {
		g.Go(func() (err error) {
			fresh[i], err = c.GetServer(ctx, fleet.ServerKey{Account: s.Account, Region: s.Region}, api.GetOptions{ObserveNow: true})
			if fleet.CodeOf(err) == fleet.CodeNotFound {
				return nil
			}
			return err
		})
	}
	err := g.Wait()
	return slices.DeleteFunc(fresh, func(s fleet.ServerView) bool { return s.Account == "" }), err
}
