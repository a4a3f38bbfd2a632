package provider

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func typeOf(r resource.Resource) attr.Type { return resourceSchema(r).Type() }

func TestAttributePath_ofAPointer(t *testing.T) {
	region, server, account := typeOf(newRegionResource()), typeOf(newServerResource()), typeOf(newAccountResource())
	for _, c := range []struct {
		in      attr.Type
		pointer string
		want    path.Path
		ok      bool
	}{
		{account, "/handle", path.Root("handle"), true},
		{account, "/labels/a~1b~0c", path.Root("labels").AtMapKey("a/b~c"), true},
		{region, "/containers/services/cache/image", path.Root("containers").AtName("services").AtMapKey("cache").AtName("image"), true},
		{region, "/containers/services/cache/volumes/0/host_path", path.Root("containers").AtName("services").AtMapKey("cache").AtName("volumes").AtListIndex(0).AtName("host_path"), true},
		{region, "/containers/services/cache/command/2", path.Root("containers").AtName("services").AtMapKey("cache").AtName("command").AtListIndex(2), true},
		{region, "/containers/services/cache/ports/http/bind", path.Root("containers").AtName("services").AtMapKey("cache").AtName("ports").AtMapKey("http").AtName("bind"), true},
		{region, "/kubernetes/tolerations/1/key", path.Root("kubernetes").AtName("tolerations").AtListIndex(1).AtName("key"), true},
		{region, "/cluster_id/deeper/still", path.Root("cluster_id"), true},
		{region, "/hosts/unheard_of", path.Root("hosts"), true},
		{region, "/kubernetes/tolerations/first", path.Root("kubernetes").AtName("tolerations"), true},
		{server, "/overrides/containers/services/cache/env/A", path.Root("overrides").AtName("containers").AtName("services").AtMapKey("cache").AtName("env").AtMapKey("A"), true},
		{server, "/unheard_of", path.Path{}, false},
		{server, "", path.Path{}, false},
		{nil, "/image_tag", path.Path{}, false},
	} {
		got, ok := attributePath(c.in, c.pointer)
		if ok != c.ok || !got.Equal(c.want) {
			t.Errorf("attributePath(%q) = %s, %v; want %s, %v", c.pointer, got, ok, c.want, c.ok)
		}
	}
}

// Every field of what is declared can be pointed at by the API, and every pointer must
// lead to the attribute of that name.
func TestAttributePath_existsForEveryFieldOfTheAPI(t *testing.T) {
	for _, c := range []struct {
		resource resource.Resource
		domain   any
	}{
		{newAccountResource(), fleet.Account{}},
		{newHostTemplateResource(), fleet.HostTemplate{}},
		{newRegionResource(), fleet.Region{}},
		{newServerResource(), fleet.Server{}},
	} {
		n := 0
		pointers("", reflect.TypeOf(c.domain), func(pointer string) {
			n++
			got, ok := attributePath(typeOf(c.resource), pointer)
			steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
			if !ok || len(got.Steps()) != len(steps) {
				t.Errorf("%T: field %s is at no attribute (got as far as %q)", c.domain, pointer, got)
			}
		})
		if n == 0 {
			t.Errorf("%T has no fields", c.domain)
		}
	}
}

// pointers calls visit with a pointer to every field below t; keys are "k", indexes 0.
func pointers(at string, t reflect.Type, visit func(string)) {
	switch t.Kind() {
	case reflect.Pointer:
		pointers(at, t.Elem(), visit)
	case reflect.Map:
		visit(at + "/k")
		pointers(at+"/k", t.Elem(), visit)
	case reflect.Slice:
		visit(at + "/0")
		pointers(at+"/0", t.Elem(), visit)
	case reflect.Struct:
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			visit(at + "/" + name)
			pointers(at+"/"+name, f.Type, visit)
		}
	}
}

func TestReport_putsEachFieldAtItsAttributeAndTheRestInOneError(t *testing.T) {
	region := typeOf(newRegionResource())
	var diags diag.Diagnostics
	report(&diags, region, "Create region \"eu\"", fmt.Errorf("wrapped: %w", &fleet.Error{
		Code: fleet.CodeInvalid, Message: "region is not valid",
		Fields: []fleet.FieldError{{Pointer: "/hosts/public", Detail: "names no template; declare it"}, {Pointer: "/containers/endpoint", Detail: "is unknown"}, {Pointer: "/unheard_of", Detail: "is unknown"}},
	}))
	if len(diags) != 3 {
		t.Fatalf("got %d diagnostics, want one for each field: %v", len(diags), diags)
	}
	first, ok := diags[0].(diag.DiagnosticWithPath)
	if !ok || !first.Path().Equal(path.Root("hosts").AtName("public")) {
		t.Errorf("first is not at hosts.public: %v", diags[0])
	}
	if want := "Names no template; declare it."; diags[0].Detail() != want {
		t.Errorf("detail = %q, want %q", diags[0].Detail(), want)
	}

	diags = nil
	report(&diags, region, "Update region \"eu\"", fleet.Errorf(fleet.CodePrecondition, "it is at generation 3, not 2"))
	if got := diags[0].Detail(); !strings.Contains(got, "It is at generation 3, not 2.") || !strings.Contains(got, "Plan again") {
		t.Errorf("a lost update does not say what to do: %q", got)
	}

	diags = nil
	report(&diags, region, "Update region \"eu\"", &api.Error{Status: 429, RetryAfter: 2 * time.Minute, Err: fleet.Errorf(fleet.CodeUnavailable, "too many requests")})
	if got, want := diags[0].Detail(), "Too many requests. It asks to be left alone for 2m0s; try again after that."; got != want {
		t.Errorf("detail = %q, want %q", got, want)
	}

	// What the summary says already is not said again.
	diags = nil
	report(&diags, region, "Read server nobody/eu", fmt.Errorf("read server nobody/eu: %w", fleet.Errorf(fleet.CodeNotFound, "server nobody/eu does not exist")))
	if got, want := diags[0].Detail(), "Server nobody/eu does not exist."; got != want {
		t.Errorf("detail = %q, want %q", got, want)
	}
}
