package server_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestVersion_saysWhatTheDaemonIs(t *testing.T) {
	w := newWorld(t)
	got, err := w.client.Version(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := api.VersionInfo{
		Environment: "staging", Suffix: "-staging", Suffixes: fleet.DefaultSuffixes(), Version: "1.2.3", APIVersion: "v1",
		Capabilities: api.Capabilities{Runtimes: []fleet.RuntimeKind{"containers", "kubernetes"}, ContainerEndpoints: []string{"podman"}, Clusters: []string{}, DNSModes: []fleet.DNSMode{"none"}, Zones: []string{}},
		Leader:       api.Leader{Self: true},
		Store:        &api.StoreHealth{},
		Conditions:   []api.DaemonCondition{{Type: "StoreHealthy", Status: fleet.True, Reason: "Healthy", Message: "the store answers and has room"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAccounts_areWrittenReadListedAndRemoved(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	made, err := w.client.PutAccount(ctx, fleet.Account{ID: "acme", Handle: "acme-corp", Labels: map[string]string{"tier": "gold"}}, api.PutOptions{IfNoneMatch: true})
	if err != nil {
		t.Fatal(err)
	}
	want := api.Account{Generation: 1, Account: fleet.Account{ID: "acme", Handle: "acme-corp", Labels: map[string]string{"tier": "gold"}}}
	if diff := cmp.Diff(api.Written[api.Account]{Object: want, Created: true, Changed: true}, made); diff != "" {
		t.Error(diff)
	}
	got, err := w.client.GetAccount(ctx, "acme")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	again, err := w.client.PutAccount(ctx, want.Account, api.PutOptions{})
	if err != nil || again.Changed || again.Object.Generation != 1 {
		t.Errorf("an equal declaration: %+v, %v; want no change at generation 1", again, err)
	}
	_, err = w.client.PutAccount(ctx, want.Account, api.PutOptions{IfNoneMatch: true})
	wantFault(t, err, fleet.CodeConflict, "", `account "acme" exists already`, "import it")
	_, err = w.client.PutAccount(ctx, fleet.Account{ID: "acme"}, api.PutOptions{IfMatch: 7})
	wantFault(t, err, fleet.CodePrecondition, "", "generation 1", "not 7")
	for _, id := range []string{"b", "a"} {
		w.must(w.client.PutAccount(ctx, fleet.Account{ID: id}, api.PutOptions{}))
	}
	list, err := w.client.ListAccounts(ctx)
	if err != nil || len(list) != 3 || list[0].ID != "a" || list[1].ID != "acme" || list[2].ID != "b" {
		t.Errorf("list %+v, %v", list, err)
	}
	if err := w.client.DeleteAccount(ctx, "acme"); err != nil {
		t.Fatal(err)
	}
	_, err = w.client.GetAccount(ctx, "acme")
	wantFault(t, err, fleet.CodeNotFound, "", `account "acme" does not exist`)
	wantFault(t, w.client.DeleteAccount(ctx, "acme"), fleet.CodeNotFound, "", `account "acme" does not exist`)
}

func TestLists_areCutIntoPagesOfOneRevision(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"})
	for i := range 5 {
		id := fmt.Sprintf("a%d", i)
		w.must(w.client.PutAccount(t.Context(), fleet.Account{ID: id}, api.PutOptions{}))
		w.put(srv(id, "eu", "v1"))
	}
	for _, path := range []string{"/v1/accounts", "/v1/servers"} {
		var ids []string
		next := ""
		for page := 0; page < 4; page++ {
			var got struct {
				Items []struct{ ID, Account string }
				Next  string
			}
			w.getJSON(path+"?limit=2&page="+next, &got)
			for _, item := range got.Items {
				ids = append(ids, item.ID+item.Account)
			}
			if page == 0 { // what comes later is not on the pages of this list
				_, err := w.client.PutAccount(t.Context(), fleet.Account{ID: "a3x"}, api.PutOptions{})
				w.must(nil, err)
				w.put(srv("a3x", "eu", "v1"))
			}
			if next = got.Next; next == "" {
				break
			}
		}
		if diff := cmp.Diff([]string{"a0", "a1", "a2", "a3", "a4"}, ids); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
		w.must(w.client.DeleteServer(t.Context(), key("a3x", "eu")))
		w.remove(key("a3x", "eu"))
		if err := w.client.DeleteAccount(t.Context(), "a3x"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLists_aPageOfAnotherStoreAsksToBeginAgain(t *testing.T) {
	w := newWorld(t)
	for _, path := range []string{"/v1/accounts", "/v1/host-templates", "/v1/regions", "/v1/servers", "/v1/cache-endpoints"} {
		p := w.problem("GET", path+"?page=Zm9yZWlnbiwxLGE", "", w.admin)
		if p.Code != api.CodeCursorExpired || p.Status != 410 {
			t.Errorf("%s: %+v", path, p)
		}
	}
}

func TestHostTemplates_showWhatFollowsFromThePattern(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.must(w.client.PutHostTemplate(ctx, template(), api.PutOptions{}))
	got, err := w.client.GetHostTemplate(ctx, "public")
	want := api.HostTemplate{Generation: 1, HostTemplate: template(), EnvSuffix: "-staging", Zone: "kura.test", Example: "acme-eu-central-staging.kura.test"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	list, err := w.client.ListHostTemplates(ctx)
	if diff := cmp.Diff([]api.HostTemplate{want}, list); diff != "" || err != nil {
		t.Error(diff, err)
	}
	w.must(w.client.PutRegion(ctx, region("eu"), api.PutOptions{}))
	wantFault(t, w.client.DeleteHostTemplate(ctx, "public"), fleet.CodeConflict, "", `host template "public"`, `region "eu"`, "delete that region first")
	if err := w.client.DeleteRegion(ctx, "eu"); err != nil {
		t.Fatal(err)
	}
	if err := w.client.DeleteHostTemplate(ctx, "public"); err != nil {
		t.Fatal(err)
	}
}

func TestRegions_readAsTheyWereDeclared(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.must(w.client.PutHostTemplate(ctx, template(), api.PutOptions{}))
	made, err := w.client.PutRegion(ctx, region("eu"), api.PutOptions{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.client.GetRegion(ctx, "eu")
	if diff := cmp.Diff(api.Region{Generation: 1, Region: region("eu")}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if diff := cmp.Diff(got, made.Object); diff != "" {
		t.Error(diff)
	}
	list, err := w.client.ListRegions(ctx)
	if len(list) != 1 || err != nil {
		t.Error(list, err)
	}
}

func TestP18_whatAServerNeedsCannotGo(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	wantFault(t, w.client.DeleteAccount(ctx, "acme"), fleet.CodeConflict, "", `account "acme"`, "server acme/eu", "destroy its servers first")
	wantFault(t, w.client.DeleteRegion(ctx, "eu"), fleet.CodeConflict, "", `region "eu"`, "server acme/eu", "destroy its servers first")
	w.must(w.client.DeleteServer(ctx, key("acme", "eu")))
	wantFault(t, w.client.DeleteAccount(ctx, "acme"), fleet.CodeConflict, "", "server acme/eu")
	w.remove(key("acme", "eu"))
	for _, err := range []error{w.client.DeleteAccount(ctx, "acme"), w.client.DeleteRegion(ctx, "eu")} {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestDeletionProtection_refusesAndSaysHowToLiftIt(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	w.must(w.client.PutAccount(ctx, fleet.Account{ID: "safe", DeletionProtection: true}, api.PutOptions{}))
	r := region("kept")
	r.DeletionProtection = true
	w.must(w.client.PutRegion(ctx, r, api.PutOptions{}))
	wantFault(t, w.client.DeleteAccount(ctx, "safe"), fleet.CodeConflict, "", "deletion_protection = false")
	wantFault(t, w.client.DeleteRegion(ctx, "kept"), fleet.CodeConflict, "", "deletion_protection = false")

	s := srv("acme", "eu", "v1")
	s.DeletionProtection = true
	w.put(s)
	w.turn(s.Key(), active("v1", "https://acme-eu-staging.kura.test:20001"))
	_, err := w.client.DeleteServer(ctx, s.Key())
	wantFault(t, err, fleet.CodeConflict, "", "server acme/eu is protected", "deletion_protection = false")

	young := srv("acme", "kept", "v1")
	young.DeletionProtection = true
	w.put(young)
	if _, err := w.client.DeleteServer(ctx, young.Key()); err != nil {
		t.Errorf("protection does not bind a server that was never active: %v", err)
	}
}
