package main

import (
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/readiness"
)

func TestOpenZones_oneWithATokenHasAnAPIForChangesAndOneForListings(t *testing.T) {
	z, err := openZones(options{zones: []string{"a.test,cloudflare=/none", "b.test"}, resolver: "127.0.0.1:1"}, fleet.Environment{}, readiness.NewPolicy(nil))
	if err != nil {
		t.Fatal(err)
	}
	if z.writers["a.test"] == nil || z.watched["a.test"] == nil || z.writers["a.test"].Publisher.API == z.watched["a.test"] || z.writers["b.test"] != nil || z.watched["b.test"] != nil {
		t.Errorf("writers %v, watched %v", z.writers, z.watched)
	}
}
