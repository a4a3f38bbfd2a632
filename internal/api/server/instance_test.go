package server_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

func TestK6_adoptDeclaresTheServerAtTheVersionOfTheInstanceThatRuns(t *testing.T) {
	w := newKubeWorld(t, "acme")
	k := key("acme", "eu")
	w.runtimes.kube.holds("kura-acme-eu", made("uid-1", "registry.test/cache:v1"))
	done, err := w.client.Adopt(t.Context(), k, api.AdoptRequest{})
	if err != nil || !done.Created || !done.Changed {
		t.Fatalf("%+v, %v", done, err)
	}
	v := done.Object
	if v.Intent.ImageTag != "v1" || v.Resource == nil || v.Resource.UID != "uid-1" || len(v.Resource.Differs) > 0 || v.Deployment.Seq != 1 {
		t.Errorf("it reads as %+v, resource %+v", v, v.Resource)
	}
	g, err := w.records.Gather(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(&fleet.KubeAdoption{UID: "uid-1", Generation: 1}, g.Status.AdoptedResource); d != "" {
		t.Errorf("what is recorded (-want +got):\n%s", d)
	}
	if events, err := w.client.Events(t.Context(), api.EventFilter{}); err != nil || len(events) != 1 || events[0].Reason != "Adopted" || !strings.Contains(events[0].Message, "kura/kura-acme-eu (uid uid-1)") {
		t.Errorf("events %+v, %v", events, err)
	}
	// The same again is success and no write, and so is the declaration as Terraform
	// makes it.
	for _, r := range []api.AdoptRequest{{}, {ImageTag: "v1"}} {
		if again, err := w.client.Adopt(t.Context(), k, r); err != nil || again.Changed || again.Object.Generation != 1 {
			t.Errorf("again %+v: %+v, %v", r, again, err)
		}
	}
	if out, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{}); err != nil || out.Changed {
		t.Errorf("the same declaration: changed %t, %v", out.Changed, err)
	}
}

