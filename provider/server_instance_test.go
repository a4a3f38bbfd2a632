package provider

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// adoptedView is a server whose instance was taken over and differs.
func adoptedView(verdict fleet.Verdict, reason fleet.Reason) fleet.ServerView {
	v := view(verdict, reason, "", "2", fleet.DeploymentPending)
	v.Holds = []fleet.Hold{{Kind: fleet.HoldAdoption, Message: "the engine says so"}}
	v.Resource = &fleet.KubeInstance{
		Namespace: "kura", Name: "kura-acme-eu", UID: "uid-1", Adopted: true, SpecImage: "old.test/cache:2",
		Differs: []fleet.FieldDifference{
			{Path: "metadata.labels[dev.kura/environment]", Want: `"staging"`},
			{Path: "spec.image", Have: `"old.test/cache:2"`, Want: `"new.test/cache:2"`, Manager: "tuist-server"},
			{Path: "spec.storageSize", Want: `"50Gi"`},
		},
	}
	return v
}

func TestK6_aPlanShowsExactlyHowAnInstanceThatWasTakenOverDiffers(t *testing.T) {
	imported, applied := before{types.StringNull(), ""}, before{types.StringValue("2"), "2"}
	equal := adoptedView(fleet.VerdictProgressing, fleet.ReasonAccepted)
	equal.Resource.Differs = equal.Resource.Differs[:1]
	admission := adoptedView(fleet.VerdictHeld, fleet.ReasonAdmission)
	admission.Holds = []fleet.Hold{{Kind: fleet.HoldAdmission, Message: "the engine says so"}}
	for _, c := range []struct {
		name string
		view fleet.ServerView
		was  before
		held bool
	}{
		{"after an import", adoptedView(fleet.VerdictHeld, "Adoption"), imported, true},
		{"at every plan until an apply", adoptedView(fleet.VerdictHeld, "Adoption"), applied, true},
		{"where the region only observes", adoptedView(fleet.VerdictDrifted, fleet.ReasonDrifted), applied, true},
		{"before a turn has looked", adoptedView(fleet.VerdictProgressing, fleet.ReasonAccepted), imported, true},
		{"while the cluster cannot be seen", adoptedView(fleet.VerdictUnobserved, fleet.ReasonNotObservedYet), imported, true},
		{"once it was applied, before a turn has looked", adoptedView(fleet.VerdictProgressing, fleet.ReasonAccepted), applied, false},
		{"where only metadata differs", equal, imported, false},
		{"held by something else", admission, applied, false},
	} {
		got := project(c.view, c.was, time.Now())
		if got.imageTag.IsNull() != c.held {
			t.Errorf("%s: image_tag = %s, want it null: %t", c.name, got.imageTag, c.held)
		}
		if !c.held {
			continue
		}
		for _, want := range []string{
			"KuraInstance kura/kura-acme-eu was made by somebody else and runs old.test/cache:2",
			"\n  spec.image: \"old.test/cache:2\" -> \"new.test/cache:2\" (set by tuist-server)\n  spec.storageSize: nothing -> \"50Gi\"\n",
		} {
			if got.warning == nil || !strings.Contains(got.warning.detail, want) {
				t.Errorf("%s: the warning lacks %q: %+v", c.name, want, got.warning)
			}
		}
		if got.warning != nil && strings.Contains(got.warning.detail, "metadata.") {
			t.Errorf("%s: metadata, which is changed at once, is in the warning: %s", c.name, got.warning.detail)
		}
	}
}

