package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// records returns the prepared records of an empty store.
func records(t *testing.T) (*store.Records, *conformance.Memory) {
	t.Helper()
	m := conformance.NewMemory()
	t.Cleanup(func() { m.Close() })
	r := store.NewRecords(m, "staging")
	if err := r.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return r, m
}

func commit(t *testing.T, tx *store.Tx) int64 {
	t.Helper()
	revision, err := tx.Commit(t.Context())
	if err != nil {
		t.Fatalf("commit: %v", err)
	}
	return revision
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

var acme = fleet.ServerKey{Account: "acme", Region: "eu"}

// declare stores the template, account and region of a server, and the server with its
// first deployment.
func declare(t *testing.T, r *store.Records, k fleet.ServerKey) {
	t.Helper()
	tx := r.Begin()
	if _, err := r.Template(t.Context(), "default"); err != nil {
		tx.PutTemplate(store.Versioned[fleet.HostTemplate]{}, fleet.HostTemplate{Name: "default", Pattern: "{account_handle}{env_suffix}.kura.test"})
	}
	if _, err := r.Account(t.Context(), k.Account); err != nil {
		tx.PutAccount(store.Versioned[fleet.Account]{}, fleet.Account{ID: k.Account})
	}
	if _, err := r.Region(t.Context(), k.Region); err != nil {
		tx.PutRegion(store.Versioned[fleet.Region]{}, fleet.Region{Name: k.Region, Hosts: fleet.RegionHosts{Public: "default"}})
	}
	commit(t, tx)
	createServer(t, r, k)
}

func createServer(t *testing.T, r *store.Records, k fleet.ServerKey) {
	t.Helper()
	tx := r.Begin()
	tx.RequireAccount(must[store.Versioned[fleet.Account]](t)(r.Account(t.Context(), k.Account)))
	tx.RequireRegion(must[store.Versioned[fleet.Region]](t)(r.Region(t.Context(), k.Region)))
	tx.PutIntent(store.Versioned[fleet.Intent]{}, intentOf(k, 1))
	tx.PutDeployment(store.Versioned[fleet.Deployment]{}, deploymentOf(k, 1))
	tx.Claim(k, store.ReserveHost(k.Account+"-"+k.Region+".kura.test"), store.ReserveInstance("containers/local", "kura-"+k.Account+"-"+k.Region))
	commit(t, tx)
}

func intentOf(k fleet.ServerKey, seq int64) fleet.Intent {
	return fleet.Intent{Server: fleet.Server{Account: k.Account, Region: k.Region, ImageTag: fmt.Sprintf("v%d", seq)}, Generation: seq, Deployment: seq}
}

func deploymentOf(k fleet.ServerKey, seq int64) fleet.Deployment {
	return fleet.Deployment{Account: k.Account, Region: k.Region, Seq: seq, ImageTag: fmt.Sprintf("v%d", seq), Status: fleet.DeploymentPending}
}

func TestRecords_envelopeCountsAndTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, m := records(t)
		tx := r.Begin()
		tx.PutAccount(store.Versioned[fleet.Account]{}, fleet.Account{ID: "acme", Handle: "a"})
		commit(t, tx)
		created := time.Now().UTC()
		time.Sleep(time.Hour) // the bubble's
		first := must[store.Versioned[fleet.Account]](t)(r.Account(t.Context(), "acme"))
		tx = r.Begin()
		tx.PutAccount(first, fleet.Account{ID: "acme", Handle: "b"})
		revision := commit(t, tx)
		got := must[store.Versioned[fleet.Account]](t)(r.Account(t.Context(), "acme"))
		want := store.Versioned[fleet.Account]{
			Value: fleet.Account{ID: "acme", Handle: "b"}, Generation: 2, Revision: revision,
			CreatedAt: created, UpdatedAt: created.Add(time.Hour),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		item := must[kv.Item](t)(m.Get(t.Context(), "/kura/v1/staging/accounts/acme"))
		raw := `{"schema":3,"generation":2,"created_at":"2000-01-01T00:00:00Z","updated_at":"2000-01-01T01:00:00Z","value":{"id":"acme","handle":"b"}}`
		if diff := cmp.Diff(raw, string(item.Value)); diff != "" {
			t.Errorf("stored (-want +got):\n%s", diff)
		}
	})
}

