package provider

import (
	"context"
	"errors"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// previewNewRegion asks the daemon about a region that is to be created: whether it
// has the endpoint or cluster, the variable sets and the host paths that the region
// names is known now. What it names of other objects may be created by the same apply:
// a dry run only warns of that.
func previewNewRegion(ctx context.Context, s *session, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if !req.State.Raw.IsNull() || req.Plan.Raw.IsNull() || resp.Diagnostics.HasError() || !req.Config.Raw.IsFullyKnown() {
		return
	}
	client := s.ask()
	if client == nil {
		return
	}
	var plan regionModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	_, err := client.PutRegion(ctx, plan.expand(), api.PutOptions{DryRun: true, IfNoneMatch: true})
	if refused, ok := errors.AsType[*fleet.Error](err); ok && refused.Code == fleet.CodeInvalid && len(refused.Fields) > 0 {
		report(&resp.Diagnostics, req.Plan.Schema.Type(), "Plan "+regionNoun(plan.Name.ValueString()), err)
	}
}
