package server

import (
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A route that does not say which accounts it is about, or says what its path does not,
// is found when the daemon is built: a forgotten word never opens an account to others.
func TestRoutes_aRowThatDoesNotSayWhoseItIsDoesNotStart(t *testing.T) {
	for _, c := range []struct {
		method, path string
		scope        fleet.Scope
		about        subject
		want         string // part of the error; empty: it is fine
	}{
		{"GET", "/v1/accounts/{id}", fleet.ScopeRead, ofID, ""},
		{"PUT", "/v1/cache-endpoints/{account}/{key}", fleet.ScopeWrite, ofAccount, ""},
		{"GET", "/v1/servers", fleet.ScopeRead, ofListed, ""},
		{"POST", "/v1/servers/{account}/{region}:adopt", fleet.ScopeWrite, ofUnlabelled, ""},
		{"POST", "/v1/things", fleet.ScopeWrite, ofUnlabelled, "no parameter {account}"},
		{"PUT", "/v1/regions/{name}", fleet.ScopeWrite, ofNone, ""},
		{"DELETE", "/v1/tokens/{id}", fleet.ScopeAdmin, ofDaemon, ""},
		{"GET", "/v1/things", "", ofNone, "declares no scope"},
		{"GET", "/v1/things", fleet.ScopeRead, "", "does not say which accounts"},
		{"GET", "/v1/things", fleet.ScopeRead, "all", "does not say which accounts"},
		{"POST", "/v1/things", fleet.ScopeWrite, ofListed, "only a read"},
		{"GET", "/v1/things/{account}", fleet.ScopeRead, ofListed, "only a read"},
		{"GET", "/v1/things/{account}", fleet.ScopeRead, ofNone, "say so in its row"},
		{"GET", "/v1/accounts/{id}/things", fleet.ScopeRead, ofDaemon, "say so in its row"},
		{"GET", "/v1/things/{id}", fleet.ScopeRead, ofID, "no parameter {id} that names an account"},
		{"GET", "/v1/accounts/{id}", fleet.ScopeRead, ofAccount, "no parameter {account}"},
	} {
		err := route{id: "x", method: c.method, path: c.path, scope: c.scope, about: c.about}.check()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s %s %q: %v, want %q", c.method, c.path, c.scope, c.about, err, c.want)
		}
	}
}