func TestRecords_absentOnesAreNotFoundByName(t *testing.T) {
	r, _ := records(t)
	_, account := r.Account(t.Context(), "acme")
	_, template := r.Template(t.Context(), "default")
	_, region := r.Region(t.Context(), "eu")
	_, intent := r.Intent(t.Context(), acme)
	_, gathered := r.Gather(t.Context(), acme)
	_, status := r.Status(t.Context(), acme)
	_, deployment := r.Deployment(t.Context(), acme, 3)
	_, token := r.Token(t.Context(), "t1")
	for want, err := range map[string]error{
		`account "acme" does not exist`: account, `host template "default" does not exist`: template,
		`region "eu" does not exist`: region, `server acme/eu does not exist`: intent,
		`the status of server acme/eu does not exist`: status, `deployment 3 of server acme/eu does not exist`: deployment,
		`token "t1" does not exist`: token,
	} {
		if fleet.CodeOf(err) != fleet.CodeNotFound || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	if fleet.CodeOf(gathered) != fleet.CodeNotFound {
		t.Errorf("gather: %v", gathered)
	}
}

func TestG7_newerSchemaIsRefused(t *testing.T) {
	t.Run("of the store", func(t *testing.T) {
		m := conformance.NewMemory()
		defer m.Close()
		mustPut(t, m, "/kura/v1/staging/schema", `{"schema":1,"generation":1,"value":{"version":4}}`)
		err := store.NewRecords(m, "staging").Prepare(t.Context())
		wantError(t, err, "/kura/v1/staging/", "schema 4", "knows up to 3", "at least as new")
	})
	t.Run("of a record", func(t *testing.T) {
		r, m := records(t)
		mustPut(t, m, "/kura/v1/staging/accounts/acme", `{"schema":4,"value":["another shape"]}`)
		_, err := r.Account(t.Context(), "acme")
		wantError(t, err, `account "acme"`, "schema 4")
	})
	t.Run("of nothing that ever was", func(t *testing.T) {
		r, m := records(t)
		mustPut(t, m, "/kura/v1/staging/accounts/acme", `{"value":{}}`)
		_, err := r.Account(t.Context(), "acme")
		wantError(t, err, `account "acme"`, "schema 0")
	})
}

// A store of the first schema is one of this version from the first start on: statuses that
// the last commit before it wrote read as what they said, with all of the work in its track,
// and are written so. The commit before it refuses the store, as this one a newer store.
func TestG7_recordsOfSchema1AreReadAndWrittenAsOfThisOne(t *testing.T) {
	raw, err := os.ReadFile("testdata/statuses-schema1.json")
	if err != nil {
		t.Fatal(err)
	}
	var statuses map[string]json.RawMessage
	if err := json.Unmarshal(raw, &statuses); err != nil {
		t.Fatal(err)
	}
	m := conformance.NewMemory()
	t.Cleanup(func() { m.Close() })
	mustPut(t, m, "/kura/v1/staging/schema", `{"schema":1,"generation":1,"value":{"version":1,"store":"S"}}`)
	for name, record := range statuses {
		mustPut(t, m, "/kura/v1/staging/servers/eu/"+name+"/status", string(record))
	}
	for range 2 { // the second start finds what the first one made of it
		r := store.NewRecords(m, "staging")
		if err := r.Prepare(t.Context()); err != nil || r.StoreID() != "S" {
			t.Fatalf("store %q: %v", r.StoreID(), err)
		}
		schema := must[kv.Item](t)(m.Get(t.Context(), "/kura/v1/staging/schema"))
		if want := `{"version":3,"store":"S"}`; !strings.Contains(string(schema.Value), want) {
			t.Errorf("schema record %s, want one of %s", schema.Value, want)
		}
		for name, record := range statuses {
			k := fleet.ServerKey{Account: name, Region: "eu"}
			got := must[store.Versioned[fleet.Status]](t)(r.Status(t.Context(), k))
			if diff := cmp.Diff(withTracks(t, record), fields(t, must[[]byte](t)(json.Marshal(got.Value)))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
			tx := r.Begin()
			tx.PutStatus(got, k, got.Value)
			commit(t, tx)
			if is := must[kv.Item](t)(m.Get(t.Context(), "/kura/v1/staging/servers/eu/"+name+"/status")); !strings.HasPrefix(string(is.Value), `{"schema":3,`) {
				t.Errorf("%s is written as %.40s", name, is.Value)
			}
		}
	}
}

// withTracks is what a stored status of the first schema says, in the shape of those since.
func withTracks(t *testing.T, record []byte) map[string]any {
	t.Helper()
	status, work := fields(t, record)["value"].(map[string]any), map[string]any{}
	for _, moved := range []string{"plan", "intended", "again", "refusal", "failing", "attempts", "next_attempt", "plans", "effects_until"} {
		if v, ok := status[moved]; ok {
			work[moved] = v
			delete(status, moved)
		}
	}
	if len(work) > 0 {
		status["runtime"] = work
	}
	return status
}

func fields(t *testing.T, raw []byte) (m map[string]any) {
	t.Helper()
	if err := json.Unmarshal(raw, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRecords_preparedOnceKeepTheirName(t *testing.T) {
	r, m := records(t)
	again := store.NewRecords(m, "staging")
	if err := again.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.StoreID() == "" || r.StoreID() != again.StoreID() {
		t.Errorf("names %q and %q, want one", r.StoreID(), again.StoreID())
	}
	other := store.NewRecords(m, "canary")
	if err := other.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	if other.StoreID() == r.StoreID() {
		t.Error("two environments have one name")
	}
}

func TestRecords_listPagesAtOneRevision(t *testing.T) {
	r, m := records(t)
	tx := r.Begin()
	for i := range 5 {
		tx.PutAccount(store.Versioned[fleet.Account]{}, fleet.Account{ID: fmt.Sprintf("a%d", i)})
	}
	commit(t, tx)
	first := must[store.Listing[fleet.Account]](t)(r.Accounts(t.Context(), store.PageOptions{Limit: 3}))
	tx = r.Begin()
	tx.DeleteAccount(must[store.Versioned[fleet.Account]](t)(r.Account(t.Context(), "a4")))
	commit(t, tx)
	mustPut(t, m, "/kura/v1/staging/accounts/a9", "broken")
	second := must[store.Listing[fleet.Account]](t)(r.Accounts(t.Context(), store.PageOptions{After: first.After, Revision: first.Revision}))
	if got := ids(first) + "|" + ids(second); got != "a0 a1 a2|a3 a4" || second.After != "" || first.After != "a2" {
		t.Errorf("pages %s, after %q and %q", got, first.After, second.After)
	}
	now := must[store.Listing[fleet.Account]](t)(r.Accounts(t.Context(), store.PageOptions{}))
	if got := ids(now); got != "a0 a1 a2 a3" || len(now.Problems) != 1 || now.Problems[0].What != `account "a9"` {
		t.Errorf("now %s with problems %v, want one of a9", got, now.Problems)
	}
}

func ids(l store.Listing[fleet.Account]) string {
	var out []string
	for _, v := range l.Items {
		out = append(out, v.Value.ID)
	}
	return strings.Join(out, " ")
}

func TestRecords_conflictNamesTheRecord(t *testing.T) {
	r, _ := records(t)
	declare(t, r, acme)
	account := must[store.Versioned[fleet.Account]](t)(r.Account(t.Context(), "acme"))
	intent := must[store.Versioned[fleet.Intent]](t)(r.Intent(t.Context(), acme))
	tx := r.Begin()
	tx.PutAccount(account, fleet.Account{ID: "acme", Handle: "new"})
	commit(t, tx)
	tx = r.Begin()
	tx.RequireIntent(intent)
	tx.PutAccount(account, fleet.Account{ID: "acme", Handle: "other"})
	_, err := tx.Commit(t.Context())
	if !kv.IsConflict(err) {
		t.Fatalf("err = %v, want a conflict", err)
	}
	wantError(t, err, `account "acme"`, "changed by somebody else")
	tx = r.Begin()
	tx.PutAccount(store.Versioned[fleet.Account]{}, fleet.Account{ID: "acme"})
	if _, err := tx.Commit(t.Context()); !kv.IsConflict(err) {
		t.Errorf("a second creation: %v, want a conflict", err)
	}
}

func TestRecords_unansweredStoreIsUnavailable(t *testing.T) {
	r, m := records(t)
	m.Fail(errors.New("disk broken"))
	tx := r.Begin()
	tx.PutAccount(store.Versioned[fleet.Account]{}, fleet.Account{ID: "acme"})
	_, commitErr := tx.Commit(t.Context())
	_, getErr := r.Account(t.Context(), "acme")
	_, listErr := r.Accounts(t.Context(), store.PageOptions{})
	_, gatherErr := r.Gather(t.Context(), acme)
	_, revisionErr := r.Revision(t.Context())
	_, portsErr := r.PortsTaken(t.Context(), "local")
	for call, err := range map[string]error{"commit": commitErr, "get": getErr, "list": listErr, "gather": gatherErr, "revision": revisionErr, "ports": portsErr} {
		if fleet.CodeOf(err) != fleet.CodeUnavailable || !errors.Is(err, kv.ErrClosed) {
			t.Errorf("%s: %v, want unavailable because the store is closed", call, err)
		}
	}
}

func TestRecords_tooLargeChangeSaysSo(t *testing.T) {
	r, _ := records(t)
	tx := r.Begin()
	for i := range kv.MaxOps + 1 {
		tx.PutAccount(store.Versioned[fleet.Account]{}, fleet.Account{ID: fmt.Sprintf("a%d", i)})
	}
	_, err := tx.Commit(t.Context())
	if fleet.CodeOf(err) != fleet.CodeTooLarge {
		t.Errorf("err = %v, want too large", err)
	}
	tx = r.Begin()
	tx.PutAccount(store.Versioned[fleet.Account]{}, fleet.Account{ID: "a"})
	tx.PutAccount(store.Versioned[fleet.Account]{}, fleet.Account{ID: "a"})
	if _, err := tx.Commit(t.Context()); fleet.CodeOf(err) != fleet.CodeInternal {
		t.Errorf("err = %v, want an internal error", err)
	}
}

func TestRecords_tokensComeAndGo(t *testing.T) {
	r, _ := records(t)
	tx := r.Begin()
	tx.PutToken(store.Versioned[fleet.Token]{}, fleet.Token{ID: "t1", Scope: fleet.ScopeRead})
	commit(t, tx)
	tokens := must[store.Listing[fleet.Token]](t)(r.Tokens(t.Context(), store.PageOptions{}))
	if len(tokens.Items) != 1 {
		t.Fatalf("tokens %v", tokens.Items)
	}
	tx = r.Begin()
	tx.DeleteToken(tokens.Items[0])
	commit(t, tx)
	if _, err := r.Token(t.Context(), "t1"); fleet.CodeOf(err) != fleet.CodeNotFound {
		t.Errorf("err = %v", err)
	}
}
