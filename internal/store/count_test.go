package store_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// What an older kurad stored counts for nobody until it is declared again; from then on it counts
// for whom it did, whatever kurad itself writes of it. An older kurad reads what this one wrote.
func TestG8_G7_whoDeclaredARecordIsAFieldThatAnOlderKuradPassesOver(t *testing.T) {
	ctx := t.Context()
	r, m := records(t)
	mustPut(t, m, "/kura/v1/staging/accounts/acme", `{"schema":2,"generation":3,"created_at":"2026-01-01T00:00:00Z","updated_at":"2026-01-01T00:00:00Z","value":{"id":"acme"}}`)
	old := must[store.Versioned[fleet.Account]](t)(r.Account(ctx, "acme"))
	if old.Declared != (fleet.Declared{}) {
		t.Errorf("an old record is %+v", old.Declared)
	}
	tx := r.Begin()
	tx.DeclaredBy("t1")
	tx.PutAccount(old, fleet.Account{ID: "acme", Handle: "a"})
	commit(t, tx)
	var before struct { // what the commit before this field decodes
		Schema     int           `json:"schema"`
		Generation int64         `json:"generation"`
		Value      fleet.Account `json:"value"`
	}
	item := must[kv.Item](t)(m.Get(ctx, "/kura/v1/staging/accounts/acme"))
	if err := json.Unmarshal(item.Value, &before); err != nil || before.Schema != fleet.SchemaVersion || before.Generation != 4 || before.Value.Handle != "a" {
		t.Errorf("an older kurad reads %+v of %s, %v", before, item.Value, err)
	}

	declare(t, r, acme2)
	intent := must[store.Versioned[fleet.Intent]](t)(r.Intent(ctx, acme2))
	tx = r.Begin()
	tx.DeclaredBy("t1")
	tx.PutIntent(intent, intent.Value)
	tx.Claim(acme2, store.ReservePort("local", 20001))
	commit(t, tx)
	w := turnOf(acme2, gather(t, r, acme2), "another port")
	w.Port = &fleet.PortMove{Endpoint: "local", Need: "cache/http", From: 20001, To: 20002}
	if err := r.CommitTurn(ctx, w); err != nil {
		t.Fatal(err)
	}
	g := gather(t, r, acme2)
	now := must[store.Versioned[fleet.Intent]](t)(r.Intent(ctx, acme2)).Declared
	if want := (fleet.Declared{By: "t1", Bytes: int64(len(`{"account":"acme2","region":"eu","image_tag":"v1"}`))}); now != want || g.Declared != want {
		t.Errorf("after a turn wrote the intent it is %+v, gathered %+v; want %+v", now, g.Declared, want)
	}
	v := store.NewView(r, nil)
	viewing(t, v)
	if got, want := v.Stored("t1"), (store.Stored{Objects: 2, Bytes: 4<<10 + 68<<10}); got != want {
		t.Errorf("it stores %+v, want %+v", got, want)
	}
}

var acme2 = fleet.ServerKey{Account: "acme2", Region: "eu"}

// A view that followed all writes counts what one counts that lists them.
func TestG8_aViewCountsAlikeHoweverItCameToBe(t *testing.T) {
	ctx := t.Context()
	r, m := records(t)
	followed := store.NewView(r, nil)
	viewing(t, followed)
	random := rand.New(rand.NewPCG(8, 8))
	for range 500 {
		id, token := fmt.Sprint("a", random.IntN(20)), fmt.Sprint("t", random.IntN(4))
		prev, err := r.Account(ctx, id)
		switch {
		case fleet.CodeOf(err) == fleet.CodeInternal:
			mustPut(t, m, "/kura/v1/staging/accounts/"+id, `{"schema":2,"declared":{"by":"`+token+`","bytes":9},"value":{"id":"`+id+`"}}`)
			continue
		case err != nil && fleet.CodeOf(err) != fleet.CodeNotFound:
			t.Fatal(err)
		}
		tx := r.Begin()
		tx.DeclaredBy(token)
		switch at := random.IntN(10); {
		case at == 0:
			mustPut(t, m, "/kura/v1/staging/accounts/"+id, "broken")
			continue
		case at < 3 && prev.Exists():
			tx.DeleteAccount(prev)
		default:
			tx.PutAccount(prev, fleet.Account{ID: id, Labels: map[string]string{"l": strings.Repeat("x", random.IntN(20<<10))}})
		}
		commit(t, tx)
	}
	if err := followed.CatchUp(ctx); err != nil {
		t.Fatal(err)
	}
	listed := store.NewView(r, nil)
	viewing(t, listed)
	some := 0
	for i := range 4 {
		token := fmt.Sprint("t", i)
		if a, b := followed.Stored(token), listed.Stored(token); a != b {
			t.Errorf("token %s: followed %+v, listed %+v", token, a, b)
		}
		some += listed.Stored(token).Objects
	}
	if some == 0 {
		t.Error("nothing is left")
	}
}
