package provider

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

func TestKeepEmpty_whatTheAPICannotTellApartStaysAsConfigured(t *testing.T) {
	m := tftypes.Map{ElementType: tftypes.String}
	l := tftypes.List{ElementType: tftypes.String}
	inner := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"env": m, "image": tftypes.String}}
	outer := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"labels": m, "command": l, "one": inner, "many": tftypes.Map{ElementType: inner}, "list": tftypes.List{ElementType: inner}}}
	text := func(s any) tftypes.Value { return tftypes.NewValue(tftypes.String, s) }
	in := func(env, image tftypes.Value) tftypes.Value {
		return tftypes.NewValue(inner, map[string]tftypes.Value{"env": env, "image": image})
	}
	none, empty := tftypes.NewValue(m, nil), tftypes.NewValue(m, map[string]tftypes.Value{})
	full := tftypes.NewValue(m, map[string]tftypes.Value{"a": text("1")})
	whole := func(labels, command, one, many tftypes.Value) tftypes.Value {
		return tftypes.NewValue(outer, map[string]tftypes.Value{
			"labels": labels, "command": command, "one": one,
			"many": tftypes.NewValue(tftypes.Map{ElementType: inner}, map[string]tftypes.Value{"x": many}),
			"list": tftypes.NewValue(tftypes.List{ElementType: inner}, []tftypes.Value{many}),
		})
	}
	noCommand, emptyCommand := tftypes.NewValue(l, nil), tftypes.NewValue(l, []tftypes.Value{})
	hollowOne, noOne := in(none, text(nil)), tftypes.NewValue(inner, nil)

	prior := whole(empty, emptyCommand, hollowOne, in(empty, text("i")))
	next := whole(none, noCommand, noOne, in(none, text("j")))
	want := whole(empty, emptyCommand, hollowOne, in(empty, text("j")))
	if got := keepEmpty(prior, next); !got.Equal(want) {
		t.Errorf("empty was not kept:\n got %s\nwant %s", got, want)
	}
	// What is there, and what was not there, is never touched.
	for _, c := range []struct{ prior, next tftypes.Value }{
		{whole(full, noCommand, in(full, text("i")), in(full, text("i"))), next},
		{tftypes.NewValue(outer, nil), next},
		{tftypes.NewValue(outer, tftypes.UnknownValue), next},
		{prior, whole(full, tftypes.NewValue(l, []tftypes.Value{text("a")}), in(full, text("i")), in(full, text("i")))},
	} {
		if got := keepEmpty(c.prior, c.next); !got.Equal(c.next) {
			t.Errorf("changed what is there:\nprior %s\n next %s\n  got %s", c.prior, c.next, got)
		}
	}
}
