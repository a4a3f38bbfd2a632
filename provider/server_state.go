package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"

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

// undestroyed says why a server that is being destroyed is still there.
func undestroyed(ctx context.Context, v fleet.ServerView, err error) string {
	said := "kurad has stored that it is to be destroyed and goes on with it; apply again to wait for it."
	if stopped(ctx) {
		return "The wait was interrupted. " + said
	}
	if ctx.Err() == nil {
		return sentence(err) + " " + said
	}
	for _, h := range v.Holds {
		said = sentence(plain(h.Message)) + " " + said
	}
	return fmt.Sprintf("The timeout passed; it is %s (%s). %s", v.Status, v.Reason, said)
}