func TestK6_adoptAsADryRunSaysExactlyWhatDiffersAndWritesNothing(t *testing.T) {
	w := newKubeWorld(t, "acme")
	i := made("uid-1", "elsewhere.test/cache:v1")
	i.spec = map[string]any{"image": i.SpecImage, "storageSize": "20Gi"}
	w.runtimes.kube.holds("kura-acme-eu", i)
	dry, err := w.client.Adopt(t.Context(), key("acme", "eu"), api.AdoptRequest{ImageTag: "v2", DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	want := []fleet.FieldDifference{
		{Path: "spec.image", Have: `"elsewhere.test/cache:v1"`, Want: `"registry.test/cache:v2"`},
		{Path: "spec.storageSize", Have: `"20Gi"`, Want: `"50Gi"`},
	}
	if d := cmp.Diff(want, dry.Object.Resource.Differs); d != "" {
		t.Errorf("what differs (-want +got):\n%s", d)
	}
	if list, err := w.client.ListServers(t.Context(), api.ServerFilter{}); err != nil || len(list) > 0 {
		t.Errorf("a dry run left %d servers, %v", len(list), err)
	}
	if events, err := w.client.Events(t.Context(), api.EventFilter{}); err != nil || len(events) > 0 {
		t.Errorf("a dry run left events %+v, %v", events, err)
	}
}

func TestK6_adoptOfADeclaredServerKeepsItsDeclaration(t *testing.T) {
	w := newKubeWorld(t, "acme")
	declared := srv("acme", "eu", "v1")
	declared.Labels = map[string]string{"team": "build"}
	w.put(declared)
	w.runtimes.kube.holds("kura-acme-eu", made("uid-1", "registry.test/cache:v1"))
	w.turn(key("acme", "eu"), func(s *fleet.Status) { s.Status, s.Reason = fleet.StatusFailed, fleet.ReasonForeignInstance })
	done, err := w.client.Adopt(t.Context(), key("acme", "eu"), api.AdoptRequest{})
	if err != nil || done.Created || done.Object.Generation != 2 || done.Object.Intent.Labels["team"] != "build" {
		t.Fatalf("%+v, %v", done, err)
	}
	g, err := w.records.Gather(t.Context(), key("acme", "eu"))
	if err != nil || g.Status.AdoptedResource == nil || g.Status.AdoptedResource.Generation != 2 {
		t.Errorf("record %+v, %v", g.Status, err)
	}
}

func TestK6_adoptSaysWhyItCannotTakeAnInstance(t *testing.T) {
	w := newKubeWorld(t, "acme", "umbra", "globex", "initech", "hooli", "pied")
	w.must(w.client.PutRegion(t.Context(), region("engine"), api.PutOptions{}))
	cordoned := kubeRegion("closed")
	cordoned.Cordoned = true
	w.must(w.client.PutRegion(t.Context(), cordoned, api.PutOptions{}))
	theirs := made("uid-2", "registry.test/cache:v1")
	theirs.Foreign = "server umbra/eu of environment production"
	leaving := made("uid-3", "registry.test/cache:v1")
	leaving.Deleting = true
	w.runtimes.kube.holds("kura-umbra-eu", theirs)
	w.runtimes.kube.holds("kura-globex-eu", leaving)
	w.runtimes.kube.holds("kura-initech-eu", made("uid-4", "registry.test/cache@sha256:"+strings.Repeat("0", 64)))
	w.runtimes.kube.holds("kura-hooli-eu", made("uid-5", "registry.test/cache:v1"))
	w.put(srv("hooli", "eu", "v1"))
	w.runtimes.kube.holds("kura-pied-eu", made("uid-6", "registry.test/cache:v1"))
	w.put(srv("pied", "eu", "v1"))
	w.turn(key("pied", "eu"), func(s *fleet.Status) { s.Runtime.Plan = &fleet.Plan{ID: "apply"} })
	named := map[string]string{"cache": "x"}
	for _, c := range []struct {
		account, region string
		request         api.AdoptRequest
		code            fleet.Code
		says            string
	}{
		{"acme", "eu", api.AdoptRequest{}, fleet.CodeNotFound, `there is no KuraInstance kura-acme-eu in namespace "kura" of cluster "prod"`},
		{"umbra", "eu", api.AdoptRequest{}, fleet.CodeConflict, "is server umbra/eu of environment production"},
		{"globex", "eu", api.AdoptRequest{}, fleet.CodeConflict, "is being deleted"},
		{"initech", "eu", api.AdoptRequest{}, fleet.CodeInvalid, "names no version: name the one that is to be declared"},
		{"hooli", "eu", api.AdoptRequest{ImageTag: "v2"}, fleet.CodeConflict, "is declared with image v1, not v2"},
		{"pied", "eu", api.AdoptRequest{}, fleet.CodeConflict, "a plan is under way"},
		{"acme", "eu", api.AdoptRequest{Containers: named}, fleet.CodeInvalid, "leave containers out"},
		{"acme", "eu", api.AdoptRequest{ImageTag: "v 1"}, fleet.CodeInvalid, "image"},
		{"acme", "closed", api.AdoptRequest{}, fleet.CodeInvalid, "cordoned"},
		{"acme", "engine", api.AdoptRequest{ImageTag: "v1"}, fleet.CodeInvalid, "name at least one container"},
		{"acme", "engine", api.AdoptRequest{Containers: named}, fleet.CodeInvalid, "name the tag"},
		{"acme", "nowhere", api.AdoptRequest{}, fleet.CodeInvalid, `region "nowhere" does not exist`},
		{"nobody", "eu", api.AdoptRequest{}, fleet.CodeInvalid, `account "nobody" does not exist`},
	} {
		_, err := w.client.Adopt(t.Context(), key(c.account, c.region), c.request)
		if fleet.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s/%s %+v: %v, want %s that says %q", c.account, c.region, c.request, err, c.code, c.says)
		}
	}
	w.runtimes.kube.err = errors.New("connection refused")
	if _, err := w.client.Adopt(t.Context(), key("acme", "eu"), api.AdoptRequest{DryRun: true}); fleet.CodeOf(err) != fleet.CodeUnavailable || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("an unreadable cluster: %v", err)
	}
	if list, err := w.client.ListServers(t.Context(), api.ServerFilter{}); err != nil || len(list) != 2 {
		t.Errorf("refusals left %d servers, %v; want the declared ones", len(list), err)
	}
	// A version that names no tag is declared with the one that the user says.
	w.runtimes.kube.err = nil
	if done, err := w.client.Adopt(t.Context(), key("initech", "eu"), api.AdoptRequest{ImageTag: "v1"}); err != nil || done.Object.Intent.ImageTag != "v1" {
		t.Errorf("with a tag: %+v, %v", done.Object.Intent, err)
	}
}

