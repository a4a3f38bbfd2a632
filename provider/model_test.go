package provider

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"pgregory.net/rapid"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// declared draws any value of a domain type, with every field set or not. Empty maps
// and lists do not occur, for the API does not know them.
func draw[T any](t *rapid.T) T {
	var out T
	drawValue(t, reflect.ValueOf(&out).Elem())
	return out
}

func drawValue(t *rapid.T, v reflect.Value) {
	some := func() bool { return rapid.Bool().Draw(t, "set") }
	if v.Type() == reflect.TypeFor[fleet.Duration]() {
		v.SetInt(int64(time.Duration(rapid.IntRange(0, 100000).Draw(t, "seconds")) * time.Second))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			drawValue(t, v.Field(i))
		}
	case reflect.Pointer:
		if some() {
			v.Set(reflect.New(v.Type().Elem()))
			drawValue(t, v.Elem())
		}
	case reflect.Map:
		if n := rapid.IntRange(0, 2).Draw(t, "entries"); n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for i := range n {
				e := reflect.New(v.Type().Elem()).Elem()
				drawValue(t, e)
				v.SetMapIndex(reflect.ValueOf(string(rune('a'+i))), e)
			}
		}
	case reflect.Slice:
		if n := rapid.IntRange(0, 2).Draw(t, "elements"); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				drawValue(t, v.Index(i))
			}
		}
	case reflect.String:
		v.SetString(rapid.StringN(0, 4, -1).Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(some())
	case reflect.Int:
		v.SetInt(int64(rapid.IntRange(0, 70000).Draw(t, "number")))
	case reflect.Float64:
		v.SetFloat(float64(rapid.IntRange(-1800, 1800).Draw(t, "tenths")) / 10)
	default:
		t.Fatalf("no way to draw a %s", v.Type())
	}
}

// roundTrip writes a model into state as a Read does, reads it as an Update does, and
// returns what would be sent.
func roundTrip[M any](t *rapid.T, r resource.Resource, m M) M {
	ctx := t.Context()
	schema := resourceSchema(r)
	none := tftypes.NewValue(schema.Type().TerraformType(ctx), nil)
	state := tfsdk.State{Schema: schema, Raw: none}
	if d := setState(ctx, &state, none, m); d.HasError() {
		t.Fatalf("set: %v", d)
	}
	var back M
	if d := state.Get(ctx, &back); d.HasError() {
		t.Fatalf("get: %v", d)
	}
	return back
}

// asJSON is how the API sees a declaration.
func asJSON(t *rapid.T, v any) string {
	b, err := json.MarshalIndent(v, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestModel_accountRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw[fleet.Account](t)
		got := roundTrip(t, newAccountResource(), flattenAccount(want)).expand()
		if d := cmp.Diff(asJSON(t, want), asJSON(t, got)); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
	})
}

func TestModel_regionRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw[fleet.Region](t)
		if want.Containers != nil && want.Containers.Services == nil {
			want.Containers.Services = map[string]fleet.Service{} // required, so it is never null
		}
		got := roundTrip(t, newRegionResource(), flattenRegion(want)).expand()
		if d := cmp.Diff(asJSON(t, want), asJSON(t, got)); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
	})
}

func TestModel_serverRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw[fleet.Server](t)
		prior := serverModel{WaitFor: types.StringValue(waitAccepted), Timeouts: noTimeouts(t)}
		view := fleet.ServerView{Account: want.Account, Region: want.Region, Intent: fleet.Intent{Server: want}}
		back := roundTrip(t, newServerResource(), flattenServer(view, prior))
		if d := cmp.Diff(asJSON(t, want), asJSON(t, back.expand())); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
		if back.WaitFor != prior.WaitFor {
			t.Fatalf("wait_for, which the daemon does not know, is %v after a read, want %v", back.WaitFor, prior.WaitFor)
		}
	})
}

func noTimeouts(t *rapid.T) timeouts.Value {
	ctx := t.Context()
	at, ok := serverTimeouts(ctx).GetType().(timeouts.Type)
	if !ok {
		t.Fatal("timeouts have another type")
	}
	return timeouts.Value{Object: types.ObjectNull(at.AttributeTypes())}
}

// A successful apply must return what its plan promised (the framework's measured fact
// P4), whatever the daemon computes meanwhile.
func TestServer_anApplyReturnsWhatItsPlanPromised(t *testing.T) {
	view := fleet.ServerView{
		Account: "acme", Region: "eu", Instance: "kura-acme-eu", DeclaredURL: "https://new.example.dev", Hosts: fleet.Hosts{Public: "new.example.dev", GRPC: "grpc.example.dev"},
		Intent: fleet.Intent{Server: fleet.Server{Account: "acme", Region: "eu", ImageTag: "2"}},
	}
	plan := serverModel{
		Instance: types.StringValue("kura-acme-eu"), Host: types.StringValue("old.example.dev"), URL: types.StringValue("https://old.example.dev"),
		GRPCHost: types.StringNull(), GlobalHost: types.StringUnknown(), GRPCURL: types.StringNull(), GlobalURL: types.StringNull(),
	}
	got := flattenServer(view, plan).asPlanned(plan)
	for what, c := range map[string][2]types.String{
		"host, known in the plan":           {got.Host, plan.Host},
		"url, known in the plan":            {got.URL, plan.URL},
		"grpc_host, null in the plan":       {got.GRPCHost, plan.GRPCHost},
		"global_host, unknown in the plan":  {got.GlobalHost, types.StringNull()},
		"image_tag, which is from the view": {got.ImageTag, types.StringValue("2")},
	} {
		if !c[0].Equal(c[1]) {
			t.Errorf("%s: got %s, want %s", what, c[0], c[1])
		}
	}
}
