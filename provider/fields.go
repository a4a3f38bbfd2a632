package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// An attribute bears the name of its field in the API's JSON, and there is no model between
// the two: decode makes of what is configured or planned what is sent, encode makes of what the
// daemon shows what is in state. What an attribute is, its schema decides; what its field is,
// internal/fleet and internal/api.

// decode reads an object of core's as a domain type. What is null or unknown is left out, and
// so is what the type does not have.
func decode[D any](object tftypes.Value) (d D, err error) {
	fields, err := fieldsOf(object)
	if err != nil {
		return d, err
	}
	b, err := json.Marshal(fields)
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(b, &d)
}

// fieldsOf returns a value as encoding/json would read it.
func fieldsOf(v tftypes.Value) (any, error) {
	if v.IsNull() || !v.IsKnown() {
		return nil, nil
	}
	var (
		text   string
		flag   bool
		number big.Float
		list   []tftypes.Value
		fields map[string]tftypes.Value
	)
	switch t := v.Type(); {
	case t.Is(tftypes.String):
		return text, v.As(&text)
	case t.Is(tftypes.Bool):
		return flag, v.As(&flag)
	case t.Is(tftypes.Number):
		err := v.As(&number)
		return json.Number(number.Text('f', -1)), err
	case t.Is(tftypes.List{}):
		err := v.As(&list)
		out := make([]any, len(list))
		for i := range list {
			if err == nil {
				out[i], err = elementOf(list[i])
			}
		}
		return out, err
	}
	err := v.As(&fields)
	out := make(map[string]any, len(fields))
	for name, field := range fields {
		if err != nil {
			break
		}
		if v.Type().Is(tftypes.Object{}) {
			out[name], err = fieldsOf(field)
		} else {
			out[name], err = elementOf(field)
		}
	}
	return out, err
}

// elementOf is fieldsOf for what is in a list or a map, where nothing can be left out.
func elementOf(v tftypes.Value) (any, error) {
	if v.IsNull() {
		return nil, fmt.Errorf("an element of a list or a map is null; leave it out, or give it a value")
	}
	return fieldsOf(v)
}

// encode writes what the daemon shows as a value of type t. What has no field is null, but for
// a switch, which is false.
func encode(ctx context.Context, t attr.Type, shown any) (out tftypes.Value, diags diag.Diagnostics) {
	var fields any
	b, err := json.Marshal(shown)
	if err == nil {
		err = json.Unmarshal(b, &fields)
	}
	if err != nil {
		diags.AddError("What the daemon shows cannot be written down", fmt.Sprintf("%s This is a fault of the provider; please report it.", sentence(err)))
	}
	return valueOf(ctx, t, fields), diags
}

func valueOf(ctx context.Context, t attr.Type, field any) tftypes.Value {
	switch field := field.(type) {
	case nil:
		if t.TerraformType(ctx).Is(tftypes.Bool) {
			return tftypes.NewValue(tftypes.Bool, false)
		}
		return tftypes.NewValue(t.TerraformType(ctx), nil)
	case []any:
		out := make([]tftypes.Value, len(field))
		for i, v := range field {
			out[i] = valueOf(ctx, elementType(t), v)
		}
		return tftypes.NewValue(t.TerraformType(ctx), out)
	case map[string]any:
		out := map[string]tftypes.Value{}
		if object, ok := t.(attr.TypeWithAttributeTypes); ok {
			for name, t := range object.AttributeTypes() {
				out[name] = valueOf(ctx, t, field[name])
			}
		} else {
			for key, v := range field {
				out[key] = valueOf(ctx, elementType(t), v)
			}
		}
		return tftypes.NewValue(t.TerraformType(ctx), out)
	case string:
		var d fleet.Duration
		if _, ok := t.(durationType); ok && d.UnmarshalText([]byte(field)) == nil {
			return tftypes.NewValue(tftypes.String, d.Short())
		}
	}
	return tftypes.NewValue(t.TerraformType(ctx), field)
}

func elementType(t attr.Type) attr.Type {
	if c, ok := t.(attr.TypeWithElementType); ok {
		return c.ElementType()
	}
	return nil
}

// amended is what the API shows, with some of its fields added or written otherwise, and
// without those that are "".
type amended struct {
	shown  any
	fields map[string]any
}

// MarshalJSON implements json.Marshaler.
func (a amended) MarshalJSON() ([]byte, error) {
	b, err := json.Marshal(a.shown)
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	if err := json.Unmarshal(b, &all); err != nil {
		return nil, err
	}
	maps.Copy(all, a.fields)
	maps.DeleteFunc(all, func(_ string, v any) bool { return v == "" })
	return json.Marshal(all)
}

// checkConfig runs check on a configuration of which everything is known, and reports
// what it finds at the attributes: `tofu validate` says it, without a daemon.
func checkConfig[D any](config tfsdk.Config, what string, check func(D) error, diags *diag.Diagnostics) {
	if !config.Raw.IsFullyKnown() {
		return
	}
	d, err := decode[D](config.Raw)
	if err != nil {
		return // the schema's own checks say what it is
	}
	if err := check(d); err != nil {
		report(diags, config.Schema.Type(), what, err)
	}
}

// identify writes the identity of an object, whose attributes are among the object's fields.
func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, object any) (diags diag.Diagnostics) {
	identity.Raw, diags = encode(ctx, identity.Schema.Type(), object)
	return diags
}