func TestK6_anEqualDeclarationIsAnApplyWhileAnAdoptedInstanceIsHeld(t *testing.T) {
	w := newKubeWorld(t, "acme")
	k := key("acme", "eu")
	i := made("uid-1", "registry.test/cache:v1")
	i.spec = map[string]any{"image": i.SpecImage, "storageSize": "20Gi"}
	w.runtimes.kube.holds("kura-acme-eu", i)
	w.must(w.client.Adopt(t.Context(), k, api.AdoptRequest{}))
	w.turn(k, func(s *fleet.Status) {
		s.Verdict, s.Holds = fleet.VerdictHeld, []fleet.Hold{{Kind: fleet.HoldAdoption, Message: "spec.storageSize differs"}}
	})
	dry, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{DryRun: true})
	if err != nil || !dry.Changed {
		t.Errorf("a dry run: changed %t, %v", dry.Changed, err)
	}
	out, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{IfMatch: 1})
	if err != nil || !out.Changed || out.Object.Generation != 2 || out.Object.Deployment.Seq != 1 || out.Object.Verdict != fleet.VerdictProgressing {
		t.Fatalf("%+v, %v", out.Object, err)
	}
	// What a turn could not take over is tried again the same way.
	w.turn(k, func(s *fleet.Status) {
		s.Status, s.Reason, s.Verdict, s.Holds = fleet.StatusFailed, fleet.ReasonFieldConflict, fleet.VerdictFailed, nil
		s.AdoptedResource = &fleet.KubeAdoption{UID: "uid-1", Generation: 2}
	})
	if out, err = w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{}); err != nil || !out.Changed || out.Object.Generation != 3 {
		t.Errorf("one that failed: %+v, %v", out, err)
	}
	// Until a turn has seen it what failed is still in the status; it is of the last generation.
	if out, err = w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{}); err != nil || out.Changed {
		t.Errorf("a second equal one: changed %t, %v", out.Changed, err)
	}
	// And again where the apply came to nothing, of whatever generation the adoption is.
	w.turn(k, func(s *fleet.Status) { s.Generation = 3 })
	if out, err = w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{}); err != nil || !out.Changed || out.Object.Generation != 4 {
		t.Errorf("one that failed after an apply: %+v, %v", out, err)
	}
}

