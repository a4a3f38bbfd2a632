package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// planHostTemplate computes what follows from the pattern, so that the plan shows it,
// and refuses a pattern whose hosts would read like another environment's (H2).
func planHostTemplate(ctx context.Context, s *session, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return
	}
	var plan hostTemplateModel
	resp.Diagnostics.Append(resp.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() || !known(plan.Name, plan.Pattern) {
		return
	}
	e, ok := s.serves()
	if !ok {
		return // unknown until the apply
	}
	if err := plan.expand().Validate(e); err != nil {
		report(&resp.Diagnostics, req.Plan.Schema.Type(), fmt.Sprintf("Plan host template %q", plan.Name.ValueString()), err)
		return
	}
	if known(plan.EnvSuffix, plan.Zone, plan.Example) {
		return // nothing changes: what Read found stays
	}
	pattern := plan.Pattern.ValueString()
	plan.EnvSuffix, plan.Zone, plan.Example = types.StringValue(e.Suffix), types.StringValue(fleet.Zone(pattern)), types.StringValue(e.ExampleHost(pattern))
	resp.Diagnostics.Append(resp.Plan.Set(ctx, plan)...)
}

// serves returns the environment that the daemon serves, with every suffix that
// shares its zone; false where the daemon has not answered.
func (s *session) serves() (fleet.Environment, bool) {
	if s.answering() == nil {
		return fleet.Environment{}, false
	}
	v := s.met()
	e, err := fleet.NewEnvironment(v.Environment, v.Suffix, v.Suffixes)
	return e, err == nil
}
