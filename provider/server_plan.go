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
	if !destroys(req, resp) {
		return
	}
	var state serverModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	if resp.Diagnostics.HasError() || !state.DeletionProtection.ValueBool() {
		return
	}
	if client := s.answering(); client != nil {
		v, err := client.GetServer(ctx, state.key(), api.GetOptions{})
		if has(err, fleet.CodeNotFound) || err == nil && !v.Served {
			return
		}
	}
	resp.Diagnostics.AddAttributeError(path.Root("deletion_protection"), "Server "+state.key().String()+" is protected from deletion",
		"The plan destroys it, and its `deletion_protection` is true. Nothing was changed. To destroy it, first apply `deletion_protection = false`.")
}

// previewServer says in the plan of a server that is to be created or changed that its
// region's runtime cannot be read, before anything is applied. One server of a region asks
// for all. What is wrong with the server itself is said by the apply: its neighbours may be
// changed by the same one.
func previewServer(ctx context.Context, s *session, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || resp.Diagnostics.HasError() || resp.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	client := s.answering()
	if client == nil {
		return
	}
	declared, ok := plannedServer(ctx, req, resp)
	if !ok {
		return
	}
	s.lookOnce(declared.Region, func() (answered bool) {
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
	})
}

// plannedServer is what the plan declares; where not all of it is known yet, as much as it
// takes to ask for its region.
func plannedServer(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) (declared fleet.Server, ok bool) {
	if req.Config.Raw.IsFullyKnown() {
		var plan serverModel
		resp.Diagnostics.Append(resp.Plan.Get(ctx, &plan)...)
		return plan.expand(), !resp.Diagnostics.HasError()
	}
	var account, region, imageTag types.String
	for name, value := range map[string]*types.String{"account": &account, "region": &region, "image_tag": &imageTag} {
		resp.Diagnostics.Append(resp.Plan.GetAttribute(ctx, path.Root(name), value)...)
	}
	return fleet.Server{Account: account.ValueString(), Region: region.ValueString(), ImageTag: imageTag.ValueString()},
		known(account, region, imageTag) && !resp.Diagnostics.HasError()
}
