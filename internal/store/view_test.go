package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// viewing runs a view until the test ends.
func viewing(t *testing.T, v *store.View) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error)
	go func() { done <- v.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	if err := v.WaitFor(ctx, 1); err != nil {
		t.Fatal(err)
	}
}

func caughtUp(t interface {
	Helper()
	Fatal(...any)
}, v *store.View, r *store.Records,
) {
	t.Helper()
	revision, err := r.Revision(context.Background())
	if err == nil {
		err = v.WaitFor(context.Background(), revision)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// told waits until the view has told its subscribers, and the log, of all that was
// written before: it shows a change first and tells of it then.
func told(t *testing.T, v *store.View, r *store.Records) {
	t.Helper()
	done := make(chan struct{})
	cancel := v.Subscribe(func(u store.Update) {
		if u.Name == "last" {
			close(done)
		}
	})
	defer cancel()
	tx := r.Begin()
	tx.PutToken(store.Versioned[fleet.Token]{}, fleet.Token{ID: "last"})
	commit(t, tx)
	<-done
}

func TestView_showsWhatIsThereAndWhatComes(t *testing.T) {
	r, _ := records(t)
	declare(t, r, acme)
	v := store.NewView(r, nil)
	viewing(t, v)
	if g, ok := v.Server(acme); !ok || !cmp.Equal(g, gather(t, r, acme)) {
		t.Errorf("listed server: %+v %v", g, ok)
	}
	beta := fleet.ServerKey{Account: "beta", Region: "eu"}
	declare(t, r, beta)
	declare(t, r, fleet.ServerKey{Account: "acme", Region: "us"})
	if err := r.CommitTurn(t.Context(), turnOf(beta, gather(t, r, beta), "hello")); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, v, r)
	for _, k := range []fleet.ServerKey{acme, beta} {
		if g, ok := v.Server(k); !ok || !cmp.Equal(g, gather(t, r, k)) {
			t.Errorf("watched server: %+v %v", g, ok)
		}
	}
	got := fmt.Sprint(v.ServerKeys(), v.ServersOfRegion("eu"), v.ServersOfAccount("acme"), v.ServersOfRegion("none"))
	if want := "[acme/eu beta/eu acme/us] [acme/eu beta/eu] [acme/eu acme/us] []"; got != want {
		t.Errorf("keys %s, want %s", got, want)
	}
	list, revision := v.Servers(func(k fleet.ServerKey) bool { return k.Region == "us" })
	if len(list) != 1 || list[0].Intent.Account != "acme" || revision != v.Revision() {
		t.Errorf("servers of us: %+v at %d", list, revision)
	}
	if len(v.Regions()) != 2 {
		t.Errorf("regions: %+v", v.Regions())
	}
}

// A turn works on what it is given: that must not change what others are given.
func TestView_serverIsTheCallersOwn(t *testing.T) {
	r, _ := records(t)
	declare(t, r, acme)
	w := turnOf(acme, gather(t, r, acme), "x")
	w.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionReady}}
	w.Status.Runtime.Plan = &fleet.Plan{ID: "p", Tasks: []fleet.Task{{ID: "t", State: fleet.TaskPending}}}
	w.Status.Runtime.Refusal = &fleet.Refusal{Message: "x"}
	if err := r.CommitTurn(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	v := store.NewView(r, nil)
	viewing(t, v)
	first, _ := v.Server(acme)
	first.Status.Runtime.Plan.Tasks[0].State = fleet.TaskDone
	first.Status.Conditions[0].Status = fleet.True
	first.Status.Runtime.Refusal.Message = "y"
	first.Latest.Status = fleet.DeploymentFailed
	second, _ := v.Server(acme)
	if !cmp.Equal(second, gather(t, r, acme)) {
		t.Error("what one caller changes shows to another")
	}
}

