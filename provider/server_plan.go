package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// checkImageTag checks the version alone, where it is known.
func checkImageTag(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var tag types.String
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("image_tag"), &tag)...)
	if resp.Diagnostics.HasError() || tag.IsUnknown() || tag.IsNull() {
		return
	}
	if err := fleet.CheckImageTag(tag.ValueString()); err != nil {
		var v fleet.Invalid
		v.Add("/image_tag", "%v", err)
		report(&resp.Diagnostics, req.Config.Schema.Type(), "Validate server", v.Err("server"))
	}
}

// protectServer refuses the plan that destroys a protected server, unless that never
// was active: what nobody could use yet needs no protection.
func protectServer(ctx context.Context, s *session, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if !destroys(req, resp) || !isProtected(ctx, req, resp) {
		return
	}
	state, err := decode[fleet.ServerKey](req.State.Raw)
	if err != nil {
		report(&resp.Diagnostics, nil, "Plan server", err)
		return
	}
	if client := s.answering(); client != nil {
		v, err := client.GetServer(ctx, state, api.GetOptions{})
		if has(err, fleet.CodeNotFound) || err == nil && !v.Served {
			return
		}
	}
	refuseDestroy(&resp.Diagnostics, "Server "+state.String())
}

// previewServer says in the plan of a server that is to be created or changed that its
// region's runtime cannot be read, or that somebody else has one of its hosts, before anything
// is applied. One server of a region asks for all, and each for its hosts where the region
// checks whose they are. What is wrong with the server itself is said by the apply: its neighbours may be
// changed by the same one.
func previewServer(ctx context.Context, s *session, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || resp.Diagnostics.HasError() || resp.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	client := s.answering()
	if client == nil {
		return
	}
	declared, ok := plannedServer(req, resp)
	if !ok {
		return
	}
	ask := func() (answered bool) {
		w, err := client.PutServer(ctx, declared, api.PutOptions{DryRun: true})
		if err == nil {
			s.warn(&resp.Diagnostics, req.Plan.Schema.Type(), "Plan server "+declared.Key().String(), declared.Region, w.Warnings)
			return true
		}
		tflog.Debug(ctx, "the daemon was asked what the plan means and did not say", map[string]any{"object": "server " + declared.Key().String(), "error": err.Error()})
		switch fleet.CodeOf(err) {
		case fleet.CodeInvalid, fleet.CodeNotFound, fleet.CodeConflict, fleet.CodePrecondition, fleet.CodeTooLarge:
			return false // of this server: the next one may ask
		case fleet.CodeUnauthorized, fleet.CodeForbidden, fleet.CodeUnavailable, fleet.CodeInternal:
		}
		return true
	}
	if s.checksHosts(ctx, client, declared.Region) {
		ask()
		return
	}
	s.lookOnce(declared.Region, ask)
}

// plannedServer is what the plan declares; where not all of it is known yet, as much as it
// takes to ask for its region.
func plannedServer(req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) (declared fleet.Server, ok bool) {
	declared, err := decode[fleet.Server](resp.Plan.Raw)
	if !req.Config.Raw.IsFullyKnown() {
		declared = fleet.Server{Account: declared.Account, Region: declared.Region, ImageTag: declared.ImageTag}
	}
	return declared, err == nil && declared.Account != "" && declared.Region != "" && declared.ImageTag != ""
}
