package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func waitCommand() *cobra.Command {
	var (
		t       target
		timeout time.Duration
	)
	c := &cobra.Command{
		Use:   "wait account/region...",
		Short: "Wait until servers have converged",
		Long: "Wait until servers run what is declared and answer. It ends with 0 then; with 6 once one of them has\n" +
			"failed or stalled, or when the time is over; see `kurad help exit-codes`.",
		Example: "  kurad wait acme/eu --timeout 15m",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return usagef("--timeout %s is no length of time: give one such as 15m", timeout)
			}
			var keys []fleet.ServerKey
			for _, arg := range args {
				key, err := fleet.ParseServerKey(arg)
				if err != nil {
					return err
				}
				keys = append(keys, key)
			}
			c, err := t.client()
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(cmd.Context(), timeout, errWaited)
			defer cancel()
			group, ctx := errgroup.WithContext(ctx)
			for _, key := range keys {
				group.Go(func() error { return await(ctx, c, key, timeout, cmd.OutOrStdout()) })
			}
			return group.Wait()
		},
	}
	t.flags(c)
	c.Flags().DurationVar(&timeout, "timeout", 15*time.Minute, "how long to wait at most")
	return c
}

var errWaited = errors.New("the time is over")

// await waits for one server, and says what becomes of it meanwhile.
func await(ctx context.Context, c *api.Client, key fleet.ServerKey, timeout time.Duration, out io.Writer) error {
	cursor, said := "", ""
	for {
		change, err := c.WaitServer(ctx, key, cursor, api.MaxWait)
		switch {
		case errors.Is(context.Cause(ctx), errWaited):
			return &notConverged{fmt.Sprintf("server %s has not converged after %s: it is %s", key, timeout, cmp.Or(said, "not known how it is"))}
		case err != nil && cursor != "" && ctx.Err() == nil && transient(err):
			kv.Pause(ctx, time.Second) // it answered before: it starts again
			continue
		case err != nil:
			return err
		case change.Server == nil:
			_, err := c.GetServer(ctx, key, api.GetOptions{})
			return unknownServer(ctx, c, key, cmp.Or(err, error(fleet.Errorf(fleet.CodeNotFound, "server %s does not exist", key))))
		}
		s := *change.Server
		cursor = change.Cursor
		state := verdictText(s)
		if s.Message != "" {
			state += ": " + s.Message
		}
		if state != said {
			fmt.Fprintf(out, "%s is %s\n", key, state)
			said = state
		}
		switch s.Verdict {
		case fleet.VerdictConverged:
			return nil
		case fleet.VerdictFailed, fleet.VerdictStalled, fleet.VerdictDestroying:
			return &notConverged{fmt.Sprintf("server %s is %s; `kurad status %s` tells more", key, state, key)}
		case fleet.VerdictUnobserved, fleet.VerdictAbsent, fleet.VerdictDrifted, fleet.VerdictHeld, fleet.VerdictProgressing:
		}
	}
}
