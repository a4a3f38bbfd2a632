package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// declaredKey is where private state keeps the version that this resource last wrote:
// one that differs from the daemon's was written by somebody else.
const declaredKey = "image_tag"

func keepDeclared(ctx context.Context, private privateWriter, imageTag string) diag.Diagnostics {
	return private.SetKey(ctx, declaredKey, []byte(fmt.Sprintf("%q", imageTag)))
}

// declared returns the version that this resource last wrote; "" after an import.
func declared(ctx context.Context, private privateReader) string {
	b, _ := private.GetKey(ctx, declaredKey)
	return strings.Trim(string(b), `"`)
}

// setServing puts the version that serves into state, together with the error that
// says why it is not the declared one: the next plan then tells the truth.
func (r *serverResource) setServing(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse, v fleet.ServerView, plan serverModel) diag.Diagnostics {
	m := flattenServer(v, plan).asPlanned(plan)
	m.ImageTag = serving(v)
	m.PendingImageTag = pending(v, m.ImageTag)
	return setState(ctx, &resp.State, req.Plan.Raw, m)
}

// healed reports whether the declared version serves by itself, though the plan saw that it
// does not (P9): a redeploy would only stop what is healthy. Of a declaration that changed
// no turn has judged anything yet, and what counts is how the server was before.
func healed(w api.Written[fleet.ServerView]) bool {
	v := w.Object
	if v.ServingImageTag != v.Intent.ImageTag {
		return false
	}
	if !w.Changed {
		return v.Verdict == fleet.VerdictConverged
	}
	return v.ObservedImageTag == v.Intent.ImageTag && slices.ContainsFunc(v.Conditions, func(c fleet.Condition) bool {
		return c.Type == fleet.ConditionReady && c.Status == fleet.True
	})
}

// attempting reports whether kurad tries a version that had failed just now again, or has
// made it and only waits for its answer: a region that changed in the same apply makes it try
// at once, and a redeploy on top of that would restart what has just healed.
func attempting(v fleet.ServerView) bool {
	is := func(t fleet.ConditionType) bool {
		return slices.ContainsFunc(v.Conditions, func(c fleet.Condition) bool { return c.Type == t && c.Status == fleet.True })
	}
	asDeclared := v.ObservedImageTag == v.Intent.ImageTag && is(fleet.ConditionImageConverged) && is(fleet.ConditionManifestConverged)
	return v.Verdict != fleet.VerdictConverged && v.Verdict != fleet.VerdictStalled && (v.Plan != nil || asDeclared)
}

// attemptTime is how long an apply waits for an attempt that is under way.
const attemptTime = 15 * time.Second

// attempted returns the server as it is when the attempt has ended, or as it was seen last.
func (s *session) attempted(ctx context.Context, v fleet.ServerView) fleet.ServerView {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	// Whether it ended or time did: what was seen last says whether it came to anything.
	_ = s.watches.follow(ctx, fleet.ServerKey{Account: v.Account, Region: v.Region}, func(seen *fleet.ServerView) bool {
		if seen != nil {
			v = *seen
		}
		return seen == nil || !attempting(v)
	})
	return v
}

// undestroyed says why a server that is being destroyed is still there.
func undestroyed(ctx context.Context, v fleet.ServerView, err error) string {
	said := "kurad has stored that it is to be destroyed and goes on with it; apply again to wait for it."
	if stopped(ctx) {
		return "The wait was interrupted. " + said
	}
	if ctx.Err() == nil {
		return sentence(err) + " " + said
	}
	if v.Message != "" {
		said = sentence(plain(v.Message)) + " " + said
	}
	for _, h := range v.Holds {
		said = sentence(plain(h.Message)) + " " + said
	}
	return fmt.Sprintf("The timeout passed; it is %s (%s). %s", v.Status, v.Reason, said)
}
