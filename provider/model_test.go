package provider

import (
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
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

// roundTrip writes what the daemon shows into state as a Read does, reads it as an Update does,
// and returns what would be sent.
func roundTrip[D any](t *rapid.T, r resource.Resource, shown any) D {
	ctx := t.Context()
	schema := resourceSchema(r)
	none := tftypes.NewValue(schema.Type().TerraformType(ctx), nil)
	state := tfsdk.State{Schema: schema, Raw: none}
	if d := setState(ctx, &state, none, shown); d.HasError() {
		t.Fatalf("set: %v", d)
	}
	back, err := decode[D](state.Raw)
	if err != nil {
		t.Fatalf("get: %v", err)
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
		got := roundTrip[fleet.Account](t, newAccountResource(), want)
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
		got := roundTrip[fleet.Region](t, newRegionResource(), want)
		if d := cmp.Diff(asJSON(t, want), asJSON(t, got)); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
	})
}

func TestModel_serverRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := draw[fleet.Server](t)
		view := fleet.ServerView{Account: want.Account, Region: want.Region, Intent: fleet.Intent{Server: want}}
		back := roundTrip[fleet.Server](t, newServerResource(), serverState(view))
		if d := cmp.Diff(asJSON(t, want), asJSON(t, back)); d != "" {
			t.Fatalf("-want +got:\n%s", d)
		}
	})
}

// serverAfter is a server's state once the view was written over what was planned, or was in
// state, of which everything is null but what is given.
func serverAfter(t *testing.T, v fleet.ServerView, prior map[string]tftypes.Value, kept ...string) map[string]tftypes.Value {
	t.Helper()
	ctx := t.Context()
	schema := resourceSchema(newServerResource())
	all, diags := encode(ctx, schema.Type(), map[string]any{})
	fields, _, ok := entries(all, all)
	if diags.HasError() || !ok {
		t.Fatal(diags)
	}
	maps.Copy(fields, prior)
	state := tfsdk.State{Schema: schema}
	if d := setState(ctx, &state, tftypes.NewValue(all.Type(), fields), serverState(v), kept...); d.HasError() {
		t.Fatal(d)
	}
	after, _, _ := entries(state.Raw, state.Raw)
	return after
}

func TestServer_aReadKeepsWhatTheDaemonDoesNotKnow(t *testing.T) {
	limits := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"create": tftypes.String, "update": tftypes.String, "delete": tftypes.String}}
	prior := map[string]tftypes.Value{
		"wait_for": hcl(waitAccepted), "host": hcl("old.example.dev"),
		"timeouts": tftypes.NewValue(limits, map[string]tftypes.Value{"create": hcl("5m"), "update": tftypes.NewValue(tftypes.String, nil), "delete": tftypes.NewValue(tftypes.String, nil)}),
	}
	got := serverAfter(t, fleet.ServerView{Hosts: fleet.Hosts{Public: "new.example.dev"}}, prior, providers()...)
	for _, name := range []string{"wait_for", "timeouts"} {
		if !got[name].Equal(prior[name]) {
			t.Errorf("%s is %s after a read, want %s", name, got[name], prior[name])
		}
	}
	if !got["host"].Equal(hcl("new.example.dev")) {
		t.Errorf("host is %s", got["host"])
	}
}

// A successful apply must return what its plan promised (the framework's measured fact
// P4), whatever the daemon computes meanwhile.
func TestServer_anApplyReturnsWhatItsPlanPromised(t *testing.T) {
	view := fleet.ServerView{
		Account: "acme", Region: "eu", Instance: "kura-acme-eu", DeclaredURL: "https://new.example.dev", Hosts: fleet.Hosts{Public: "new.example.dev", GRPC: "grpc.example.dev"},
		Intent: fleet.Intent{Server: fleet.Server{Account: "acme", Region: "eu", ImageTag: "2"}},
	}
	null, unknown := tftypes.NewValue(tftypes.String, nil), tftypes.NewValue(tftypes.String, tftypes.UnknownValue)
	plan := map[string]tftypes.Value{
		"instance": hcl("kura-acme-eu"), "host": hcl("old.example.dev"), "url": hcl("https://old.example.dev"),
		"grpc_host": null, "global_host": unknown, "grpc_url": null, "global_url": null,
	}
	got := serverAfter(t, view, plan, promised()...)
	for what, c := range map[string][2]tftypes.Value{
		"host, known in the plan":           {got["host"], plan["host"]},
		"url, known in the plan":            {got["url"], plan["url"]},
		"grpc_host, null in the plan":       {got["grpc_host"], plan["grpc_host"]},
		"global_host, unknown in the plan":  {got["global_host"], null},
		"image_tag, which is from the view": {got["image_tag"], hcl("2")},
	} {
		if !c[0].Equal(c[1]) {
			t.Errorf("%s: got %s, want %s", what, c[0], c[1])
		}
	}
}

// An attribute that can be configured and has no field of its name would be sent to nobody.
func TestModel_everythingThatCanBeConfiguredHasAField(t *testing.T) {
	fields := map[string]any{"account": fleet.Account{}, "host_template": fleet.HostTemplate{}, "region": fleet.Region{}, "server": fleet.Server{}, "cache_endpoint": fleet.CacheEndpoint{}}
	seen := 0
	attributes(t, func(path string, a described) {
		at, ok := strings.CutPrefix(path, "resource.kura_")
		if !ok || !a.IsOptional() && a.IsComputed() || strings.HasPrefix(at, "server.timeouts") || at == "server.wait_for" {
			return
		}
		seen++
		words := strings.Split(at, ".")
		field := reflect.TypeOf(fields[words[0]])
		for _, word := range words[1:] {
			for field.Kind() == reflect.Pointer || field.Kind() == reflect.Map || field.Kind() == reflect.Slice {
				field = field.Elem()
			}
			next, ok := field.FieldByNameFunc(func(name string) bool {
				f, _ := field.FieldByName(name)
				tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				return tag == word
			})
			if !ok {
				t.Errorf("%s: %s has no field %s", path, field, word)
				return
			}
			field = next.Type
		}
	})
	if seen < 90 {
		t.Errorf("only %d attributes were walked", seen)
	}
}

// Nothing can be left out of a list or a map, as it can of an object.
func TestModel_anElementThatIsNullIsSaidAtItsAttributeWithWhatToDo(t *testing.T) {
	c := newCore(t, &told{answers: map[string]any{}})
	none := tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, map[string]tftypes.Value{"a/b": tftypes.NewValue(tftypes.String, nil)})
	config := c.object("kura_account", nil, map[string]tftypes.Value{"id": hcl("acme"), "labels": none})
	v, err := c.provider.ValidateResourceConfig(t.Context(), &tfprotov6.ValidateResourceConfigRequest{TypeName: "kura_account", Config: c.wire("kura_account", config)})
	if err != nil {
		t.Fatal(err)
	}
	at := tftypes.NewAttributePath().WithAttributeName("labels").WithElementKeyString("a/b")
	if len(v.Diagnostics) == 0 || !v.Diagnostics[0].Attribute.Equal(at) || !strings.Contains(v.Diagnostics[0].Detail, "Is null; leave it out, or give it a value.") {
		t.Errorf("%s", spoken(v.Diagnostics))
	}
}
