//go:build real

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// The store is lost: the containers go on, show as orphans, and the same declarations take
// them up as they are, in whatever order they come, redeployed ones included.
func TestG7_aLostDataDirectoryRestartsNothing(t *testing.T) {
	t.Parallel()
	k := startKurad(t)
	name := "eu-lost"
	accounts := []string{"acme", "umbra", "globex"}
	k.declare(region(name), accounts...)
	ids := map[string]string{}
	for _, a := range accounts {
		k.put(fleet.ServerKey{Account: a, Region: name}, "v1")
	}
	redeployed := fleet.ServerKey{Account: "globex", Region: name}
	k.converged(redeployed, "v1")
	if _, err := k.client.Redeploy(t.Context(), redeployed, "again"); err != nil {
		t.Fatal(err)
	}
	k.until(redeployed, "is redeployed", func(v fleet.ServerView) bool {
		return isConverged(v) && v.Deployment.Seq == 2 && v.Deployment.Status == fleet.DeploymentSucceeded
	})
	urls, ports := map[string]string{}, map[string]int{}
	for _, a := range accounts {
		v := k.converged(fleet.ServerKey{Account: a, Region: name}, "v1")
		ids[a], urls[a], ports[a] = started(t, v.Containers[0].ID), v.PublishedURL, v.Ports["cache/https"]
	}

	k.kill()
	for _, part := range []string{"store", tokenFile, endpointFile} {
		if err := os.RemoveAll(filepath.Join(k.dir, part)); err != nil {
			t.Fatal(err)
		}
	}
	k.start()
	eventually(t, "the orphans are listed", func() error {
		var o api.Orphans
		if err := json.Unmarshal([]byte(k.cli("orphans", "--output", "json")), &o); err != nil {
			return err
		}
		var of []string
		for _, c := range o.Items {
			if c.Region == name {
				of = append(of, c.Account+" "+string(c.State))
			}
		}
		slices.Sort(of)
		if d := cmp.Diff([]string{"acme running", "globex running", "umbra running"}, of); d != "" {
			return errText(d)
		}
		return nil
	})
	if table := k.cli("orphans"); !strings.Contains(table, "acme/"+name) {
		t.Errorf("kurad orphans prints\n%s", table)
	}

	// Another one gets the first choice of a port that a lost server may have had.
	k.declare(region(name), append(accounts, "initech")...)
	k.put(fleet.ServerKey{Account: "initech", Region: name}, "v1")
	for _, a := range slices.Backward(accounts) {
		k.put(fleet.ServerKey{Account: a, Region: name}, "v1")
	}
	for _, a := range accounts {
		key := fleet.ServerKey{Account: a, Region: name}
		v := k.converged(key, "v1")
		k.ticks(key, 2)
		if now := started(t, v.Containers[0].ID); now != ids[a] || v.PublishedURL != urls[a] || v.Ports["cache/https"] != ports[a] {
			t.Errorf("%s: container %s at %s, before %s at %s", key, now, v.PublishedURL, ids[a], urls[a])
		}
		if reasons, text := k.events(key); slices.Contains(reasons, "Replaced") || strings.Contains(text, "replace") {
			t.Errorf("%s was replaced:\n%s", key, text)
		}
	}
	var left api.Orphans
	if err := json.Unmarshal([]byte(k.cli("orphans", "--output", "json")), &left); err != nil {
		t.Fatal(err)
	}
	for _, c := range left.Items {
		if c.Region == name {
			t.Errorf("still an orphan: %+v", c)
		}
	}
	// A redeploy still means another container, whatever mark was found.
	if _, err := k.client.Redeploy(t.Context(), redeployed, "once more"); err != nil {
		t.Fatal(err)
	}
	k.until(redeployed, "is redeployed after the loss", func(v fleet.ServerView) bool {
		return isConverged(v) && v.Deployment.Seq == 2 && len(v.Containers) == 1 && started(t, v.Containers[0].ID) != ids["globex"]
	})
}

type errText string

func (e errText) Error() string { return string(e) }
