package provider

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"strings"

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
// so is what the type does not have. An element that is null is an error at its field.
func decode[D any](object tftypes.Value) (d D, err error) {
	var bad fleet.Invalid
	b, err := json.Marshal(fieldsOf(object, "", &bad))
	if err == nil {
		err = json.Unmarshal(b, &d)
	}
	return d, cmp.Or(bad.Err("what is declared"), err)
}

// fieldsOf returns a value as encoding/json would read it, and notes what is wrong with it; at
// is the JSON pointer to it.
func fieldsOf(v tftypes.Value, at string, bad *fleet.Invalid) any {
	if v.IsNull() || !v.IsKnown() {
		return nil
	}
	// No As fails: each is of the value's type.
	switch t := v.Type(); {
	case t.Is(tftypes.String):
		var text string
		_ = v.As(&text)
		return text
	case t.Is(tftypes.Bool):
		var on bool
		_ = v.As(&on)
		return on
	case t.Is(tftypes.Number):
		var number big.Float
		_ = v.As(&number)
		return json.Number(number.Text('f', -1))
	case t.Is(tftypes.List{}):
		var list []tftypes.Value
		_ = v.As(&list)
		out := make([]any, len(list))
		for i, v := range list {
			out[i] = elementOf(v, fmt.Sprintf("%s/%d", at, i), bad)
		}
		return out
	}
	var entries map[string]tftypes.Value
	_ = v.As(&entries)
	out := make(map[string]any, len(entries))
	for name, entry := range entries {
		below := at + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
		if v.Type().Is(tftypes.Map{}) {
			out[name] = elementOf(entry, below, bad)
		} else {
			out[name] = fieldsOf(entry, below, bad)
		}
	}
	return out
}

// elementOf is fieldsOf for what is in a list or a map, where nothing can be left out.
func elementOf(v tftypes.Value, at string, bad *fleet.Invalid) any {
	if v.IsNull() {
		bad.Add(at, "is null; leave it out, or give it a value")
	}
	return fieldsOf(v, at, bad)
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
		diags.AddError("What the daemon shows cannot be written down", fmt.Sprintf("%s This is a fault of the provider; please report it.", sentence(err.Error())))
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
	switch {
	case err == nil:
		err = check(d)
	case len(fields(err)) == 0:
		return // the schema's own checks say what it is
	}
	if err != nil {
		report(diags, config.Schema.Type(), what, err)
	}
}

// identify writes the identity of an object, whose attributes are among the object's fields.
func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, object any) (diags diag.Diagnostics) {
	identity.Raw, diags = encode(ctx, identity.Schema.Type(), object)
	return diags
}
