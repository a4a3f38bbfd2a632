package provider

import (
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"

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

// serverState is what is in state of a server as the daemon shows it.
func serverState(v fleet.ServerView) amended {
	return amended{v.Intent.Server, map[string]any{
		"account": v.Account, "region": v.Region, "instance": v.Instance, "host": v.Hosts.Public, "grpc_host": v.Hosts.GRPC, "global_host": v.Hosts.Global,
		"url": v.DeclaredURL, "grpc_url": v.DeclaredGRPCURL, "global_url": v.DeclaredGlobal,
	}}
}

// servingState is serverState with the version that serves, for an apply whose error says
// why it is not the declared one: the next plan then tells the truth.
func servingState(v fleet.ServerView) amended {
	s := serverState(v)
	s.fields["image_tag"], s.fields["pending_image_tag"] = serving(v).ValueString(), pending(v, serving(v)).ValueString()
	return s
}

// providers are the attributes that the daemon does not know.
func providers() []string { return []string{"wait_for", "timeouts"} }

// promised are those that an apply takes from its plan: one that succeeds returns every
// value that was known there, and the next Read brings it up to date.
func promised() []string {
	return append(providers(), "instance", "host", "grpc_host", "global_host", "url", "grpc_url", "global_url")
}

// undestroyed says why a server that is being destroyed is still there.
func undestroyed(ctx context.Context, v fleet.ServerView, err error) string {
	said := "kurad has stored that it is to be destroyed and goes on with it; apply again to wait for it."
	if stopped(ctx) {
		return "The wait was interrupted. " + said
	}
	if ctx.Err() == nil {
		return sentence(err.Error()) + " " + said
	}
	if v.Message != "" {
		said = sentence(v.Message) + " " + said
	}
	for _, h := range v.Holds {
		said = sentence(h.Message) + " " + said
	}
	return fmt.Sprintf("The timeout passed; it is %s (%s). %s", v.Status, v.Reason, said)
}
