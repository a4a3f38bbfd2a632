package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// A token is known to its owner alone: no record, no line of the log and no answer but
// the one that made it holds its secret, even where it is sent to the wrong place.
func TestSecrets_aTokenIsNowhereButWithItsOwner(t *testing.T) {
	below := conformance.NewMemory()
	w := newWorldOn(t, below)
	ctx := t.Context()
	made, err := w.client.CreateToken(ctx, api.TokenRequest{Name: "terraform", Scope: fleet.ScopeAdmin, ExpiresIn: fleet.Duration(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	token := made.Token.Reveal()
	secret := token[strings.LastIndex(token, "_")+1:]
	w.client = w.clientWith(token)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	w.turn(key("acme", "eu"), active("v1", "https://acme-eu-staging.kura.test"))
	w.must(w.client.Redeploy(ctx, key("acme", "eu"), "once"))
	tx := w.records.Begin()
	tx.AddEvent(fleet.Event{Account: "acme", Region: "eu", At: w.clock.now(), Type: fleet.EventNormal, Reason: "R"})
	w.must(tx.Commit(ctx))

	var answers []string
	ask := func(method, path, body, bearer string, header ...string) {
		t.Helper()
		_, b := w.do(method, path, body, bearer, header...)
		answers = append(answers, method+" "+path+": "+string(b))
	}
	doc, _ := w.openAPI()
	for path := range doc.Paths { // every answer that shows something
		ask(http.MethodGet, strings.NewReplacer("{id}", "acme", "{account}", "acme", "{region}", "eu", "{name}", "eu").Replace(path), "", token)
	}
	for _, r := range answers {
		if strings.Contains(r, secret) {
			t.Errorf("an answer holds the secret: %s", r)
		}
	}
	// Where a token does not belong. What the caller sent may come back to the caller.
	ask(http.MethodGet, "/v1/version?token="+token, "", "")
	ask(http.MethodGet, "/v1/version?access_token="+token, "", token)
	ask(http.MethodDelete, "/v1/tokens/"+token, "", token)
	ask(http.MethodPut, "/v1/accounts/"+token, `{"id":"`+token+`"}`, token)
	ask(http.MethodGet, "/v1/nowhere/"+token, "", token)
	ask(http.MethodGet, "/v1/version", "", "", "Authorization", token)
	ask(http.MethodGet, "/v1/version", "", token[:len(token)-1])
	ask(http.MethodPost, "/v1/servers/acme/eu:"+token, "", token)

	w.must(nil, w.client.RevokeToken(ctx, made.ID))
	ask(http.MethodGet, "/v1/version", "", token)
	if log := w.logged.String(); strings.Contains(log, secret) {
		t.Errorf("log: %s", log)
	}
	if audited := fmt.Sprintf("%+v", w.audit.Entries()); strings.Contains(audited, secret) || !strings.Contains(audited, made.ID) || !strings.Contains(audited, "TokenName:terraform") {
		t.Errorf("audit log: %s", audited)
	}
	all, err := below.List(ctx, "/", kv.ListOptions{})
	if err != nil || len(all.Items) < 10 {
		t.Fatalf("%d records, %v", len(all.Items), err)
	}
	for _, kv := range all.Items {
		if strings.Contains(string(kv.Value), secret) || strings.Contains(kv.Key, secret) {
			t.Errorf("the record %s holds the secret", kv.Key)
		}
	}
}
