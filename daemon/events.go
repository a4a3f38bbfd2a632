package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func eventsCommand() *cobra.Command {
	var (
		t      target
		limit  int
		output string
		follow bool
	)
	c := &cobra.Command{
		Use:   "events [account/region]",
		Short: "Show what happened, the newest last",
		Long: "Show what happened, the newest last. With --follow it goes on with every new event, once and in order,\n" +
			"until it is interrupted; it outlives a restart of the daemon. As json, each event is then a line.",
		Example: "  kurad events\n  kurad events acme/eu --follow\n  kurad events -f -o json | jq 'select(.type == \"Warning\")'",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 || limit > api.MaxPage {
				return usagef("--limit %d is not between 1 and %d", limit, api.MaxPage)
			}
			filter := api.EventFilter{Limit: limit}
			if len(args) == 1 {
				key, err := fleet.ParseServerKey(args[0])
				if err != nil {
					return err
				}
				filter.Account, filter.Region = key.Account, key.Region
			}
			if follow {
				f := follower{target: &t, filter: filter, out: cmd.OutOrStdout(), notes: cmd.ErrOrStderr(), json: output == "json"}
				return f.run(cmd.Context())
			}
			c, err := t.client()
			if err != nil {
				return err
			}
			events, err := c.Events(cmd.Context(), filter)
			if err != nil {
				return err
			}
			slices.Reverse(events) // the API's are the newest first
			return show(cmd.OutOrStdout(), output, events, printEvents)
		},
	}
	t.flags(c)
	c.Flags().IntVar(&limit, "limit", 50, "how many at most, the newest ones; with --follow, to begin with")
	outputFlag(c, &output)
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with every new event until interrupted")
	return c
}

// follower prints every event once, in order, as it happens.
type follower struct {
	target     *target
	filter     api.EventFilter
	out, notes io.Writer
	json       bool

	last []fleet.Event // printed last, so that a full answer repeats none
}

func (f *follower) run(ctx context.Context) error {
	cursor, lost := "", false
	for changes, err := range keepAsking(ctx, f.target, func(c *api.Client) (api.EventChanges, error) {
		return c.WaitEvents(ctx, f.filter, cursor, 30*time.Second)
	}) {
		switch {
		case err != nil && (cursor == "" || !transient(err)):
			return err
		case err != nil:
			if !lost {
				fmt.Fprintf(f.notes, "kurad: %v; trying again until it answers\n", err)
			}
			lost = true
			continue
		case lost:
			fmt.Fprintln(f.notes, "kurad: it answers again")
			lost = false
		}
		if changes.Full && cursor != "" {
			fmt.Fprintln(f.notes, "kurad: this is another store, or too much happened meanwhile: what is kept follows, some may be missing")
		}
		for _, e := range changes.Items {
			if err := f.print(e, changes.Full); err != nil {
				return err
			}
		}
		cursor, f.filter.Limit = changes.Cursor, api.MaxPage
	}
	return nil // interrupted, as it is meant to be
}

func (f *follower) print(e fleet.Event, again bool) error {
	e.At = e.At.UTC()
	if again && slices.Contains(f.last, e) {
		return nil
	}
	if f.last = append(f.last, e); len(f.last) > 2*api.MaxPage {
		f.last = slices.Clone(f.last[api.MaxPage:])
	}
	if f.json {
		return json.NewEncoder(f.out).Encode(e)
	}
	_, err := fmt.Fprintf(f.out, "%s  %-20s  %-7s  %-18s  %s\n", e.At.Local().Format(time.DateTime), e.Account+"/"+e.Region, e.Type, e.Reason, strings.ReplaceAll(e.Message, "\n", " "))
	return err
}

// transient reports whether an error may pass by itself: whoever follows tries again.
func transient(err error) bool {
	switch exitCode(err) {
	case exitNoAnswer, exitError:
		return true
	default:
		return false
	}
}
