package server_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestK9_whatWasShownIsAcceptedAndNothingElse(t *testing.T) {
	w, ctx := newKubeWorld(t), t.Context()
	w.must(w.client.PutRegion(ctx, kubeRegion("eu"), api.PutOptions{}))
	w.must(w.client.PutAccount(ctx, fleet.Account{ID: "acme"}, api.PutOptions{}))
	w.put(srv("acme", "eu", "v1"))
	at := func(uid, seen string, reason fleet.Reason) {
		t.Helper()
		list, err := w.client.Namespaces(ctx)
		if err != nil || len(list) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		want := api.Namespace{Cluster: "prod", Namespace: "kura", UID: uid, Seen: seen, Reason: reason, Servers: 1}
		got := list[0]
		got.Since, got.Message = nil, ""
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("(-want +got)\n%s", d)
		}
	}
	at("", "", fleet.ReasonRuntimeError) // no cluster answers
	w.runtimes.uids = map[string]string{"prod/kura": "one"}
	at("", "one", "")
	err := w.client.AcceptNamespace(ctx, "prod", "kura", "one")
	wantFault(t, err, fleet.CodeNotFound, "", "not observed yet")
	w.must(nil, w.records.Identify(ctx, fleet.KubeIdentity{Cluster: "prod", Namespace: "kura", UID: "one"}))
	at("one", "one", "")

	w.runtimes.uids["prod/kura"] = "two"
	at("one", "two", fleet.ReasonClusterChanged)
	w.must(nil, w.records.Identify(ctx, fleet.KubeIdentity{Cluster: "prod", Namespace: "kura", UID: "two"}))
	at("one", "two", fleet.ReasonClusterChanged) // what is stored is not overwritten by an observation
	w.runtimes.uids["prod/kura"] = "three"
	wantFault(t, w.client.AcceptNamespace(ctx, "prod", "kura", "two"), fleet.CodeConflict, "", `"three" now`, "look at it again")
	at("one", "three", fleet.ReasonClusterChanged)
	w.must(nil, w.client.AcceptNamespace(ctx, "prod", "kura", "three"))
	w.must(nil, w.client.AcceptNamespace(ctx, "prod", "kura", "three")) // repeated
	w.viewed()
	at("three", "three", "")

	delete(w.runtimes.uids, "prod/kura")
	at("three", "", fleet.ReasonNamespaceGone)
	w.must(nil, w.client.AcceptNamespace(ctx, "prod", "kura", ""))
	w.viewed()
	at("", "", "")
	limited, err := w.clientWith(w.token("writer", fleet.ScopeWrite)).Namespaces(ctx)
	if fleet.CodeOf(err) != fleet.CodeForbidden {
		t.Errorf("a token that is no admin's sees %+v, %v", limited, err)
	}
}
