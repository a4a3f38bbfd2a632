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

// stable marks an attribute that the daemon computes: unknown in the plan that
// creates the object, taken from state in every other one.
func stable() planmodifier.String {
	return stableString{stringplanmodifier.UseStateForUnknown()}
}

type stableString struct{ planmodifier.String }

func (stableString) Description(context.Context) string {
	return "unknown when the object is created, kept from state in every other plan"
}

func (s stableString) MarkdownDescription(ctx context.Context) string { return s.Description(ctx) }

// derived marks an attribute that ModifyPlan computes from the object's other
// attributes, so that it is known as soon as they are.
func derived() planmodifier.String { return derivedString{} }

type derivedString struct{}

func (derivedString) Description(context.Context) string {
	return "computed from the other attributes, known as soon as they are"
}

func (s derivedString) MarkdownDescription(ctx context.Context) string { return s.Description(ctx) }

// PlanModifyString leaves the value to ModifyPlan, which sees all attributes.
func (derivedString) PlanModifyString(context.Context, planmodifier.StringRequest, *planmodifier.StringResponse) {
}

// ended marks an attribute that says what an apply would put an end to: planned as null
// always, so that it is a change of its own where it is anything else.
func ended() planmodifier.String { return endedString{} }

type endedString struct{}

func (endedString) Description(context.Context) string {
	return "planned as null always: an apply ends what it shows"
}

func (s endedString) MarkdownDescription(ctx context.Context) string { return s.Description(ctx) }

// PlanModifyString plans the end.
func (endedString) PlanModifyString(_ context.Context, _ planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	resp.PlanValue = types.StringNull()
}
