package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestWire_everyTypeEncodesAsItWasReviewed compares how each type of the wire encodes, with every
// field set and with none, with testdata/wire.txt: names, order and what is left out.
func TestWire_everyTypeEncodesAsItWasReviewed(t *testing.T) {
	var got bytes.Buffer
	e := json.NewEncoder(&got)
	e.SetIndent("", " ")
	for _, zero := range []any{
		api.VersionInfo{}, api.Account{}, api.HostTemplate{}, api.Region{}, api.CacheEndpoint{}, api.Endpoint{},
		api.Written[api.Account]{}, api.List[api.Endpoint]{}, api.ServerChanges{}, api.ServerChange{}, api.EventChanges{},
		api.TokenInfo{}, api.TokenRequest{}, api.CreatedToken{}, api.AdoptRequest{}, api.Orphans{}, api.Namespace{}, api.AcceptRequest{},
		api.AuditAnchor{}, api.Problem{}, api.DNSAudit{}, fleet.PruneRequest{}, fleet.Pruned{}, fleet.TakeRequest{}, fleet.Taken{}, fleet.Server{}, fleet.Deployment{}, fleet.Token{},
	} {
		set := reflect.New(reflect.TypeOf(zero)).Elem()
		n := 0
		fill(set, &n)
		for _, v := range []any{set.Interface(), zero} {
			fmt.Fprintf(&got, "%T ", v)
			if err := e.Encode(v); err != nil {
				t.Fatal(err)
			}
		}
	}
	const file = "testdata/wire.txt"
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

// fill sets every field below v to a value of its own.
func fill(v reflect.Value, n *int) {
	*n++
	switch at := v.Addr().Interface().(type) {
	case *time.Time:
		*at = time.Date(2026, 1, 2, 3, 4, *n, 0, time.UTC)
		return
	case *api.Secret:
		*at = api.NewSecret("secret")
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i), n)
			}
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), n)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key, n)
		fill(value, n)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprint("text", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n))
	default:
		panic("no value for a field of type " + v.Type().String())
	}
}
