package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

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
