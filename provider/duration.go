package provider

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var (
	_ basetypes.StringTypable                    = durationType{}
	_ basetypes.StringValuableWithSemanticEquals = durationValue{}
	_ xattr.ValidateableAttribute                = durationValue{}
)

// durationType is text such as "15m": "900s" means the same, and the wording that a
// user chose stays.
type durationType struct{ basetypes.StringType }

func (durationType) String() string { return "duration" }

func (durationType) Equal(o attr.Type) bool {
	_, ok := o.(durationType)
	return ok
}

func (durationType) ValueType(context.Context) attr.Value { return durationValue{} }

func (durationType) ValueFromString(_ context.Context, v basetypes.StringValue) (basetypes.StringValuable, diag.Diagnostics) {
	return durationValue{v}, nil
}

func (t durationType) ValueFromTerraform(ctx context.Context, in tftypes.Value) (attr.Value, error) {
	v, err := t.StringType.ValueFromTerraform(ctx, in)
	if err != nil {
		return nil, err
	}
	s, ok := v.(basetypes.StringValue)
	if !ok {
		return nil, fmt.Errorf("a duration was read as %T; this is a fault of the provider", v)
	}
	return durationValue{s}, nil
}

type durationValue struct{ basetypes.StringValue }

// fleet returns the duration; 0 where none is set.
func (v durationValue) fleet() fleet.Duration {
	d, err := time.ParseDuration(v.ValueString())
	if err != nil {
		return 0 // null; ValidateAttribute has refused everything else
	}
	return fleet.Duration(d)
}

func (durationValue) Type(context.Context) attr.Type { return durationType{} }

func (v durationValue) Equal(o attr.Value) bool {
	other, ok := o.(durationValue)
	return ok && v.StringValue.Equal(other.StringValue)
}

func (v durationValue) StringSemanticEquals(_ context.Context, o basetypes.StringValuable) (bool, diag.Diagnostics) {
	other, ok := o.(durationValue)
	return ok && v.same(other), nil
}

func (v durationValue) same(o durationValue) bool {
	a, errA := time.ParseDuration(v.ValueString())
	b, errB := time.ParseDuration(o.ValueString())
	return errA == nil && errB == nil && a == b
}

// ValidateAttribute implements xattr.ValidateableAttribute.
func (v durationValue) ValidateAttribute(_ context.Context, req xattr.ValidateAttributeRequest, resp *xattr.ValidateAttributeResponse) {
	if v.IsNull() || v.IsUnknown() {
		return
	}
	if d, err := time.ParseDuration(v.ValueString()); err != nil || d <= 0 {
		resp.Diagnostics.AddAttributeError(req.Path, "Not a duration",
			fmt.Sprintf("%q is not a duration. Write a number with a unit, such as \"30s\", \"15m\" or \"1h30m\"; it must be more than nothing.", v.ValueString()))
	}
}

// keepDuration plans the state's wording where the configuration means the same, so
// that "900s" after an import of "15m" is no change.
func keepDuration() planmodifier.String {
	return keptDuration{"a duration that is written differently and means the same is no change"}
}

type keptDuration struct{ modifier }

func (keptDuration) PlanModifyString(_ context.Context, req planmodifier.StringRequest, resp *planmodifier.StringResponse) {
	if (durationValue{req.StateValue}).same(durationValue{req.PlanValue}) {
		resp.PlanValue = req.StateValue
	}
}
