package server_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/etcd"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func TestPutServer_answersWithItsDeclaredSide(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	made, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{IfNoneMatch: true})
	if err != nil {
		t.Fatal(err)
	}
	v := made.Object
	port := v.Ports["cache/http"]
	if !made.Created || !made.Changed || v.Generation != 1 || v.Verdict != fleet.VerdictProgressing || v.Reason != fleet.ReasonAccepted {
		t.Errorf("%+v", made)
	}
	if v.Instance != "kura-acme-eu" || v.Hosts.Public != "acme-eu-staging.kura.test" || port < 20000 || port > 20999 {
		t.Errorf("%+v", v)
	}
	if want := fmt.Sprintf("https://acme-eu-staging.kura.test:%d", port); v.DeclaredURL != want {
		t.Errorf("url %s, want %s", v.DeclaredURL, want)
	}
	now := w.clock.now()
	want := fleet.Deployment{Account: "acme", Region: "eu", Seq: 1, Cause: "create", ImageTag: "v1", Generation: 1, Status: "pending", CreatedAt: now}
	if v.Deployment == nil || v.Deployment.ManifestRevision == "" {
		t.Fatalf("deployment %+v", v.Deployment)
	}
	want.ManifestRevision = v.Deployment.ManifestRevision
	if diff := cmp.Diff(want, *v.Deployment); diff != "" {
		t.Error(diff)
	}
	_, err = w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{IfNoneMatch: true})
	wantFault(t, err, fleet.CodeConflict, "", "server acme/eu exists already", "import it")
}

func TestG1_aReadSeesTheWriteBeforeIt(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	_, err := w.client.GetServer(t.Context(), key("acme", "eu"), api.GetOptions{})
	wantFault(t, err, fleet.CodeNotFound, "", "server acme/eu does not exist")
	for i := range 20 {
		tag := fmt.Sprintf("v%d", i)
		put := w.put(srv("acme", "eu", tag))
		got, err := w.client.GetServer(t.Context(), key("acme", "eu"), api.GetOptions{})
		if diff := cmp.Diff(put, got); diff != "" || err != nil {
			t.Fatal(diff, err)
		}
		list, err := w.client.ListServers(t.Context(), api.ServerFilter{})
		if diff := cmp.Diff([]fleet.ServerView{put}, list); diff != "" || err != nil {
			t.Fatalf("the list's item differs from the single answer: %s %v", diff, err)
		}
	}
}

func TestPutServer_equalIsNoWrite(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	before, err := w.records.Revision(t.Context())
	w.must(nil, err)
	again, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{})
	after, rerr := w.records.Revision(t.Context())
	w.must(nil, rerr)
	if err != nil || again.Changed || again.Object.Generation != 1 || before != after {
		t.Errorf("%+v, %v; revision %d to %d", again, err, before, after)
	}
}

func TestP11_aNewerImageSupersedesTheOpenDeployment(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	first := w.put(srv("acme", "eu", "v1"))
	second := w.put(srv("acme", "eu", "v2"))
	if second.Generation != 2 || second.Deployment.Seq != 2 || second.Deployment.Cause != "image" || second.Deployment.Generation != 2 {
		t.Errorf("%+v", second.Deployment)
	}
	if diff := cmp.Diff(first.Ports, second.Ports); diff != "" {
		t.Errorf("C12 ports changed: %s", diff)
	}
	list, err := w.client.Deployments(t.Context(), key("acme", "eu"))
	if err != nil || len(list) != 2 || list[0].Status != "pending" || list[1].Status != "superseded" || list[1].FinishedAt == nil {
		t.Errorf("%+v, %v", list, err)
	}
	labelled := srv("acme", "eu", "v2")
	labelled.Labels = map[string]string{"a": "b"}
	if third := w.put(labelled); third.Generation != 3 || third.Deployment.Seq != 2 {
		t.Errorf("what is no new image made a deployment: %+v", third.Deployment)
	}
}

func TestIfMatch_aWriteInBetweenIsAClearError(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	if _, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v2"), api.PutOptions{IfMatch: 1}); err != nil {
		t.Fatal(err)
	}
	_, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v3"), api.PutOptions{IfMatch: 1})
	wantFault(t, err, fleet.CodePrecondition, "", "server acme/eu is at generation 2, not 1", "read it again")
	_, err = w.client.PutServer(t.Context(), srv("other", "eu", "v3"), api.PutOptions{IfMatch: 1})
	wantFault(t, err, fleet.CodePrecondition, "", "does not exist")
}

