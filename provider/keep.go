package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// setState writes what the daemon shows into state. prior is the plan (or, in a read, the
// state before): what the API cannot tell apart, an empty map and none, stays as it is there,
// and so do the kept attributes that are known there.
func setState(ctx context.Context, state *tfsdk.State, prior tftypes.Value, shown any, kept ...string) diag.Diagnostics {
	next, diags := encode(ctx, state.Schema.Type(), shown)
	if diags.HasError() {
		return diags
	}
	if was, is, ok := entries(prior, next); ok {
		for _, name := range kept {
			if v, ok := was[name]; ok && v.IsKnown() {
				is[name] = v
			}
		}
		next = tftypes.NewValue(next.Type(), is)
	}
	state.Raw = keepEmpty(prior, next)
	return diags
}

// keepEmpty returns next with the empty lists, maps and objects of prior in the
// places where next has nothing.
func keepEmpty(prior, next tftypes.Value) tftypes.Value {
	if prior.IsNull() || !prior.IsKnown() || !next.IsKnown() {
		return next
	}
	if next.IsNull() {
		if hollow(prior) {
			return prior
		}
		return next
	}
	if was, is, ok := entries(prior, next); ok {
		for k := range is {
			if p, ok := was[k]; ok {
				is[k] = keepEmpty(p, is[k])
			}
		}
		return tftypes.NewValue(next.Type(), is)
	}
	var was, is []tftypes.Value
	if !next.Type().Is(tftypes.List{}) || prior.As(&was) != nil || next.As(&is) != nil {
		return next
	}
	for i := range is {
		if i < len(was) {
			is[i] = keepEmpty(was[i], is[i])
		}
	}
	return tftypes.NewValue(next.Type(), is)
}

// hollow reports whether a collection or an object holds nothing at all.
func hollow(v tftypes.Value) bool {
	if !v.IsKnown() {
		return false
	}
	if v.IsNull() {
		return true
	}
	if m, _, ok := entries(v, v); ok {
		for _, e := range m {
			if !hollow(e) {
				return false
			}
		}
		return true
	}
	var l []tftypes.Value
	return v.Type().Is(tftypes.List{}) && v.As(&l) == nil && len(l) == 0
}

// entries returns the elements of two maps or two objects.
func entries(a, b tftypes.Value) (am, bm map[string]tftypes.Value, ok bool) {
	t := b.Type()
	if !t.Is(tftypes.Object{}) && !t.Is(tftypes.Map{}) {
		return nil, nil, false
	}
	return am, bm, a.As(&am) == nil && b.As(&bm) == nil
}
