//go:build real

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func write(t *testing.T, volume, text string) {
	t.Helper()
	path := filepath.Join(podman(t, "volume", "inspect", "--format", "{{.Mountpoint}}", volume), "proof")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, volume string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(podman(t, "volume", "inspect", "--format", "{{.Mountpoint}}", volume), "proof"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// twoServices adds a service to the region that no client sees, with an image that
// follows the tag too.
func twoServices(r *fleet.Region) {
	helper := cacheService()
	helper.Ports = nil
	helper.Volumes = nil
	helper.Env = map[string]string{"KURA_ACCOUNT": "{account}"}
	r.Containers.Services["helper"] = helper
}

func TestP18_severalServicesAreRolledAndDestroyedTogether(t *testing.T) {
	t.Parallel()
	k, key, before := serving(t, "eu-two", twoServices)
	if list := boxes(t, key.Region); len(list) != 2 {
		t.Fatalf("containers %+v, want cache and helper", list)
	}
	k.put(key, "v2")
	v := k.converged(key, "v2")
	for _, b := range boxes(t, key.Region) {
		if b.Image != image("v2") || b.State != "running" {
			t.Errorf("container %+v, want v2", b)
		}
	}
	if len(v.Containers) != 2 || v.PublishedURL != before.PublishedURL {
		t.Errorf("the server is %s", brief(v))
	}
	ids := map[string]string{}
	for _, c := range v.Containers {
		ids[c.Service] = c.ID
	}

	// A change of one service replaces that service alone (C3).
	changed := region(key.Region, twoServices, cache(func(s *fleet.Service) { s.Env["ALPHA"] = "changed" }))
	k.putRegion(changed)
	v = k.until(key, "has the new document", func(v fleet.ServerView) bool {
		return isConverged(v) && v.Containers[0].ID != ids["cache"]
	})
	for _, c := range v.Containers {
		if same := c.ID == ids[c.Service]; same != (c.Service == "helper") {
			t.Errorf("service %s: container %.12s, was %.12s; only cache changed", c.Service, c.ID, ids[c.Service])
		}
	}

	// A service that left the document is taken away.
	k.putRegion(region(key.Region, cache(func(s *fleet.Service) { s.Env["ALPHA"] = "changed" })))
	v = k.until(key, "has one service", func(v fleet.ServerView) bool { return isConverged(v) && len(v.Containers) == 1 })
	theBox(t, key.Region)

	k.delete(key)
	k.gone(key)
	if list := boxes(t, key.Region); len(list) != 0 {
		t.Errorf("containers %+v are left", list)
	}
	if _, err := up(t, before.PublishedURL); err == nil {
		t.Errorf("%s still answers", before.PublishedURL)
	}
	// Nothing needs the region and the account any more.
	if err := k.client.DeleteRegion(t.Context(), key.Region); err != nil {
		t.Error(err)
	}
	if err := k.client.DeleteAccount(t.Context(), key.Account); err != nil {
		t.Error(err)
	}
}

func TestP18_aServerThatIsBeingDestroyedTakesNoWrite(t *testing.T) {
	t.Parallel()
	// The stop takes its whole grace, so that there is time to ask.
	k := startKurad(t)
	key := fleet.ServerKey{Account: "acme", Region: "eu-ending"}
	k.declare(region(key.Region, cache(func(s *fleet.Service) { s.GracePeriod = fleet.Duration(5 * time.Second) })), key.Account)
	k.put(key, "v1-ignoreterm")
	before := k.converged(key, "v1-ignoreterm")
	refused := func(what string, err error, code fleet.Code, words ...string) {
		t.Helper()
		if fleet.CodeOf(err) != code {
			t.Errorf("%s: error %v, want code %s", what, err, code)
			return
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: error %q does not say %q", what, err, w)
			}
		}
	}
	refused("delete the region of a server", k.client.DeleteRegion(t.Context(), key.Region), fleet.CodeConflict, key.String())
	refused("delete the account of a server", k.client.DeleteAccount(t.Context(), key.Account), fleet.CodeConflict, key.String())

	if v := k.delete(key); v.Verdict != fleet.VerdictDestroying || v.PublishedURL != "" {
		t.Errorf("the answer to DELETE is %s; want destroying, with no url published", brief(v))
	}
	_, err := k.client.PutServer(t.Context(), fleet.Server{Account: key.Account, Region: key.Region, ImageTag: "v2"}, api.PutOptions{})
	refused("PUT during the destruction", err, fleet.CodeConflict, key.String())
	if status, answer := k.raw(http.MethodPut, "/v1/servers/acme/"+key.Region, `{"account":"acme","region":"`+key.Region+`","image_tag":"v2"}`); status != http.StatusConflict {
		t.Errorf("PUT during the destruction answered %d %s, want 409", status, answer)
	}
	refused("delete the region of a server that is being destroyed", k.client.DeleteRegion(t.Context(), key.Region), fleet.CodeConflict, key.String())
	if endpoints, err := k.client.Resolve(t.Context(), key.Account); err != nil || len(endpoints) != 0 {
		t.Errorf("clients get %+v, %v; want no endpoint", endpoints, err)
	}
	if b := theBox(t, key.Region); b.State != "running" || b.ID != before.Containers[0].ID {
		t.Errorf("the container is %+v; it should still be in its grace", b)
	}
	k.gone(key)
	if list := boxes(t, key.Region); len(list) != 0 {
		t.Errorf("containers %+v are left", list)
	}

	// The name is free again.
	k.put(key, "v1")
	after := k.converged(key, "v1")
	if after.Generation != 1 || len(k.deployments(key)) != 1 {
		t.Errorf("declared anew the server is %s with %d deployments, want a new life", brief(after), len(k.deployments(key)))
	}
	if d := cmp.Diff(1, len(boxes(t, key.Region))); d != "" {
		t.Error(d)
	}
}
