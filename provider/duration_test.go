package provider

import (
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr/xattr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"pgregory.net/rapid"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestDuration_isWrittenAsAPersonWould(t *testing.T) {
	for d, want := range map[time.Duration]string{
		15 * time.Minute: "15m", time.Hour: "1h", 90 * time.Minute: "1h30m", 30 * time.Second: "30s", 100 * time.Second: "1m40s",
		time.Hour + time.Second: "1h0m1s", 250 * time.Millisecond: "250ms", 10 * time.Minute: "10m", 10 * time.Hour: "10h",
	} {
		if got := fleet.Duration(d).Short(); got != want {
			t.Errorf("%v is written %q, want %q", d, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64Range(1, int64(48*time.Hour)).Draw(t, "d"))
		if back, err := time.ParseDuration(fleet.Duration(d).Short()); err != nil || back != d {
			t.Fatalf("%v is written as %q, which reads as %v, %v", d, fleet.Duration(d).Short(), back, err)
		}
	})
}

func TestDuration_keepsTheWordingThatMeansTheSame(t *testing.T) {
	value := func(s string) durationValue { return durationValue{types.StringValue(s)} }
	if same, _ := value("900s").StringSemanticEquals(t.Context(), value("15m")); !same {
		t.Error("900s and 15m are not the same")
	}
	if same, _ := value("900s").StringSemanticEquals(t.Context(), value("16m")); same {
		t.Error("900s and 16m are the same")
	}
	for _, c := range []struct{ state, plan, want types.String }{
		{types.StringValue("15m"), types.StringValue("900s"), types.StringValue("15m")},
		{types.StringValue("15m"), types.StringValue("16m"), types.StringValue("16m")},
		{types.StringNull(), types.StringValue("900s"), types.StringValue("900s")},
		{types.StringValue("15m"), types.StringNull(), types.StringNull()},
		{types.StringValue("15m"), types.StringUnknown(), types.StringUnknown()},
	} {
		resp := planmodifier.StringResponse{PlanValue: c.plan}
		keepDuration().PlanModifyString(t.Context(), planmodifier.StringRequest{StateValue: c.state, PlanValue: c.plan}, &resp)
		if !resp.PlanValue.Equal(c.want) {
			t.Errorf("state %s, configured %s: planned %s, want %s", c.state, c.plan, resp.PlanValue, c.want)
		}
	}
	if got := value("900s").fleet(); got != fleet.Duration(15*time.Minute) {
		t.Errorf("900s is sent as %v", got)
	}
}

func TestDuration_refusesWhatIsNone(t *testing.T) {
	for s, ok := range map[string]bool{"15m": true, "1h30m": true, "15": false, "": false, "-5s": false, "0s": false, "soon": false} {
		var resp xattr.ValidateAttributeResponse
		durationValue{types.StringValue(s)}.ValidateAttribute(t.Context(), xattr.ValidateAttributeRequest{Path: path.Root("stall_after")}, &resp)
		if resp.Diagnostics.HasError() == ok {
			t.Errorf("%q: %v", s, resp.Diagnostics)
		}
	}
}
