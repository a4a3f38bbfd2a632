package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// destroys reports whether a plan ends the object that is in state.
func destroys(req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) bool {
	return !req.State.Raw.IsNull() && (req.Plan.Raw.IsNull() || len(resp.RequiresReplace) > 0)
}

// protect refuses the plan that destroys a protected object.
func (r *stored[K, D, W]) protect(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if destroys(req, resp) && isProtected(ctx, req, resp) {
		refuseDestroy(&resp.Diagnostics, "This "+r.noun())
	}
}

func isProtected(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) bool {
	var protected types.Bool
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("deletion_protection"), &protected)...)
	return protected.ValueBool()
}

func refuseDestroy(diags *diag.Diagnostics, object string) {
	diags.AddAttributeError(path.Root("deletion_protection"), object+" is protected from deletion",
		"The plan destroys it, and its `deletion_protection` is true. Nothing was changed. To destroy it, first apply `deletion_protection = false`.")
}

// warn adds the daemon's warnings. What is not declared yet may well be part of the
// same apply, and is no warning. region is the one that a runtime is of.
func (s *session) warn(diags *diag.Diagnostics, t attr.Type, what, region string, warnings []fleet.Warning) {
	for _, w := range warnings {
		switch w.Code {
		case fleet.WarnNeighbourUnknown:
			continue
		case fleet.WarnUnreadable:
			s.unseen(diags, region, w)
			continue
		case fleet.WarnForeignHost, fleet.WarnSharedOwner, fleet.WarnZoneToken:
			s.shadowed(diags, what, region, w)
			continue
		case fleet.WarnHostsMove, fleet.WarnReplace, fleet.WarnNoAlias:
		}
		summary := fmt.Sprintf("%s: %s", what, meaning(w.Code))
		if p, ok := attributePath(t, w.Pointer); ok {
			diags.AddAttributeWarning(p, summary, w.Detail)
		} else {
			diags.AddWarning(summary, w.Detail)
		}
	}
}

func meaning(code fleet.WarningCode) string {
	switch code {
	case fleet.WarnHostsMove:
		return "hosts will move"
	case fleet.WarnReplace:
		return "servers will be replaced or re-applied"
	case fleet.WarnNoAlias:
		return "old hosts stop answering"
	case fleet.WarnNeighbourUnknown:
		return "something it names is not declared yet"
	case fleet.WarnUnreadable:
		return "its runtime cannot be read now"
	case fleet.WarnForeignHost:
		return "hosts are somebody else's"
	case fleet.WarnSharedOwner:
		return "another environment uses its owner id"
	case fleet.WarnZoneToken:
		return "kurad's token of a zone lacks a permission"
	}
	return string(code)
}

// shadowed adds a warning about DNS, unless this session said it of the cause.
func (s *session) shadowed(diags *diag.Diagnostics, what, region string, w fleet.Warning) {
	key := string(w.Code) + "/" + w.Cause
	if w.Code == fleet.WarnForeignHost {
		key += "/" + region + "/" + string(w.Reason)
	}
	summary := what + ": " + meaning(w.Code)
	if w.Reason != "" {
		summary += fmt.Sprintf(" (%s)", w.Reason)
	}
	s.once(key, diags, summary, sentence(w.Detail))
}

// reportDelete is report for a delete, which core does before it updates what used the
// object.
func reportDelete(diags *diag.Diagnostics, t attr.Type, what string, err error) {
	if !has(err, fleet.CodeConflict) {
		report(diags, t, what, err)
		return
	}
	diags.AddError(what, detail(what, err)+" What goes is deleted before anything else is changed: where this very apply ends that use, keep the object declared, apply, and delete it in a second apply. Or give it `lifecycle { create_before_destroy = true }` and apply that first; from then on it is deleted last.")
}

// reportCreate is report for a create, where an object that exists already is one to
// import, by the block that says so. found is the answer to reading the object.
func reportCreate(diags *diag.Diagnostics, t attr.Type, what string, err, found error, block string) {
	lost := has(err, fleet.CodeUnavailable)
	if found != nil || !has(err, fleet.CodeConflict) && !has(err, fleet.CodePrecondition) && !lost {
		report(diags, t, what, err)
		return
	}
	said := sentence(err.Error())
	if lost {
		said += " It is there now, though: this very request made it and its answer got lost, or somebody else did."
	}
	diags.AddError(what+": it exists already", said+" To manage it here, import it with this block (and the resource's own name), then plan again:\n\n"+block)
}

func importBlock(resourceType, id string) string {
	return fmt.Sprintf("  import {\n    to = %s.this\n    id = %q\n  }", resourceType, id)
}
