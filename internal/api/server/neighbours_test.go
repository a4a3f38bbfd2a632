package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

func TestH8_aTemplateMovesMoreHostsThanATransactionHolds(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"})
	const n = 150
	for i := range n {
		id := fmt.Sprintf("a%03d", i)
		w.must(w.client.PutAccount(ctx, fleet.Account{ID: id}, api.PutOptions{}))
		w.put(srv(id, "eu", "v1"))
	}
	out, err := w.client.PutHostTemplate(ctx, fleet.HostTemplate{Name: "public", Pattern: "x-{account_handle}-{cluster_id}{env_suffix}.kura.test"}, api.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if text := out.Warnings[0].Detail; !strings.HasPrefix(text, "150 hosts move: server a000/eu moves from a000-eu-staging.kura.test to x-a000-eu-staging.kura.test; ") || !strings.HasSuffix(text, "and 140 more") {
		t.Errorf("%s", text)
	}
	for _, host := range []string{"x-a000-eu-staging.kura.test", "x-a149-eu-staging.kura.test"} {
		if _, held, err := w.records.Owner(ctx, store.ReserveHost(host)); !held || err != nil {
			t.Errorf("%s is not reserved: %v", host, err)
		}
	}
	if v, err := w.client.GetServer(ctx, key("a149", "eu"), api.GetOptions{}); err != nil || v.Hosts.Public != "x-a149-eu-staging.kura.test" || v.Generation != 1 {
		t.Errorf("%+v, %v", v, err)
	}
}

func TestH4_aTemplateUnderWhichTwoServersMeetIsRefused(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu", "us"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	w.put(srv("acme", "us", "v1"))
	same := fleet.HostTemplate{Name: "public", Pattern: "{account_handle}{env_suffix}.kura.test"}
	for _, dry := range []bool{true, false} {
		_, err := w.client.PutHostTemplate(ctx, same, api.PutOptions{DryRun: dry})
		wantFault(t, err, fleet.CodeConflict, "/pattern", `host "acme-staging.kura.test"`, "acme/eu", "acme/us", "choose another pattern")
	}
	if got, err := w.client.GetHostTemplate(ctx, "public"); got.Generation != 1 || err != nil {
		t.Errorf("it was written: %+v, %v", got, err)
	}
}

func TestH4_aHandleThatLeadsToATakenHostIsRefused(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme", "beta")
	w.put(srv("acme", "eu", "v1"))
	w.put(srv("beta", "eu", "v1"))
	w.put(w.lookalike("twin", "other"))
	_, err := w.client.PutAccount(ctx, fleet.Account{ID: "twin", Handle: "acme-eu"}, api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/handle", "twin/bare", "acme/eu", "choose another handle")
	_, err = w.client.PutAccount(ctx, fleet.Account{ID: "beta", Handle: strings.Repeat("b", 60)}, api.PutOptions{})
	wantFault(t, err, fleet.CodeInvalid, "/handle", "63", "choose another handle")
}

func TestC12_aRegionThatGetsAPortGivesOneToEachOfItsServers(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"})
	const n = 60
	before := map[string]int{}
	for i := range n {
		id := fmt.Sprintf("a%03d", i)
		w.must(w.client.PutAccount(ctx, fleet.Account{ID: id}, api.PutOptions{}))
		before[id] = w.put(srv(id, "eu", "v1")).Ports["cache/http"]
	}
	r := region("eu")
	r.Containers.Services["cache"].Ports["admin"] = fleet.Port{Container: 9000}
	if _, err := w.client.PutRegion(ctx, r, api.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	list, err := w.client.ListServers(ctx, api.ServerFilter{Region: "eu"})
	if err != nil || len(list) != n {
		t.Fatal(len(list), err)
	}
	seen := map[int]bool{}
	for _, v := range list {
		if v.Ports["cache/http"] != before[v.Account] || v.Generation != 1 {
			t.Errorf("%s: %v at generation %d, had port %d at 1", v.Account, v.Ports, v.Generation, before[v.Account])
		}
		for _, port := range v.Ports {
			if seen[port] {
				t.Errorf("port %d is given twice", port)
			}
			seen[port] = true
		}
	}
	if len(seen) != 2*n {
		t.Errorf("%d ports, want %d", len(seen), 2*n)
	}
}

func TestRegion_whatNamesInstancesCannotChangeUnderThem(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	s := srv("acme", "eu", "v1")
	s.Overrides = &fleet.Overrides{Containers: &fleet.ContainerOverrides{Services: map[string]fleet.ServiceOverride{"cache": {Memory: "64Mi"}}}}
	w.put(s)
	moved := region("eu")
	moved.ClusterID = "other"
	_, err := w.client.PutRegion(ctx, moved, api.PutOptions{})
	wantFault(t, err, fleet.CodeInvalid, "/cluster_id", `from "eu" to "other"`, "servers (1)", "destroy them first")
	renamed := region("eu")
	renamed.Containers.Services = map[string]fleet.Service{"store": renamed.Containers.Services["cache"]}
	_, err = w.client.PutRegion(ctx, renamed, api.PutOptions{})
	wantFault(t, err, fleet.CodeInvalid, "/containers/services", "server acme/eu", `no service "cache"`, "change its overrides first")
	same := region("eu")
	same.ClusterID = "eu" // the default, said
	w.must(w.client.PutRegion(ctx, same, api.PutOptions{}))
}

func TestCordoned_aRegionTakesNoNewServersAndKeepsItsOwn(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme", "beta")
	w.put(srv("acme", "eu", "v1"))
	r := region("eu")
	r.Cordoned = true
	w.must(w.client.PutRegion(ctx, r, api.PutOptions{}))
	_, err := w.client.PutServer(ctx, srv("beta", "eu", "v1"), api.PutOptions{})
	wantFault(t, err, fleet.CodeInvalid, "/region", `region "eu" is cordoned`, "choose another")
	w.put(srv("acme", "eu", "v2"))
}

func TestNeighbours_aServerThatComesDuringAChangeIsRenderedFromIt(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"})
	const n = 20
	var wg sync.WaitGroup
	for i := range n {
		id := fmt.Sprintf("a%02d", i)
		w.must(w.client.PutAccount(ctx, fleet.Account{ID: id}, api.PutOptions{}))
		wg.Go(func() { w.must(w.client.PutServer(ctx, srv(id, "eu", "v1"), api.PutOptions{})) })
		if i%5 == 0 {
			wg.Go(func() {
				pattern := fmt.Sprintf("p%d-{account_handle}-{cluster_id}{env_suffix}.kura.test", i)
				w.must(w.client.PutHostTemplate(ctx, fleet.HostTemplate{Name: "public", Pattern: pattern}, api.PutOptions{}))
			})
		}
	}
	wg.Wait()
	list, err := w.client.ListServers(ctx, api.ServerFilter{})
	if err != nil || len(list) != n {
		t.Fatal(len(list), err)
	}
	for _, v := range list {
		owner, _, err := w.records.Owner(ctx, store.ReserveHost(v.Hosts.Public))
		if owner.Account != v.Account || err != nil {
			t.Errorf("host %s of %s is reserved by %v, %v", v.Hosts.Public, v.Account, owner, err)
		}
	}
}

// A KuraInstance has aliases of its public host only: whoever moves another one hears that
// the old one ends (H8), in a dry run and with the write.
func TestH8_K7_aPlanWarnsOfGRPCAndGlobalHostsThatMoveInAKubernetesRegion(t *testing.T) {
	newFleet := func(t *testing.T) *world {
		w, ctx := newKubeWorld(t), t.Context()
		for _, name := range []string{"grpc", "global"} {
			w.must(w.client.PutHostTemplate(ctx, fleet.HostTemplate{Name: name, Pattern: name + "-{account_handle}-{cluster_id}{env_suffix}.kura.test"}, api.PutOptions{}))
		}
		eu := kubeRegion("eu")
		eu.Hosts.GRPC, eu.Hosts.Global, eu.Location = "grpc", "global", &fleet.Location{Latitude: 50, Longitude: 8}
		w.must(w.client.PutRegion(ctx, eu, api.PutOptions{}))
		w.must(w.client.PutRegion(ctx, region("box"), api.PutOptions{}))
		w.must(w.client.PutAccount(ctx, fleet.Account{ID: "acme"}, api.PutOptions{}))
		w.put(srv("acme", "eu", "v1"))
		return w
	}
	const ends, containers = "KuraInstances route old public hosts only, so ", "containers route no old hosts: keep the DNS records of the old hosts until their clients have the new ones"
	const soon, next = " as soon as kurad applies the change: ", "; give their clients the new ones"
	grpc, global := "gRPC host grpc-acme-eu-staging.kura.test of server acme/eu", "global host global-acme-eu-staging.kura.test of server acme/eu"
	pattern := func(name string) func(*world, api.PutOptions) ([]fleet.Warning, error) {
		return func(w *world, o api.PutOptions) ([]fleet.Warning, error) {
			out, err := w.client.PutHostTemplate(t.Context(), fleet.HostTemplate{Name: name, Pattern: "new-" + name + "-{account_handle}-{cluster_id}{env_suffix}.kura.test"}, o)
			return out.Warnings, err
		}
	}
	renamed := func(w *world, o api.PutOptions) ([]fleet.Warning, error) {
		out, err := w.client.PutAccount(t.Context(), fleet.Account{ID: "acme", Handle: "corp"}, o)
		return out.Warnings, err
	}
	for name, c := range map[string]struct {
		put  func(*world, api.PutOptions) ([]fleet.Warning, error)
		box  bool // the account has a server of containers, too
		want []string
	}{
		"an account":                    {put: renamed, want: []string{ends + "2 hosts end" + soon + grpc + ", " + global + next}},
		"an account in regions of both": {put: renamed, box: true, want: []string{containers, ends + "2 hosts end" + soon + grpc + ", " + global + next}},
		"the template of gRPC":          {put: pattern("grpc"), want: []string{ends + "1 host ends" + soon + grpc + next}},
		"the global template":           {put: pattern("global"), want: []string{ends + "1 host ends" + soon + global + next}},
		"the public template":           {put: pattern("public")},
		"a region": {put: func(w *world, o api.PutOptions) ([]fleet.Warning, error) {
			without := kubeRegion("eu")
			without.Hosts.GRPC, without.Location = "grpc", &fleet.Location{Latitude: 50, Longitude: 8}
			out, err := w.client.PutRegion(t.Context(), without, o)
			return out.Warnings, err
		}, want: []string{ends + "1 host ends" + soon + global + next}},
	} {
		w := newFleet(t)
		if c.box {
			w.put(srv("acme", "box", "v1"))
		}
		w.viewed()
		for _, dry := range []bool{true, false} {
			warnings, err := c.put(w, api.PutOptions{DryRun: dry})
			var got []string
			for _, warning := range warnings {
				if warning.Code == fleet.WarnNoAlias {
					got = append(got, warning.Detail)
				}
			}
			if d := cmp.Diff(c.want, got); d != "" || err != nil {
				t.Errorf("%s, dry run %v: %v (-want +got)\n%s", name, dry, err, d)
			}
		}
	}
}
