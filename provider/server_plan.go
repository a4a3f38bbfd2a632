package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

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
	if client := s.ask(); client != nil {
		v, err := client.GetServer(ctx, state.key(), api.GetOptions{})
		if has(err, fleet.CodeNotFound) || err == nil && !v.Served {
			return
		}
	}
	resp.Diagnostics.AddAttributeError(path.Root("deletion_protection"), "Server "+state.key().String()+" is protected from deletion",
		"The plan destroys it, and its `deletion_protection` is true. Nothing was changed. To destroy it, first apply `deletion_protection = false`.")
}