func TestView_subscribersHearEveryChangeInOrder(t *testing.T) {
	r, _ := records(t)
	declare(t, r, acme)
	v := store.NewView(r, nil)
	var heard []string
	cancel := v.Subscribe(func(u store.Update) {
		if _, ok := v.Server(acme); u.Kind == store.KindIntent && ok == u.Deleted {
			t.Error("a subscriber hears of a change before the view shows it")
		}
		heard = append(heard, fmt.Sprintf("%s %s%s %v", u.Kind, u.Name, strings.Trim(u.Key.String(), "/"), u.Deleted))
	})
	viewing(t, v)
	w := turnOf(acme, gather(t, r, acme), "x")
	w.Events = []fleet.Event{{Account: "acme", Region: "eu"}}
	if err := r.CommitTurn(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	g := gather(t, r, acme)
	if err := r.CommitTurn(t.Context(), fleet.TurnWrite{Key: acme, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Remove: true}); err != nil {
		t.Fatal(err)
	}
	tx := r.Begin()
	tx.PutToken(store.Versioned[fleet.Token]{}, fleet.Token{ID: "t1"})
	commit(t, tx)
	told(t, v, r)
	cancel()
	want := []string{
		"account acme false", "region eu false", "template default false", // by revision, then by key
		"deployment acme/eu false", "intent acme/eu false",
		"status acme/eu false", "event acme/eu false",
		"intent acme/eu true", "status acme/eu true", "deployment acme/eu true",
		"token t1 false", "token last false",
	}
	slices.Sort(heard[7:10])
	slices.Sort(want[7:10])
	if diff := cmp.Diff(want, heard); diff != "" {
		t.Errorf("heard (-want +got):\n%s", diff)
	}
}

func TestView_malformedRecordIsReportedAndSkipped(t *testing.T) {
	r, m := records(t)
	us := fleet.ServerKey{Account: "acme", Region: "us"}
	declare(t, r, acme)
	declare(t, r, us)
	const prefix = "/kura/v1/staging/"
	mustPut(t, m, prefix+"servers/us/acme/status", "broken")
	mustPut(t, m, prefix+"regions/odd", `{"schema":9}`)
	mustPut(t, m, prefix+"nonsense/x", "is not looked at")
	var log strings.Builder
	v := store.NewView(r, hclog.New(&hclog.LoggerOptions{Output: &log}))
	viewing(t, v)
	if _, ok := v.Server(us); ok || len(v.ServersOfRegion("us")) != 0 || len(v.ServerKeys()) != 1 {
		t.Error("a server whose status cannot be read is shown")
	}
	if _, ok := v.Server(acme); !ok {
		t.Error("a server is missing because of another one's record")
	}
	mustPut(t, m, prefix+"servers/eu/acme/intent", "[]")
	mustPut(t, m, prefix+"deployments/us/acme/0000000001", "[]")
	caughtUp(t, v, r)
	var got []string
	for _, p := range v.Problems() {
		got = append(got, p.What)
	}
	want := []string{"deployment 1 of server acme/us", `region "odd"`, "server acme/eu", "the status of server acme/us"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	told(t, v, r)
	for _, w := range want {
		if n := strings.Count(log.String(), "is left out"); n != 4 || !strings.Contains(log.String(), strings.ReplaceAll(w, `"`, `\"`)) {
			t.Errorf("log names %d problems, want 4, one of them %s:\n%s", n, w, log.String())
		}
	}
	// What is mended, or goes, is no problem any more.
	mustPut(t, m, prefix+"servers/us/acme/status", `{"schema":1,"value":{"status":"active"}}`)
	mustPut(t, m, prefix+"deployments/us/acme/0000000001", `{"schema":1,"value":{"account":"acme","region":"us","seq":1}}`)
	if _, err := m.Txn(t.Context(), kv.Txn{Then: []kv.Op{kv.Delete(prefix + "regions/odd"), kv.DeletePrefix(prefix + "servers/eu/")}}); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, v, r)
	if g, ok := v.Server(us); !ok || g.Status.Status != fleet.StatusActive || g.Latest == nil || len(v.Problems()) != 0 {
		t.Errorf("after mending: %+v %v, problems %v", g, ok, v.Problems())
	}
}

func TestView_latestDeploymentThatCannotBeReadIsNeverAnOlderOne(t *testing.T) {
	r, m := records(t)
	declare(t, r, acme)
	v := store.NewView(r, nil)
	viewing(t, v)
	mustPut(t, m, "/kura/v1/staging/servers/eu/acme/intent", `{"schema":1,"value":{"account":"acme","region":"eu","deployment":2}}`)
	caughtUp(t, v, r)
	if g, ok := v.Server(acme); !ok || g.Latest != nil {
		t.Errorf("latest deployment %+v, want none", g.Latest)
	}
}
