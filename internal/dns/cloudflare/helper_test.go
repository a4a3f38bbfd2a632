package cloudflare

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	emulator "github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

const domain = "kura.test"

// open opens the zone kura.test of an API whose token is in a file.
func open(t *testing.T, api, token string) (z *Zone, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	zones, err := Open([]dns.Zone{{Domain: domain, Token: file, API: api}, {Domain: "without.test"}})
	if err != nil {
		t.Fatal(err)
	}
	if len(zones) != 1 {
		t.Fatalf("%d zones, want the one with a token", len(zones))
	}
	return zones[domain], file
}

// emulate opens kura.test of an emulator; change adapts it.
func emulate(t *testing.T, change func(*emulator.Options)) (*Zone, *emulator.Emulator) {
	t.Helper()
	o := emulator.Options{
		Zones:  []emulator.Zone{{Name: domain, Plan: emulator.PlanEnterprise}},
		Tokens: []emulator.Token{{Value: "secret", Name: "kurad"}},
	}
	if change != nil {
		change(&o)
	}
	e, err := emulator.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	z, _ := open(t, e.URL(), "secret")
	return z, e
}

// answers opens kura.test of an API that answers with h, once the zone was found.
func answers(t *testing.T, h http.HandlerFunc) *Zone {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /zones", func(w http.ResponseWriter, _ *http.Request) {
		say(w, 200, `{"success": true, "result": [{"id": "z1", "name": "kura.test", "account": {"id": "a1"}}]}`)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the server does not see that the caller goes
		h(w, r)
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	z, _ := open(t, server.URL, "secret")
	return z
}

func say(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

// wantError compares an error with what is said of it.
func wantError(t *testing.T, err error, want dns.Error) dns.Error {
	t.Helper()
	got, ok := errors.AsType[*dns.Error](err)
	if !ok {
		t.Fatalf("got %v, want a dns.Error", err)
	}
	same := *got
	same.Message, same.After = "", 0
	if same != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
	return *got
}

// The errors that most tests want.
var (
	unreachable = dns.Error{Class: fleet.ClassTransient, Reason: fleet.ReasonZoneUnreachable, Answered: true}
	unanswered  = dns.Error{Class: fleet.ClassTransient, Reason: fleet.ReasonZoneUnreachable}
	rateLimited = dns.Error{Class: fleet.ClassTransient, Reason: fleet.ReasonRateLimited, Answered: true}
	mayNot      = dns.Error{Class: fleet.ClassRefused, Reason: fleet.ReasonZoneForbidden, Answered: true}
	invalidNow  = dns.Error{Class: fleet.ClassTransient, Reason: fleet.ReasonZoneForbidden, Answered: true}
)

var everything = dns.Parts{Records: true, Balancers: true}

func batch(name string) dns.Batch {
	return dns.Batch{Posts: []fleet.DNSRecord{{Name: name, Type: "A", Content: "192.0.2.1", TTL: 60}}}
}
