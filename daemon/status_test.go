package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// answering is a daemon that knows some answers, by path.
func answering(t *testing.T, answers map[string]any) {
	t.Helper()
	noEnvironment(t)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, known := answers[r.URL.Path]
		w.Header().Set("Content-Type", "application/json")
		if !known {
			w.Header().Set("Content-Type", api.ContentTypeProblem)
			w.WriteHeader(http.StatusNotFound)
			answer = api.Problem{Status: http.StatusNotFound, Code: fleet.CodeNotFound, Detail: r.URL.Path + " does not exist"}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(web.Close)
	t.Setenv("KURA_ENDPOINT", web.URL)
	t.Setenv("KURA_TOKEN", "t")
}

// A fresh look takes as long as the slowest runtime, and a fleet does not stand still.
func TestStatus_freshSaysWhatWasNotSeenAndLeavesOutWhatWentMeanwhile(t *testing.T) {
	of := func(account string) fleet.ServerView {
		return fleet.ServerView{Account: account, Region: "eu", Verdict: fleet.VerdictConverged}
	}
	gone, quick, slow := of("gone"), of("quick"), of("slow")
	list := api.List[fleet.ServerView]{Items: []fleet.ServerView{gone, quick, slow}}
	slow.Stale = true
	answering(t, map[string]any{"/v1/servers": list, "/v1/servers/quick/eu": quick, "/v1/servers/slow/eu": slow, "/v1/events": api.List[fleet.Event]{}})
	got := ok(t, "status", "--fresh", "--exit-code")
	if !strings.Contains(got, "quick/eu") || strings.Contains(got, "gone/eu") || !strings.Contains(got, "\nnot seen anew within 10s: slow/eu; what is shown of them was known before\n") {
		t.Errorf("the table:\n%s", got)
	}
	if got := ok(t, "status"); !strings.Contains(got, "gone/eu") || strings.Contains(got, "not seen anew") {
		t.Errorf("nobody asked for a fresh look:\n%s", got)
	}
	if got := ok(t, "status", "slow/eu", "--fresh"); !strings.Contains(got, "\n            not seen anew within 10s: this is what was known before\n") {
		t.Errorf("one server:\n%s", got)
	}
	if got := ok(t, "status", "quick/eu", "--fresh"); strings.Contains(got, "not seen anew") {
		t.Errorf("one server that was seen:\n%s", got)
	}
}

// Where no server is declared yet no row would say it.
func TestStatus_saysBelowTheFleetWhatCannotBeRead(t *testing.T) {
	answering(t, map[string]any{
		"/v1/servers": api.List[fleet.ServerView]{},
		"/v1/orphans": api.Orphans{Unreadable: []api.UnreadableEndpoint{
			{Cluster: "prod", Namespace: "kura", Reason: fleet.ReasonRuntimeRefused, Message: "Unauthorized"},
			{Endpoint: "edge", Reason: fleet.ReasonNotObservedYet, Message: "it was not listed yet"},
		}},
	})
	want := "no servers are declared here\nnamespace kura of cluster prod cannot be read (RuntimeRefused): Unauthorized; what it holds now is not known\n"
	if got := ok(t, "status"); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	for _, args := range [][]string{{"status", "--region", "eu"}, {"status", "--account", "acme"}, {"status", "--output", "json"}} {
		if got := ok(t, args...); strings.Contains(got, "prod") {
			t.Errorf("kurad %s says of all: %s", strings.Join(args, " "), got)
		}
	}
}

// Silence would say that all can be read.
func TestStatus_saysWhereItIsNotKnownWhatCanBeRead(t *testing.T) {
	answering(t, map[string]any{"/v1/servers": api.List[fleet.ServerView]{}})
	out, said, err := kuradCommand(t, "status")
	if err != nil || out != "no servers are declared here\n" || !strings.Contains(said, "whether every endpoint and cluster can be read is not known: ") || !strings.Contains(said, "does not exist") {
		t.Errorf("got %q, said %q, err %v", out, said, err)
	}
}