func TestK6_anInstanceThatWasTakenOverAndDiffersIsNotRedeployed(t *testing.T) {
	w := newKubeWorld(t, "acme")
	k := key("acme", "eu")
	i := made("uid-1", "registry.test/cache:v1")
	i.spec = map[string]any{"image": i.SpecImage, "storageSize": "20Gi"}
	w.runtimes.kube.holds("kura-acme-eu", i)
	w.must(w.client.Adopt(t.Context(), k, api.AdoptRequest{}))
	refused := func(when, says string) {
		t.Helper()
		_, err := w.client.Redeploy(t.Context(), k, when)
		if fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(fmt.Sprint(err), says) || !strings.Contains(fmt.Sprint(err), "apply") {
			t.Errorf("%s: %v, want a conflict that says %q and to apply it", when, err, says)
		}
	}
	const differs = `spec.storageSize: "20Gi" -> "50Gi"`
	refused("before a turn", differs)
	w.turn(k, func(s *fleet.Status) {
		s.Verdict, s.Holds = fleet.VerdictHeld, []fleet.Hold{{Kind: fleet.HoldAdoption, Message: "spec.storageSize differs"}}
	})
	refused("while it is held", differs)
	w.must(w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{}))
	if d, err := w.client.Redeploy(t.Context(), k, "applied"); err != nil || d.Seq != 2 {
		t.Errorf("once it was applied: %+v, %v", d, err)
	}
	w.turn(k, func(s *fleet.Status) {
		s.Status, s.Verdict, s.Reason, s.Message, s.Holds, s.Generation = fleet.StatusFailed, fleet.VerdictFailed, fleet.ReasonFieldConflict, "tuist-server holds the image", nil, 3
		s.Resource.Differs = nil
	})
	refused("after an apply that was refused", "tuist-server holds the image")
}

// Before a turn has said that it is held, the record of the adoption says so.
func TestK6_anEqualDeclarationRightAfterAnAdoptionIsAnApply(t *testing.T) {
	w := newKubeWorld(t, "acme")
	i := made("uid-1", "registry.test/cache:v1")
	i.spec = map[string]any{"image": i.SpecImage, "storageSize": "20Gi"}
	w.runtimes.kube.holds("kura-acme-eu", i)
	w.must(w.client.Adopt(t.Context(), key("acme", "eu"), api.AdoptRequest{}))
	if out, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{}); err != nil || !out.Changed || out.Object.Generation != 2 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestS10_anEqualDeclarationCorrectsWhatARegionOnlyObserves(t *testing.T) {
	w := newKubeWorld(t, "acme")
	k := key("acme", "eu")
	w.put(srv("acme", "eu", "v1"))
	again := func(changed bool, generation int64) {
		t.Helper()
		out, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{})
		if err != nil || out.Changed != changed || out.Object.Generation != generation || out.Object.Deployment.Seq != 1 {
			t.Errorf("changed %t, generation %d, deployment %d, %v; want %t, %d, 1", out.Changed, out.Object.Generation, out.Object.Deployment.Seq, err, changed, generation)
		}
	}
	w.turn(k, func(s *fleet.Status) { s.Verdict, s.Resource = fleet.VerdictDrifted, &fleet.KubeInstance{} })
	again(false, 1) // such as an endpoint that does not answer: there is nothing to apply
	w.turn(k, func(s *fleet.Status) {
		s.Resource = &fleet.KubeInstance{Differs: []fleet.FieldDifference{{Path: "spec.replicas", Have: "3", Want: "1"}}}
	})
	again(true, 2)
	again(false, 2) // it is under way
}

