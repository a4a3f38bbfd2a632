package cloudflare

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestG9_everyCallEndsAtItsDeadline(t *testing.T) {
	hang := func(r *http.Request) { <-r.Context().Done() }
	for name, h := range map[string]http.HandlerFunc{
		"no answer": func(_ http.ResponseWriter, r *http.Request) { hang(r) },
		"a body that does not begin": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			hang(r)
		},
		"a body without end": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			for _, err := fmt.Fprint(w, `{"result": [`); err == nil && r.Context().Err() == nil; _, err = fmt.Fprint(w, " ") {
				w.(http.Flusher).Flush()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			z := answers(t, h)
			if _, err := z.identify(t.Context()); err != nil {
				t.Fatal(err)
			}
			z.client.within = 50 * time.Millisecond
			_, err := z.List(t.Context(), everything)
			wantError(t, err, unreachable)
			e := wantError(t, z.Apply(t.Context(), batch("a.kura.test")), unanswered)
			if want := "zone kura.test: create A a.kura.test: no answer in time"; e.Message != want {
				t.Errorf("got %q, want %q", e.Message, want)
			}
		})
	}
}

func TestG9_aCallEndsThoughTheTokensFileDoesNot(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "token")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	zones, err := Open([]dns.Zone{{Domain: domain, Token: fifo, API: "http://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	zones[domain].client.within = 50 * time.Millisecond
	_, err = zones[domain].List(t.Context(), everything)
	wantError(t, err, unreachable)
	if f, err := os.OpenFile(fifo, os.O_WRONLY, 0); err != nil { // lets the reader go
		t.Error(err)
	} else if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestG9_anAnswerWithoutEndIsCut(t *testing.T) {
	z := answers(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		block := []byte(strings.Repeat(" ", 1<<20))
		for _, err := w.Write([]byte("{")); err == nil; _, err = w.Write(block) {
		}
	})
	_, err := z.List(t.Context(), everything)
	if e := wantError(t, err, unreachable); !strings.Contains(e.Message, "more than 33554432 bytes") {
		t.Errorf("message %q", e.Message)
	}
}

func TestCall_onlyAnEnvelopeThatSaysSuccessIsAnAnswer(t *testing.T) {
	for name, row := range map[string]struct {
		kind, body string
		status     int
		want       dns.Error
	}{
		"a page":            {"text/html", "<html><title>sign in</title></html>", 200, unanswered},
		"a page as JSON":    {"application/json", "<html>", 200, unanswered},
		"half of it":        {"application/json", `{"success": true, "result": {`, 200, unanswered},
		"nothing":           {"application/json", "", 200, unanswered},
		"null":              {"application/json", "null", 200, unanswered},
		"not a success":     {"application/json", `{"success": false, "errors": [{"code": 1004, "message": "no"}]}`, 200, dns.Error{Class: fleet.ClassRefused, Reason: fleet.ReasonInvalid, Answered: true}},
		"unsaid success":    {"application/json", `{"result": {}}`, 200, unanswered},
		"of another type":   {"application/json", `{"success": true, "result": "yes"}`, 200, unanswered},
		"a redirect":        {"text/html", "", 302, unanswered},
		"an error as HTML":  {"text/html", "<title>Bad gateway</title>", 502, unanswered},
		"an error of noise": {"application/json", `{"errors": "many"}`, 400, unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			z := answers(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", row.kind)
				w.Header().Set("Location", "http://"+r.Host+"/zones")
				w.WriteHeader(row.status)
				_, _ = w.Write([]byte(row.body))
			})
			wantError(t, z.Apply(t.Context(), batch("a.kura.test")), row.want)
		})
	}
}

