package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// target is what an apply waits for: this write of the server's declaration, and the
// deployment that came with it.
type target struct {
	key        fleet.ServerKey
	generation int64
	deployment int64
}

func targetOf(v fleet.ServerView) target {
	t := target{key: v.Key(), generation: v.Generation}
	if v.Deployment != nil {
		t.deployment = v.Deployment.Seq
	}
	return t
}

// ending is how a wait ended.
type ending int

const (
	endWaiting    ending = iota // not yet
	endSettled                  // it runs as declared and answers
	endRefused                  // the runtime refused it
	endStalled                  // past the region's stall_after
	endSuperseded               // somebody else declared another version meanwhile
	endPaused                   // nothing happens until somebody resumes it
	endLeaving                  // somebody else destroys it
	endGone                     // it does not exist any more
	endDeadline                 // the timeout passed
	endStopped                  // Ctrl-C
	endError                    // the daemon refuses to tell, as after a token was revoked
)

// judge says what a view of the server means for who waits for t. A verdict is of the
// view's own generation: until a turn has seen that, the daemon says progressing.
func (t target) judge(v *fleet.ServerView) ending {
	switch {
	case v == nil:
		return endGone
	case v.Intent.Deleting != nil:
		return endLeaving
	case v.Generation < t.generation, v.Deployment == nil, v.Deployment.Seq < t.deployment:
		return endWaiting // from before our write
	case v.Deployment.Seq > t.deployment:
		return endSuperseded
	}
	switch v.Verdict {
	case fleet.VerdictConverged:
		return endSettled
	case fleet.VerdictFailed, fleet.VerdictStalled:
		if v.Verdict == fleet.VerdictStalled || v.Reason == fleet.ReasonStalled {
			return endStalled
		}
		return endRefused
	case fleet.VerdictHeld:
		for _, h := range v.Holds {
			if h.Kind == fleet.HoldPaused {
				return endPaused
			}
		}
	case fleet.VerdictProgressing, fleet.VerdictUnobserved, fleet.VerdictAbsent, fleet.VerdictDrifted, fleet.VerdictDestroying:
	}
	return endWaiting
}

// await follows the server until t has an ending. The view is the last one seen.
func (s *session) await(ctx context.Context, t target, seen fleet.ServerView) (ending, fleet.ServerView, error) {
	end := endWaiting
	err := s.watches.follow(ctx, t.key, func(v *fleet.ServerView) bool {
		if v != nil {
			seen = *v
		}
		end = t.judge(v)
		return end != endWaiting
	})
	switch {
	case err == nil:
		return end, seen, nil
	case errors.Is(err, context.DeadlineExceeded):
		return endDeadline, seen, nil
	case stopped(ctx):
		return endStopped, seen, nil
	}
	return endError, seen, err
}

// unsettled adds the warning of a wait that ended without a verdict on the version. err
// is why the daemon refused to tell, where that is the ending.
func (s *session) unsettled(diags *diag.Diagnostics, what string, end ending, v fleet.ServerView, err error) {
	standing := fmt.Sprintf("It is %s now (%s).", v.Verdict, v.Reason)
	if v.Message != "" {
		standing += " " + sentence(v.Message)
	}
	switch end {
	case endDeadline:
		diags.AddWarning(what+": not ready yet", "The timeout passed while kurad was at work, and kurad goes on. "+standing+" `kurad status "+v.Account+"/"+v.Region+" --watch` shows it; a longer `timeouts` waits for it.")
	case endStopped:
		diags.AddWarning(what+": the wait was interrupted", "What was declared is stored, and kurad goes on. "+standing)
	case endPaused:
		diags.AddWarning(what+": it is paused", "What was declared is stored and happens when the pause ends; the apply did not wait for that. "+standing)
	case endSuperseded:
		diags.AddWarning(what+": somebody else declared another version meanwhile", fmt.Sprintf("The latest declared version is %s. The next plan shows it as a change.", v.Intent.ImageTag))
	case endStalled:
		diags.AddWarning(what+": it does not get ready", why(v)+" "+standing+" kurad goes on trying; the next plan shows whether it got there.")
	case endError:
		step := nextStep(fleet.CodeOf(err))
		diags.AddWarning(what+": nobody knows whether it gets ready", strings.TrimSpace("What was declared is stored, and kurad goes on; the apply could not watch it. "+sentence(err.Error())+" "+step))
	case endWaiting, endSettled, endRefused, endLeaving, endGone:
	}
}

// eventsTold is how many events an error tells.
const eventsTold = 5

// lastEvents tells what happened last, the newest last; "" where it cannot be asked.
func lastEvents(ctx context.Context, client *api.Client, key fleet.ServerKey) string {
	events, err := client.Events(ctx, api.EventFilter{Account: key.Account, Region: key.Region, Limit: eventsTold})
	if err != nil || len(events) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("\n\nLast events:")
	for i := len(events) - 1; i >= 0; i-- {
		e := events[i]
		fmt.Fprintf(&b, "\n  %s  %s: %s", e.At.UTC().Format("15:04:05"), e.Reason, e.Message)
	}
	return b.String()
}
