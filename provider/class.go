package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// Every computed attribute of a resource carries one of these classes, or a default;
// TestSchema_everyComputedAttributeHasAClass holds it. There is no further class:
// what moves by itself belongs into a data source.

// modifier is a plan modifier that says what it does.
type modifier string

func (m modifier) Description(context.Context) string { return string(m) }

func (m modifier) MarkdownDescription(context.Context) string { return string(m) }

// stable marks an attribute that the daemon computes: unknown in the plan that
// creates the object, taken from state in every other one.
func stable() planmodifier.String {
	return stableString{"unknown when the object is created, kept from state in every other plan"}
}

type stableString struct{ modifier }

// PlanModifyString keeps what is in state.
func (stableString) PlanModifyString(ctx context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	stringplanmodifier.UseStateForUnknown().PlanModifyString(ctx, req, resp)
}

// derived marks an attribute that ModifyPlan computes from the object's other
// attributes, so that it is known as soon as they are.
func derived() planmodifier.String {
	return derivedString{"computed from the other attributes, known as soon as they are"}
}

type derivedString struct{ modifier }

// PlanModifyString leaves the value to ModifyPlan, which sees all attributes.
func (derivedString) PlanModifyString(context.Context, planmodifier.StringRequest, *planmodifier.StringResponse) {
}

// ended marks an attribute that says what an apply would put an end to: planned as null
// always, so that it is a change of its own where it is anything else.
func ended() planmodifier.String {
	return endedString{"planned as null always: an apply ends what it shows"}
}

type endedString struct{ modifier }

// PlanModifyString plans the end.
func (endedString) PlanModifyString(_ context.Context, _ planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	resp.PlanValue = types.StringNull()
}