func TestCall_theTokenIsReadAgainAndInNoMessage(t *testing.T) {
	var shown atomic.Value
	z := answers(t, func(w http.ResponseWriter, r *http.Request) {
		shown.Store(r.Header.Get("Authorization"))
		say(w, 400, `{"errors": [{"code": 1, "message": "you said `+r.Header.Get("Authorization")+`"}]}`)
	})
	for _, token := range []string{"first", "second"} {
		if err := os.WriteFile(string(z.client.token), []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		err := z.Apply(t.Context(), batch("a.kura.test"))
		if err == nil || strings.Contains(err.Error(), token) || !strings.Contains(err.Error(), "you said Bearer ***") {
			t.Errorf("got %v, want the answer without the token", err)
		}
		if shown.Load() != "Bearer "+token {
			t.Errorf("sent %v, want the token %s", shown.Load(), token)
		}
	}
	if err := os.Remove(string(z.client.token)); err != nil {
		t.Fatal(err)
	}
	if e := wantError(t, z.Apply(t.Context(), batch("a.kura.test")), invalidNow); !strings.Contains(e.Message, string(z.client.token)) {
		t.Errorf("message %q does not name the file", e.Message)
	}
}

func TestCall_aRedirectIsNotTold(t *testing.T) {
	told := false
	z := answers(t, func(w http.ResponseWriter, r *http.Request) {
		told = told || r.URL.Path == "/elsewhere"
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	_, err := z.List(t.Context(), everything)
	wantError(t, err, unreachable)
	if told {
		t.Error("it followed the redirect")
	}
}

func TestCall_aTokenIsSentByHTTPSOrOnTheLoopbackOnly(t *testing.T) {
	if _, err := Open([]dns.Zone{{Domain: domain, Token: "t", API: "http://api.test"}}); err == nil || !strings.Contains(err.Error(), domain) {
		t.Errorf("got %v, want a refusal that names the zone", err)
	}
}

func TestCall_zonesOfOneTokenHaveOneBudget(t *testing.T) {
	zones, err := Open([]dns.Zone{{Domain: "a.test", Token: "t"}, {Domain: "b.test", Token: "t"}, {Domain: "c.test", Token: "u"}, {Domain: "d.test", Token: "t", API: "https://other.test"}})
	if err != nil {
		t.Fatal(err)
	}
	of := func(domain string) *Client { return zones[domain].client }
	if of("a.test") != of("b.test") || of("a.test") == of("c.test") || of("a.test") == of("d.test") || zones["a.test"].Observing().client != of("a.test") {
		t.Error("a client is not one for each token and API")
	}
}

func TestCall_aRateLimitHoldsAllCallsOfTheToken(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"429": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "120")
			say(w, 429, `{"errors": [{"code": 971, "message": "Please wait"}]}`)
		},
		"10100": func(w http.ResponseWriter, _ *http.Request) {
			say(w, 400, `{"errors": [{"code": 10100, "message": "many"}]}`)
		},
		"10300": func(w http.ResponseWriter, _ *http.Request) {
			say(w, 403, `{"errors": [{"code": 10300, "message": "many"}]}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			z := answers(t, func(w http.ResponseWriter, r *http.Request) {
				calls.Add(1)
				h(w, r)
			})
			want := blindPause
			if name == "429" {
				want = 2 * time.Minute
			}
			if e := wantError(t, z.Apply(t.Context(), batch("a.kura.test")), rateLimited); e.After != want {
				t.Errorf("After is %s, want %s", e.After, want)
			}
			for _, zone := range []*Zone{z, z.Observing()} {
				_, err := zone.List(t.Context(), everything)
				if e := wantError(t, err, rateLimited); e.After > want || e.After < want-10*time.Second || !strings.Contains(e.Message, "not asked") {
					t.Errorf("%+v, want After of nearly %s and that it was not asked", e, want)
				}
			}
			if n := calls.Load(); n != 1 {
				t.Errorf("%d calls, want the one that was refused", n)
			}
		})
	}
}

func TestCall_whoGoesBeforeItsTurnChangesNothing(t *testing.T) {
	z := answers(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	if _, err := z.identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantError(t, z.Apply(ctx, batch("a.kura.test")), unreachable)
}