// A condition that a write would pass over protects nobody.
func TestIfMatch_holdsForEveryWrite(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	for _, call := range [][2]string{
		{"POST", "/v1/servers/acme/eu:redeploy"}, {"DELETE", "/v1/servers/acme/eu"},
		{"DELETE", "/v1/regions/eu"}, {"DELETE", "/v1/accounts/acme"}, {"DELETE", "/v1/host-templates/public"},
	} {
		p := w.problem(call[0], call[1], "", w.admin, "If-Match", `"7"`, "Idempotency-Key", "a")
		if p.Code != fleet.CodePrecondition || !strings.Contains(p.Detail, "is at generation 1, not 7") {
			t.Errorf("%s: %+v", call, p)
		}
		if p := w.problem(call[0], call[1], "", w.admin, "If-Match", "W/x", "Idempotency-Key", "a"); p.Code != fleet.CodeInvalid {
			t.Errorf("%s: %+v", call, p)
		}
	}
	if resp, b := w.do("POST", "/v1/servers/acme/eu:redeploy", "", w.admin, "If-Match", `"1"`, "Idempotency-Key", "a"); resp.StatusCode != 201 {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
	if resp, b := w.do("DELETE", "/v1/servers/acme/eu", "", w.admin, "If-Match", `"2"`); resp.StatusCode != 202 {
		t.Errorf("%d %s", resp.StatusCode, b)
	}
}

// A version that was tried again leaves no mark on the one that serves: to go back to that
// restarts nothing.
func TestP12_goingBackToWhatServesIsTheDocumentThatServes(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	w.must(w.client.Redeploy(ctx, key("acme", "eu"), "first"))
	w.turn(key("acme", "eu"), active("v1", "https://acme-eu-staging.kura.test:20000"))
	serves, err := w.client.GetServer(ctx, key("acme", "eu"), api.GetOptions{})
	w.must(nil, err)
	w.put(srv("acme", "eu", "v2"))
	w.must(w.client.Redeploy(ctx, key("acme", "eu"), "again"))
	back := w.put(srv("acme", "eu", "v1"))
	if was, is := serves.Deployment, back.Deployment; is.Seq != was.Seq+3 || is.RestartMark != was.RestartMark || is.ManifestRevision != was.ManifestRevision {
		t.Errorf("deployment %d of mark %q, revision %s; what serves is of mark %q, revision %s", is.Seq, is.RestartMark, is.ManifestRevision, was.RestartMark, was.ManifestRevision)
	}
	// What does not serve any more is made anew either way.
	w.turn(key("acme", "eu"), active("v3", "https://acme-eu-staging.kura.test:20000"))
	w.must(w.client.Redeploy(ctx, key("acme", "eu"), "once more"))
	if d := w.put(srv("acme", "eu", "v2")).Deployment; d.RestartMark == serves.Deployment.RestartMark {
		t.Errorf("deployment %d has the mark %q of another one", d.Seq, d.RestartMark)
	}
}

// A redeploy of what serves that came to nothing is not what serves: whoever goes on to another
// version, and back, has the one before it.
func TestP12_goingBackPassesOverARedeployOfWhatServesThatCameToNothing(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	k := key("acme", "eu")
	serves := w.put(srv("acme", "eu", "v1")).Deployment
	w.turn(k, active("v1", "https://acme-eu-staging.kura.test:20000"))
	w.turn(k, func(s *fleet.Status) {
		s.Settled = fleet.Settled{Generation: serves.Generation, Revision: serves.ManifestRevision}
	})
	w.must(w.client.Redeploy(ctx, k, "in vain"))
	w.put(srv("acme", "eu", "v2"))
	if back := w.put(srv("acme", "eu", "v1")).Deployment; back.RestartMark != serves.RestartMark || back.ManifestRevision != serves.ManifestRevision {
		t.Errorf("going back makes mark %q, revision %s; what serves is of mark %q, revision %s", back.RestartMark, back.ManifestRevision, serves.RestartMark, serves.ManifestRevision)
	}
}

func TestP12_redeployIsIdempotentByKey(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	before := w.put(srv("acme", "eu", "v1"))
	k := key("acme", "eu")
	first, err := w.client.Redeploy(ctx, k, "once")
	if err != nil {
		t.Fatal(err)
	}
	if first.Seq != 2 || first.Cause != "redeploy" || !strings.HasPrefix(first.RestartMark, "redeploy-2-") || first.ImageTag != "v1" || first.Generation != 2 {
		t.Errorf("%+v", first)
	}
	if first.ManifestRevision == before.Deployment.ManifestRevision {
		t.Error("the restart mark does not change the manifest")
	}
	same, err := w.client.Redeploy(ctx, k, "once")
	if diff := cmp.Diff(first, same); diff != "" || err != nil {
		t.Error(diff, err)
	}
	other, err := w.client.Redeploy(ctx, k, "twice")
	if other.Seq != 3 || err != nil {
		t.Errorf("%+v, %v", other, err)
	}
	if next := w.put(srv("acme", "eu", "v2")); next.Deployment.RestartMark != other.RestartMark {
		t.Errorf("the mark is not carried on: %+v", next.Deployment)
	}
	if still, err := w.client.Redeploy(ctx, k, "once"); still.Seq != 2 || still.Status != "superseded" || err != nil {
		t.Errorf("%+v, %v", still, err)
	}
	_, err = w.client.Redeploy(ctx, k, "")
	wantFault(t, err, fleet.CodeInvalid, "", "Idempotency-Key is required")
	_, err = w.client.Redeploy(ctx, key("nobody", "eu"), "x")
	wantFault(t, err, fleet.CodeNotFound, "", "server nobody/eu does not exist")
}

// What came to nothing is tried again where its author saw that, by a deployment of its own; a
// try that is under way is waited for, and so is what it comes to.
func TestP12_anEqualDeclarationThatIsToBeTriedAgainIsARedeployUnlessItHealed(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	k := key("acme", "eu")
	fails := func(s *fleet.Status) {
		s.Verdict, s.VerdictReason, s.Runtime.Plan = fleet.VerdictFailed, fleet.ReasonImagePullFailed, nil
	}
	ends := func(change func(*fleet.Status)) {
		g, err := w.records.Gather(ctx, k)
		w.must(nil, err)
		st := fleet.Status{Generation: g.Intent.Generation}
		if g.Status != nil {
			st = *g.Status
		}
		change(&st)
		g.Latest.Status = fleet.DeploymentFailed
		w.must(nil, w.records.CommitTurn(ctx, fleet.TurnWrite{Key: k, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: st, Latest: g.Latest, LatestRevision: g.LatestRevision}))
	}
	again := func(s fleet.Server) api.Written[fleet.ServerView] {
		t.Helper()
		out, err := w.client.PutServer(ctx, s, api.PutOptions{Again: true})
		w.must(nil, err)
		return out
	}
	if out := again(srv("acme", "eu", "v1")); out.Changed {
		t.Errorf("nobody has tried it yet, and it is tried again: %+v", out.Object.Deployment)
	}
	ends(fails)
	if out, err := w.client.PutServer(ctx, srv("acme", "eu", "v1"), api.PutOptions{}); err != nil || out.Changed {
		t.Errorf("nobody asked for another try: %+v, %v", out, err)
	}
	if d := again(srv("acme", "eu", "v1")).Object.Deployment; d.Seq != 2 || d.Cause != fleet.DeploymentCauseRedeploy || !strings.HasPrefix(d.RestartMark, "redeploy-2-") {
		t.Errorf("an equal declaration makes %+v", d)
	}
	if out := again(srv("acme", "eu", "v1")); out.Changed {
		t.Errorf("the same once more makes %+v", out.Object.Deployment)
	}
	ends(fails)
	more := srv("acme", "eu", "v1")
	more.Labels = map[string]string{"team": "cache"}
	if d := again(more).Object.Deployment; d.Seq != 3 || d.Cause != fleet.DeploymentCauseRedeploy {
		t.Errorf("a declaration of another label makes %+v", d)
	}
	ends(fails)
	w.turn(k, func(s *fleet.Status) { s.Runtime.Plan = &fleet.Plan{ID: "try"} })
	w.viewed()
	answer := make(chan bool)
	go func() {
		out, err := w.client.PutServer(ctx, more, api.PutOptions{Again: true})
		answer <- err != nil || out.Changed
	}()
	w.turn(k, func(s *fleet.Status) {
		s.Runtime.Plan, s.Verdict, s.ServingImageTag = nil, fleet.VerdictConverged, "v1"
	})
	if <-answer {
		t.Error("a server that healed by the try under way is redeployed")
	}
}

// A try that learns nothing new is written nowhere (G12): who waits for its end hears of that all
// the same, and not after all the time that it may take.
func TestP12_G12_theEndOfATryThatIsWrittenNowhereIsHeardOf(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	k := key("acme", "eu")
	w.put(srv("acme", "eu", "v1"))
	g, err := w.records.Gather(ctx, k)
	w.must(nil, err)
	failed := fleet.Status{Generation: 1, Verdict: fleet.VerdictFailed, VerdictReason: fleet.ReasonImagePullFailed}
	g.Latest.Status = fleet.DeploymentFailed
	w.must(nil, w.records.CommitTurn(ctx, fleet.TurnWrite{Key: k, IntentRevision: g.IntentRevision, Status: failed, Latest: g.Latest, LatestRevision: g.LatestRevision}))
	w.viewed()
	var asked atomic.Int64
	w.turns.mu.Lock()
	w.turns.beyond = func(g fleet.Gathered) *fleet.Status {
		s := g.Status.Clone()
		if asked.Add(1) < 5 { // it is under way
			s.Runtime.Plan = &fleet.Plan{ID: "try"}
		}
		return &s
	}
	w.turns.mu.Unlock()
	began := time.Now()
	out, err := w.client.PutServer(ctx, srv("acme", "eu", "v1"), api.PutOptions{Again: true})
	if d := out.Object.Deployment; err != nil || d.Seq != 2 || d.Cause != fleet.DeploymentCauseRedeploy {
		t.Errorf("%+v, %v", d, err)
	}
	if took := time.Since(began); took > 10*time.Second || asked.Load() < 5 {
		t.Errorf("it took %s, and was asked for %d times", took, asked.Load())
	}
}

// A long poll whose first answer fell into a try that is written nowhere hears of its end (G12).
func TestG12_aLongPollHearsOfTheEndOfATryThatIsWrittenNowhere(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	first, err := w.client.WaitServer(t.Context(), key("acme", "eu"), "", 0)
	w.must(nil, err)
	ended := make(chan bool)
	go func() {
		change, err := w.client.WaitServer(t.Context(), key("acme", "eu"), first.Cursor, 30*time.Second)
		ended <- err == nil && change.Changed
	}()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < 20*time.Second; { // until it is heard: the poll may not have begun
		select {
		case ok := <-ended:
			if !ok {
				t.Error("the poll ended without a change")
			}
			return
		case <-tick.C:
			w.api.Changed(key("acme", "eu"))
		}
	}
	t.Error("the poll goes on")
}

// Whoever got no answer says it once more. That a server has stalled is said of the try before,
// until a turn has seen the one that was just asked for.
// What runs then may still bear the mark of the lost one.
func TestP12_aRedeployAfterALostRecordBearsAnotherMark(t *testing.T) {
	marks := map[string]bool{}
	for _, after := range []time.Duration{0, time.Hour} {
		w := newWorld(t)
		w.clock.advance(after)
		w.seed([]string{"eu"}, "acme")
		w.put(srv("acme", "eu", "v1"))
		d, err := w.client.Redeploy(t.Context(), key("acme", "eu"), "once")
		if err != nil || marks[d.RestartMark] {
			t.Errorf("mark %q again, %v", d.RestartMark, err)
		}
		marks[d.RestartMark] = true
	}
}

func TestP12_anotherTryOfWhatStalledIsOneHoweverOftenItIsAskedFor(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	w.turn(key("acme", "eu"), func(s *fleet.Status) { s.Verdict, s.VerdictReason = fleet.VerdictStalled, fleet.ReasonRollingOut })
	for range 2 {
		out, err := w.client.PutServer(ctx, srv("acme", "eu", "v1"), api.PutOptions{Again: true})
		if d := out.Object.Deployment; err != nil || d.Seq != 2 || !strings.HasPrefix(d.RestartMark, "redeploy-2-") {
			t.Errorf("another try is %+v, %v", d, err)
		}
	}
	w.put(srv("acme", "eu", "v2"))
	if out, err := w.client.PutServer(ctx, srv("acme", "eu", "v2"), api.PutOptions{Again: true}); err != nil || out.Changed {
		t.Errorf("nobody has tried v2 yet, and it is tried again: %+v, %v", out.Object.Deployment, err)
	}
}

func TestP18_destroyIsIntentAndRefusesEverythingElse(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	k := key("acme", "eu")
	gone, err := w.client.DeleteServer(ctx, k)
	if err != nil {
		t.Fatal(err)
	}
	if gone.Verdict != fleet.VerdictDestroying || gone.Intent.Deleting == nil || gone.Generation != 2 || gone.Deployment.Status != "cancelled" {
		t.Errorf("%+v", gone)
	}
	again, err := w.client.DeleteServer(ctx, k)
	if diff := cmp.Diff(gone, again); diff != "" || err != nil {
		t.Errorf("repeated: %s %v", diff, err)
	}
	_, err = w.client.PutServer(ctx, srv("acme", "eu", "v2"), api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "", "server acme/eu is being destroyed", "wait until it is gone")
	_, err = w.client.Redeploy(ctx, k, "x")
	wantFault(t, err, fleet.CodeConflict, "", "is being destroyed")
	w.remove(k)
	_, err = w.client.GetServer(ctx, k, api.GetOptions{})
	wantFault(t, err, fleet.CodeNotFound, "", "server acme/eu does not exist")
	_, err = w.client.DeleteServer(ctx, k)
	wantFault(t, err, fleet.CodeNotFound, "", "server acme/eu does not exist")
}

func TestH4_theSecondServerOfAHostOrInstanceNameIsRefusedNamingBoth(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.must(w.client.PutHostTemplate(ctx, template(), api.PutOptions{}))
	w.must(w.client.PutHostTemplate(ctx, fleet.HostTemplate{Name: "other", Pattern: "x-{account_handle}-{cluster_id}-{region}{env_suffix}.kura.test"}, api.PutOptions{}))
	for name, cluster := range map[string]string{"one": "c", "two": "b-c", "three": "c"} {
		r := region(name)
		r.ClusterID = cluster
		if name == "three" {
			r.Hosts.Public = "other" // other hosts, and so only one instance name
		}
		w.must(w.client.PutRegion(ctx, r, api.PutOptions{}))
	}
	for id, handle := range map[string]string{"first": "a-b", "second": "a"} {
		w.must(w.client.PutAccount(ctx, fleet.Account{ID: id, Handle: handle}, api.PutOptions{}))
	}
	w.put(srv("first", "one", "v1"))
	_, err := w.client.PutServer(ctx, srv("second", "two", "v1"), api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/account", "server second/two", `host "a-b-c-staging.kura.test"`, "server first/one", "change the handle")
	_, err = w.client.PutServer(ctx, srv("second", "two", "v1"), api.PutOptions{DryRun: true})
	wantFault(t, err, fleet.CodeConflict, "/account", "server second/two", "server first/one")
	_, err = w.client.PutServer(ctx, srv("first", "three", "v1"), api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/account", "server first/three", `instance name "kura-first-c"`, "server first/one", "cluster_id")
}

func TestH4_aGlobalHostBelongsToOneAccount(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.must(w.client.PutHostTemplate(ctx, template(), api.PutOptions{}))
	w.must(w.client.PutHostTemplate(ctx, fleet.HostTemplate{Name: "global", Pattern: "{account_handle}{env_suffix}.kura.test"}, api.PutOptions{}))
	for _, name := range []string{"eu", "us"} {
		r := region(name)
		r.Hosts.Global, r.Location = "global", &fleet.Location{Latitude: 1, Longitude: 2}
		w.must(w.client.PutRegion(ctx, r, api.PutOptions{}))
	}
	w.must(w.client.PutRegion(ctx, region("plain"), api.PutOptions{}))
	w.must(w.client.PutHostTemplate(ctx, fleet.HostTemplate{Name: "alike", Pattern: "{account_handle}e{env_suffix}.kura.test"}, api.PutOptions{}))
	alike := region("alike")
	alike.Hosts.Global, alike.Location = "alike", &fleet.Location{Latitude: 1, Longitude: 2}
	w.must(w.client.PutRegion(ctx, alike, api.PutOptions{}))
	for id, handle := range map[string]string{"acme": "", "sly": "sly", "odd": "acme-plain"} {
		w.must(w.client.PutAccount(ctx, fleet.Account{ID: id, Handle: handle}, api.PutOptions{}))
	}
	w.put(srv("acme", "eu", "v1"))
	w.put(srv("acme", "us", "v1")) // one account's servers share it
	w.put(srv("acme", "plain", "v1"))
	_, err := w.client.PutServer(ctx, srv("odd", "eu", "v1"), api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/account", `host "acme-plain-staging.kura.test"`, "odd/eu", "acme/plain")
	w.put(srv("sly", "alike", "v1"))
	_, err = w.client.PutAccount(ctx, fleet.Account{ID: "sly", Handle: "acm"}, api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/handle", "sly/alike", "acme/", "choose another handle")
}

func TestC12_serversCreatedAtOnceGetPortsOfTheirOwn(t *testing.T) {
	for name, open := range map[string]func(*testing.T) kv.Store{
		"memory": func(*testing.T) kv.Store { return conformance.NewMemory() },
		"etcd": func(t *testing.T) kv.Store {
			e, err := etcd.OpenEmbedded(etcd.Options{Dir: filepath.Join(t.TempDir(), "data")})
			if err != nil {
				t.Fatal(err)
			}
			return e
		},
	} {
		t.Run(name, func(t *testing.T) { createAtOnce(t, newWorldOn(t, open(t))) })
	}
}

func createAtOnce(t *testing.T, w *world) {
	const n = 32
	var accounts []string
	for i := range n {
		accounts = append(accounts, fmt.Sprintf("a%02d", i))
	}
	w.seed([]string{"eu", "us"}, accounts...)
	var wg sync.WaitGroup
	var mu sync.Mutex
	owner := map[int]string{}
	for i, account := range accounts {
		wg.Go(func() {
			out, err := w.client.PutServer(t.Context(), srv(account, []string{"eu", "us"}[i%2], "v1"), api.PutOptions{})
			if err != nil {
				t.Errorf("%s: %v", account, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			port := out.Object.Ports["cache/http"]
			if other, taken := owner[port]; taken || port < 20000 || port > 20999 {
				t.Errorf("%s got port %d, which is of %q", account, port, other)
			}
			owner[port] = account
		})
	}
	wg.Wait()
	taken, err := w.records.PortsTaken(t.Context(), "podman")
	if err != nil || !slices.Equal(slices.Sorted(maps.Keys(taken)), slices.Sorted(maps.Keys(owner))) {
		t.Errorf("reserved %v, given out %v, %v", taken, owner, err)
	}
}

func TestC12_aServerMadeAgainGetsTheSamePortAndAFullRangeSaysSo(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	first := w.put(srv("acme", "eu", "v1")).Ports
	w.must(w.client.DeleteServer(ctx, key("acme", "eu")))
	w.remove(key("acme", "eu"))
	if diff := cmp.Diff(first, w.put(srv("acme", "eu", "v1")).Ports); diff != "" {
		t.Error(diff)
	}
	r := region("wide")
	ports := map[string]fleet.Port{"http": {Container: 8443, Endpoint: fleet.EndpointPublic}}
	for i := range 63 {
		ports[fmt.Sprintf("p%d", i)] = fleet.Port{Container: 9000 + i}
	}
	r.Containers.Services["cache"] = fleet.Service{Image: "localhost/cache:{image_tag}", Ports: ports}
	if _, err := w.client.PutRegion(ctx, r, api.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	var err error
	for i := 0; err == nil && i < 20; i++ {
		id := fmt.Sprintf("w%d", i)
		w.must(w.client.PutAccount(ctx, fleet.Account{ID: id}, api.PutOptions{}))
		_, err = w.client.PutServer(ctx, srv(id, "wide", "v1"), api.PutOptions{})
	}
	wantFault(t, err, fleet.CodeConflict, "/region", "20000-20999", `container endpoint "podman"`, "widen its ports=")
}

func TestC12_aDeclaredPortBelongsToOneServer(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed(nil, "acme", "beta")
	r := region("fixed")
	r.Containers.Services["cache"].Ports["http"] = fleet.Port{Container: 8443, Host: 20500, Endpoint: fleet.EndpointPublic}
	w.must(w.client.PutRegion(ctx, r, api.PutOptions{}))
	if v := w.put(srv("acme", "fixed", "v1")); v.Ports["cache/http"] != 20500 {
		t.Errorf("%v", v.Ports)
	}
	_, err := w.client.PutServer(ctx, srv("beta", "fixed", "v1"), api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/account", `port 20500 of container endpoint "podman"`, "beta/fixed", "acme/fixed")
}

func TestDryRun_writesNothing(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme", "beta")
	w.put(srv("acme", "eu", "v1"))
	before, err := w.records.Revision(ctx)
	w.must(nil, err)
	dry := api.PutOptions{DryRun: true}

	made, err := w.client.PutServer(ctx, srv("beta", "eu", "v1"), dry)
	if err != nil || !made.Created || made.Object.Hosts.Public != "beta-eu-staging.kura.test" {
		t.Errorf("%+v, %v", made, err)
	}
	unknown, err := w.client.PutServer(ctx, srv("nobody", "nowhere", "v1"), dry)
	if err != nil || len(unknown.Warnings) != 2 || unknown.Warnings[0].Code != fleet.WarnNeighbourUnknown || unknown.Warnings[0].Pointer != "/account" {
		t.Errorf("%+v, %v", unknown, err)
	}
	early := region("new")
	early.Hosts.Public = "later"
	if got, err := w.client.PutRegion(ctx, early, dry); err != nil || len(got.Warnings) != 1 || got.Warnings[0].Pointer != "/hosts/public" {
		t.Errorf("%+v, %v", got, err)
	}
	renamed, err := w.client.PutAccount(ctx, fleet.Account{ID: "acme", Handle: "acme-corp"}, dry)
	w.must(nil, err)
	moved, err := w.client.PutHostTemplate(ctx, fleet.HostTemplate{Name: "public", Pattern: "c-{account_handle}-{cluster_id}{env_suffix}.kura.test"}, dry)
	w.must(nil, err)
	for host, warnings := range map[string][]fleet.Warning{"acme-corp-eu-staging.kura.test": renamed.Warnings, "c-acme-eu-staging.kura.test": moved.Warnings} {
		want := []fleet.Warning{
			{Code: fleet.WarnHostsMove, Detail: "1 host moves: server acme/eu moves from acme-eu-staging.kura.test to " + host},
			{Code: fleet.WarnNoAlias, Detail: "containers route no old hosts: keep the DNS records of the old hosts until their clients have the new ones"},
		}
		if diff := cmp.Diff(want, warnings); diff != "" {
			t.Error(diff)
		}
	}
	changed := region("eu")
	changed.Containers.Services["cache"] = fleet.Service{Image: "localhost/cache:{image_tag}", Env: map[string]string{"A": "b"}, Ports: changed.Containers.Services["cache"].Ports}
	replaced, err := w.client.PutRegion(ctx, changed, dry)
	if err != nil || len(replaced.Warnings) != 1 || replaced.Warnings[0].Detail != "1 server is replaced, at most max_unsettled of a region at a time: acme/eu" {
		t.Errorf("%+v, %v", replaced.Warnings, err)
	}
	if after, err := w.records.Revision(ctx); after != before || err != nil {
		t.Errorf("revision went from %d to %d, %v", before, after, err)
	}
}

func TestReservations_whatNobodyNeedsIsGivenBackWhenItIsWanted(t *testing.T) {
	w, ctx := newWorld(t), t.Context()
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	w.turn(key("acme", "eu"), active("v1", "https://acme-eu-staging.kura.test"))
	w.must(w.client.PutAccount(ctx, fleet.Account{ID: "acme", Handle: "new"}, api.PutOptions{}))
	beta := w.lookalike("beta", "acme-eu-staging.kura.test")
	_, err := w.client.PutServer(ctx, beta, api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/account", "beta/bare", "acme/eu") // H8: still published there
	w.turn(key("acme", "eu"), active("v1", "https://new-eu-staging.kura.test"))
	w.put(beta)
	owner, _, err := w.records.Owner(ctx, store.ReserveHost("acme-eu-staging.kura.test"))
	if owner != key("beta", "bare") || err != nil {
		t.Errorf("owner %v, %v", owner, err)
	}
}