// In a region that only observes nobody else would tell.
func TestS10_aPlanShowsWhichFieldsOfAnInstanceDrifted(t *testing.T) {
	applied := before{types.StringValue("2"), "2"}
	changed := view(fleet.VerdictDrifted, fleet.ReasonDrifted, "2", "2", fleet.DeploymentSucceeded)
	changed.Resource = &fleet.KubeInstance{Namespace: "kura", Name: "kura-acme-eu", Differs: []fleet.FieldDifference{
		{Path: "metadata.labels[team]", Want: `"build"`}, {Path: "spec.storageSize", Have: `"20Gi"`, Want: `"50Gi"`, Manager: "kubectl-edit"},
	}}
	other := changed
	other.ObservedImageTag = "1"
	same := changed
	same.Resource = &fleet.KubeInstance{}
	for name, c := range map[string]struct {
		view fleet.ServerView
		want types.String
		says bool
	}{
		"other fields than the version": {changed, types.StringNull(), true},
		"the version among them":        {other, types.StringValue("1"), true},
		"nothing that is listed":        {same, types.StringValue("2"), false},
	} {
		got := project(c.view, applied, time.Now())
		if !got.imageTag.Equal(c.want) || (got.warning != nil) != c.says {
			t.Errorf("%s: image_tag = %s, warning %+v; want %s, a warning: %t", name, got.imageTag, got.warning, c.want, c.says)
		}
		if !c.says || got.warning == nil {
			continue
		}
		for _, want := range []string{"KuraInstance kura/kura-acme-eu", "\n  metadata.labels[team]: nothing -> \"build\"", "\n  spec.storageSize: \"20Gi\" -> \"50Gi\" (set by kubectl-edit)\n", "`remediation = \"observe\"`"} {
			if !strings.Contains(got.warning.detail, want) {
				t.Errorf("%s: the warning lacks %q: %s", name, want, got.warning.detail)
			}
		}
	}
}

func TestK3_K1_K10_whatAClusterLeavesOutOrChangesIsSaidOncePerRegion(t *testing.T) {
	a := view(fleet.VerdictConverged, "", "2", "2", fleet.DeploymentSucceeded)
	a.Resource = &fleet.KubeInstance{
		Dropped: []string{"spec.clientHostAliases", "spec.mesh"},
		Held: []fleet.FieldDifference{
			{Path: "spec.replicas", Have: "3", Want: "1", Manager: "autoscaler"},
			{Path: "spec.nodeSelector.pool", Have: `"a"`, Want: `"b"`, Manager: "ops"},
		},
		Altered: []fleet.FieldDifference{{Path: "spec.image", Have: `"mirror/a"`, Want: `"hub/a"`}},
	}
	b := a
	b.Account = "bravo"
	held := *a.Resource
	held.Held = []fleet.FieldDifference{held.Held[1], {Path: "spec.replicas", Have: "7", Want: "1", Manager: "autoscaler"}}
	b.Resource = &held
	first, second := notices(a), notices(b)
	if len(first) != 3 || len(second) != 3 {
		t.Fatalf("%d and %d notices, want 3 each", len(first), len(second))
	}
	for i, wants := range [][]string{
		{`Region "eu"`, "spec.clientHostAliases, spec.mesh", "Upgrade the definition"},
		{`Region "eu"`, "spec.replicas (by autoscaler)", "spec.nodeSelector.pool (by ops)", "spec.replicas: 3 -> 1", "force_conflicts = true"},
		{`Region "eu"`, "writes spec.image otherwise", `spec.image: "mirror/a" -> "hub/a"`, "change the webhook or policy"},
	} {
		if first[i].key != second[i].key {
			t.Errorf("two servers of a region are two warnings: %q and %q", first[i].key, second[i].key)
		}
		for _, want := range wants {
			if said := first[i].summary + " " + first[i].detail; !strings.Contains(said, want) {
				t.Errorf("%q lacks %q", said, want)
			}
		}
	}
	a.Resource = &fleet.KubeInstance{}
	if got := notices(a); len(got) > 0 {
		t.Errorf("nothing is left out, and it says %v", got)
	}
}