func TestP12_aServerDeclaredAgainKeepsTheRestartMarkOfItsInstance(t *testing.T) {
	w := newKubeWorld(t, "acme", "umbra", "globex")
	ours := made("uid-1", "registry.test/cache:v1")
	ours.Foreign, ours.Account, ours.Region, ours.RestartMark = "", "acme", "eu", "mark-1"
	w.runtimes.kube.holds("kura-acme-eu", ours)
	theirs := ours
	theirs.Foreign = "server umbra/eu of environment production"
	w.runtimes.kube.holds("kura-umbra-eu", theirs)
	for _, c := range []struct {
		account, mark string
		err           error
	}{{"acme", "mark-1", nil}, {"umbra", "", nil}, {"globex", "", errors.New("connection refused")}} {
		w.runtimes.kube.err = c.err
		w.put(srv(c.account, "eu", "v1"))
		g, err := w.records.Gather(t.Context(), key(c.account, "eu"))
		if err != nil || g.Latest.RestartMark != c.mark || g.Status != nil {
			t.Errorf("%s: mark %q, status %v, %v; want mark %q", c.account, g.Latest.RestartMark, g.Status, err, c.mark)
		}
		if w.runtimes.kube.limit > 3*time.Second || w.runtimes.kube.limit == 0 {
			t.Errorf("the cluster was given %s to answer, want 3s at most", w.runtimes.kube.limit)
		}
	}
	// Adopting one whose record was lost is declaring it.
	w.runtimes.kube.err = nil
	lost := ours
	lost.UID, lost.RestartMark = "uid-9", "mark-9"
	w.must(w.client.PutRegion(t.Context(), kubeRegion("us"), api.PutOptions{}))
	w.runtimes.kube.holds("kura-acme-us", lost)
	w.must(w.client.Adopt(t.Context(), key("acme", "us"), api.AdoptRequest{}))
	g, err := w.records.Gather(t.Context(), key("acme", "us"))
	if err != nil || g.Latest.RestartMark != "mark-9" || g.Status.AdoptedResource != nil {
		t.Errorf("mark %q, record %+v, %v", g.Latest.RestartMark, g.Status, err)
	}
}

func TestK7_H8_aServerDeclaredAgainKeepsTheOldHostsOfItsInstance(t *testing.T) {
	w := newKubeWorld(t, "acme", "umbra")
	w.put(srv("umbra", "eu", "v1"))
	ours := made("uid-1", "registry.test/cache:v1")
	ours.Foreign, ours.Account, ours.Region = "", "acme", "eu"
	// One is of a server that was declared meanwhile, one its own, and one is no host.
	ours.Aliases = []string{"umbra-eu-staging.kura.test", "old-eu-staging.kura.test", "acme-eu-staging.kura.test", "a/b"}
	ours.spec = map[string]any{"image": ours.SpecImage, "storageSize": "50Gi", "clientHostAliases": []any{"old-eu-staging.kura.test"}}
	w.runtimes.kube.holds("kura-acme-eu", ours)
	for name, declare := range map[string]func() error{
		"declared": func() error {
			_, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{})
			return err
		},
		"adopted": func() error {
			_, err := w.client.Adopt(t.Context(), key("acme", "eu"), api.AdoptRequest{})
			return err
		},
	} {
		if err := declare(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		g, err := w.records.Gather(t.Context(), key("acme", "eu"))
		if err != nil {
			t.Fatal(err)
		}
		until := w.clock.now().UTC().Add(7 * 24 * time.Hour)
		if d := cmp.Diff([]fleet.Alias{{Host: "old-eu-staging.kura.test", Until: &until}}, g.Status.Aliases, cmpopts.EquateApproxTime(time.Minute)); d != "" {
			t.Errorf("%s: aliases (-want +got):\n%s", name, d)
		}
		owner, held, err := w.records.Owner(t.Context(), store.ReserveHost("old-eu-staging.kura.test"))
		if err != nil || !held || owner != key("acme", "eu") {
			t.Errorf("%s: the old host is %v's (%t), %v", name, owner, held, err)
		}
		desired, err := fleet.Render(w.env, g)
		if err != nil || !cmp.Equal(desired.Kubernetes.Spec["clientHostAliases"], ours.spec["clientHostAliases"]) {
			t.Errorf("%s: it renders to %v, %v", name, desired.Kubernetes, err)
		}
		w.remove(key("acme", "eu"))
	}
}

