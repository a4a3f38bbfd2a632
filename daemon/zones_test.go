package main

import (
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/readiness"
)

func TestOpenZones_oneWithATokenHasAnAPIForChangesAndOneForListings(t *testing.T) {
	z, err := openZones(options{zones: []string{"a.test,cloudflare=/none", "b.test"}, resolver: "127.0.0.1:1"}, readiness.NewPolicy(nil))
	if err != nil {
		t.Fatal(err)
	}
	if z.apis["a.test"] == nil || z.watched["a.test"] == nil || z.apis["a.test"] == z.watched["a.test"] || z.apis["b.test"] != nil || z.watched["b.test"] != nil {
		t.Errorf("apis %v, watched %v", z.apis, z.watched)
	}
}