func TestK6_anInstancesNameMeansTheServerThatItCouldBeOf(t *testing.T) {
	kube := &fleet.Kubernetes{Cluster: "prod", Image: "cache"}
	answers := map[string]any{
		"/v1/servers": api.List[fleet.ServerView]{Items: []fleet.ServerView{
			{Account: "acme", Region: "eu", Instance: "kura-acme-eu"}, {Account: "a", Region: "x", Instance: "kura-a-eu"}, {Account: "bravo", Region: "edge", Instance: "kura-bravo-edge"},
		}},
		"/v1/accounts": api.List[api.Account]{Items: []api.Account{
			{Account: fleet.Account{ID: "acme"}}, {Account: fleet.Account{ID: "bravo"}}, {Account: fleet.Account{ID: "a"}}, {Account: fleet.Account{ID: "a-b"}},
		}},
		"/v1/regions": api.List[api.Region]{Items: []api.Region{
			{Region: fleet.Region{Name: "eu", Kubernetes: kube}}, {Region: fleet.Region{Name: "us", ClusterID: "us-1", Kubernetes: kube}},
			{Region: fleet.Region{Name: "edge"}}, {Region: fleet.Region{Name: "c", Kubernetes: kube}}, {Region: fleet.Region{Name: "b-c", Kubernetes: kube}},
		}},
	}
	s, _ := sessionWith(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answers[r.URL.Path]); err != nil {
			t.Error(err)
		}
	})
	for id, want := range map[string]string{
		"acme/eu": "acme/eu", "kura-acme-eu": "acme/eu", "kura-bravo-us-1": "bravo/us",
		"kura-bravo-us": "no server's instance is called", "kura-acme-edge": "no server's instance is called",
		"kura-bravo-edge": "bravo/edge", "kura-a-b-c": "servers a-b/c, a/b-c;", "kura-a-eu": "servers a/eu, a/x;",
	} {
		key, err := find(t.Context(), s.client, id)
		if got := key.String(); err != nil && !strings.Contains(err.Error(), want) || err == nil && got != want {
			t.Errorf("%q means %q, %v; want %q", id, got, err, want)
		}
	}
}

func TestK6_anImportTakesOverWhatBearsTheNameOfADeclaredServer(t *testing.T) {
	foreign := view(fleet.VerdictFailed, fleet.ReasonForeignInstance, "", "", fleet.DeploymentFailed)
	key := fleet.ServerKey{Account: "acme", Region: "eu"}
	for name, c := range map[string]struct {
		view    fleet.ServerView
		region  fleet.Region
		adopted bool
	}{
		"a foreign instance":  {foreign, fleet.Region{Name: "eu", Kubernetes: &fleet.Kubernetes{}}, true},
		"a foreign container": {foreign, fleet.Region{Name: "eu"}, false},
		"its own":             {view(fleet.VerdictFailed, fleet.ReasonCrashLoop, "", "", fleet.DeploymentFailed), fleet.Region{Name: "eu", Kubernetes: &fleet.Kubernetes{}}, false},
	} {
		adopted := false
		s, _ := sessionWith(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			var answer any = c.view
			switch {
			case r.URL.Path == "/v1/regions/eu":
				answer = api.Region{Region: c.region}
			case strings.HasSuffix(r.URL.Path, ":adopt"):
				adopted = true
				w.Header().Set("Content-Type", "application/problem+json")
				w.WriteHeader(http.StatusConflict)
				answer = map[string]any{"title": "Conflict", "status": http.StatusConflict, "code": "conflict", "detail": "it is server acme/eu of environment production"}
			}
			if err := json.NewEncoder(w).Encode(answer); err != nil {
				t.Error(err)
			}
		})
		err := takeOver(t.Context(), s, s.client, key)
		if adopted != c.adopted || (err != nil) != c.adopted || err != nil && !strings.Contains(err.Error(), "of environment production") {
			t.Errorf("%s: asked to adopt it %t, want %t; %v", name, adopted, c.adopted, err)
		}
	}
}