func TestH4_aRegionWithServersKeepsItsClusterAndNamespace(t *testing.T) {
	w := newKubeWorld(t, "acme")
	declared := srv("acme", "eu", "v1")
	declared.Overrides = &fleet.Overrides{Kubernetes: &fleet.KubernetesOverrides{Replicas: 2}}
	w.put(declared)
	moved := kubeRegion("eu")
	moved.Kubernetes.Namespace = "elsewhere"
	_, err := w.client.PutRegion(t.Context(), moved, api.PutOptions{DryRun: true})
	wantFault(t, err, fleet.CodeInvalid, "/kubernetes", "cannot change from", "their instances would be left behind")
	renamed := kubeRegion("eu")
	renamed.ClusterID = "eu-1"
	_, err = w.client.PutRegion(t.Context(), renamed, api.PutOptions{DryRun: true})
	wantFault(t, err, fleet.CodeInvalid, "/cluster_id", "it names their instances")
	// What is equal once defaults are filled in is no move.
	same := kubeRegion("eu")
	same.Kubernetes.Namespace = "kura"
	w.must(w.client.PutRegion(t.Context(), same, api.PutOptions{}))
}

func TestK7_aDryRunSaysWhereOldHostsAreNotRouted(t *testing.T) {
	w := newKubeWorld(t, "acme")
	k := key("acme", "eu")
	w.put(srv("acme", "eu", "v1"))
	ours := made("uid-1", "registry.test/cache:v1")
	ours.Foreign, ours.Account, ours.Region = "", "acme", "eu"
	w.runtimes.kube.holds("kura-acme-eu", ours)
	w.turn(k, func(s *fleet.Status) {
		active("v1", "https://acme-eu-staging.kura.test")(s)
		s.Resource = &ours.KubeInstance
	})
	w.viewed()
	renamed := fleet.Account{ID: "acme", Handle: "acme-corp"}
	codes := func(list []fleet.Warning) (codes []fleet.WarningCode, text string) {
		for _, l := range list {
			codes = append(codes, l.Code)
			text += l.Detail + "\n"
		}
		return codes, text
	}
	for _, c := range []struct {
		lacks []string
		err   error
		codes []fleet.WarningCode
		says  string
	}{
		{nil, nil, []fleet.WarningCode{fleet.WarnHostsMove, fleet.WarnReplace}, "1 server is applied anew"},
		{[]string{"clientHostAliases"}, nil, []fleet.WarningCode{fleet.WarnHostsMove, fleet.WarnReplace, fleet.WarnNoAlias}, `cluster "prod" routes no old hosts, for its KuraInstances have no clientHostAliases`},
		{nil, errors.New("connection refused"), []fleet.WarningCode{fleet.WarnHostsMove, fleet.WarnReplace, fleet.WarnNoAlias}, `cluster "prod" did not say whether its KuraInstances have clientHostAliases`},
	} {
		w.runtimes.kube.lacks, w.runtimes.kube.err = c.lacks, c.err
		dry, err := w.client.PutAccount(t.Context(), renamed, api.PutOptions{DryRun: true})
		got, text := codes(dry.Warnings)
		if err != nil || !slices.Equal(got, c.codes) || !strings.Contains(text, c.says) {
			t.Errorf("lacking %v, %v: %v %q, %v; want %v that say %q", c.lacks, c.err, got, text, err, c.codes, c.says)
		}
	}
	// A template and the region's hosts move it as well.
	w.runtimes.kube.lacks, w.runtimes.kube.err = []string{"clientHostAliases"}, nil
	pattern := template()
	pattern.Pattern = "cache-{account_handle}-{cluster_id}{env_suffix}.kura.test"
	byTemplate, err := w.client.PutHostTemplate(t.Context(), pattern, api.PutOptions{DryRun: true})
	if got, _ := codes(byTemplate.Warnings); err != nil || !slices.Contains(got, fleet.WarnNoAlias) {
		t.Errorf("a template: %v, %v", got, err)
	}
	// The write itself keeps nobody waiting for a cluster.
	before := w.runtimes.kube.reads
	if _, err := w.client.PutAccount(t.Context(), renamed, api.PutOptions{}); err != nil || w.runtimes.kube.reads != before {
		t.Errorf("the write read the cluster %d times, %v", w.runtimes.kube.reads-before, err)
	}
}
