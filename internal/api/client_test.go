package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// exchange is a transport that answers from a script and notes when it was asked.
type exchange struct {
	mu     sync.Mutex
	script []func(*http.Request) (*http.Response, error)
	asked  []time.Time
	seen   []*http.Request
}

func (e *exchange) RoundTrip(r *http.Request) (*http.Response, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked, e.seen = append(e.asked, time.Now()), append(e.seen, r)
	if len(e.script) == 0 {
		return nil, errors.New("nobody expected another request")
	}
	next := e.script[0]
	e.script = e.script[1:]
	return next(r)
}

func answer(status int, body string, header ...string) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {"application/json"}}
		if status >= 400 {
			h.Set("Content-Type", ContentTypeProblem)
		}
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
	}
}

func broken(err error) func(*http.Request) (*http.Response, error) {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

func problemBody(code fleet.Code) string {
	return fmt.Sprintf(`{"type":"about:blank","title":"t","status":%d,"detail":"the reason","code":%q,"request_id":"R1"}`, Status(code), code)
}

func scripted(script ...func(*http.Request) (*http.Response, error)) (*Client, *exchange) {
	e := &exchange{script: script}
	cfg := Config{Endpoint: DefaultEndpoint, Token: NewSecret("kura_a_b"), Environment: "staging", UserAgent: "test", RequestTimeout: DefaultRequestTimeout, MaxConcurrent: 2, Logger: hclog.NewNullLogger()}
	return newClient(cfg, &url.URL{Scheme: "http", Host: "127.0.0.1:7433"}, e), e
}

func TestClient_waitsAsLongAsRetryAfterSays(t *testing.T) {
	for name, header := range map[string]func() string{
		"seconds": func() string { return "7" },
		"a date":  func() string { return time.Now().Add(7 * time.Second).UTC().Format(http.TimeFormat) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				for _, status := range []int{429, 503} {
					c, e := scripted(answer(status, problemBody(fleet.CodeUnavailable), "Retry-After", header()), answer(200, `{"environment":"staging"}`))
					got, err := c.Version(t.Context())
					if err != nil || got.Environment != "staging" {
						t.Fatal(got, err)
					}
					if waited := e.asked[1].Sub(e.asked[0]); waited < 6*time.Second || waited > 7*time.Second {
						t.Errorf("%d: waited %s, want 7s", status, waited)
					}
				}
			})
		})
	}
}

func TestClient_doesNotWaitForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, e := scripted(answer(503, problemBody(fleet.CodeUnavailable), "Retry-After", "3600"))
		_, err := c.Version(t.Context())
		fault, ok := errors.AsType[*Error](err)
		if !ok || fault.RetryAfter != time.Hour || fault.Status != 503 || fault.RequestID != "R1" || fleet.CodeOf(err) != fleet.CodeUnavailable || len(e.asked) != 1 {
			t.Errorf("%#v after %d requests", err, len(e.asked))
		}
	})
}

func TestClient_repeatsOnlyWhatCanDoNoHarm(t *testing.T) {
	dial := broken(&net.OpError{Op: "dial", Err: errors.New("connection refused")})
	cut := broken(errors.New("connection reset"))
	busy, gateway := answer(429, problemBody(fleet.CodeUnavailable)), answer(504, "")
	ok := answer(200, `{}`)
	acme := fleet.Account{ID: "acme"}
	calls := map[string]func(context.Context, *Client) error{
		"read": func(ctx context.Context, c *Client) error { _, err := c.GetAccount(ctx, "acme"); return err },
		"write": func(ctx context.Context, c *Client) error {
			_, err := c.PutAccount(ctx, acme, PutOptions{})
			return err
		},
		"delete": func(ctx context.Context, c *Client) error { return c.DeleteAccount(ctx, "acme") },
		"redeploy": func(ctx context.Context, c *Client) error {
			_, err := c.Redeploy(ctx, fleet.ServerKey{Account: "a", Region: "b"}, "k")
			return err
		},
		"dry run": func(ctx context.Context, c *Client) error {
			_, err := c.PutAccount(ctx, acme, PutOptions{IfMatch: 3, DryRun: true})
			return err
		},
		"create": func(ctx context.Context, c *Client) error {
			_, err := c.PutAccount(ctx, acme, PutOptions{IfNoneMatch: true})
			return err
		},
		"update": func(ctx context.Context, c *Client) error {
			_, err := c.PutAccount(ctx, acme, PutOptions{IfMatch: 3})
			return err
		},
		"token": func(ctx context.Context, c *Client) error {
			_, err := c.CreateToken(ctx, TokenRequest{Name: "x", Scope: "read"})
			return err
		},
	}
	conditional := map[string]bool{"create": true, "update": true, "token": true}
	for name, call := range calls {
		for what, first := range map[string]func(*http.Request) (*http.Response, error){"dial": dial, "cut": cut, "busy": busy, "gateway": gateway} {
			synctest.Test(t, func(t *testing.T) {
				c, e := scripted(first, ok)
				err := call(t.Context(), c)
				repeat := !conditional[name] || what == "dial" || what == "busy"
				if got := len(e.asked) == 2; got != repeat || (err == nil) != repeat {
					t.Errorf("%s after %s: %d requests, %v; want it repeated: %v", name, what, len(e.asked), err, repeat)
				}
			})
		}
	}
}

// Who answered before is taken to restart, and waited for; where nobody ever did, there
// is no reason to.
func TestClient_givesUpAfterABoundedNumberOfTriesAndSoonerWhereNobodyEverAnswered(t *testing.T) {
	for _, row := range []struct {
		name        string
		met         bool
		tries       int
		least, most time.Duration
	}{
		{"nobody ever answered", false, 1 + retryNobody, 500 * time.Millisecond, 2 * time.Second},
		{"it answered before", true, 1 + retryMax, 3 * time.Second, 30 * time.Second},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, e := scripted()
				if row.met {
					e.script = append(e.script, answer(200, `{"environment":"staging"}`))
					if _, err := c.Version(t.Context()); err != nil {
						t.Fatal(err)
					}
					e.asked = nil
				}
				for range 10 {
					e.script = append(e.script, broken(&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}))
				}
				begun := time.Now()
				_, err := c.Version(t.Context())
				if took := time.Since(begun); len(e.asked) != row.tries || took < row.least || took > row.most || fleet.CodeOf(err) != fleet.CodeUnavailable {
					t.Errorf("%d tries in %s: %v; want %d in %s to %s", len(e.asked), took, err, row.tries, row.least, row.most)
				}
				for _, word := range []string{"read the daemon's version", "kurad at http://127.0.0.1:7433 does not answer", "is it running", "connection refused"} {
					if !strings.Contains(err.Error(), word) {
						t.Errorf("text lacks %q: %v", word, err)
					}
				}
			})
		})
	}
}

func TestClient_endsAtOnceWhenItIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := scripted(answer(503, problemBody(fleet.CodeUnavailable), "Retry-After", "50"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun := time.Now()
		_, err := c.Version(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
	})
}

func TestClient_onlyKuradsOwn404MeansGone(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(*http.Request) (*http.Response, error)
		code   fleet.Code
	}{
		"kurad's":             {answer(404, problemBody(fleet.CodeNotFound)), fleet.CodeNotFound},
		"an older kurad's":    {answer(404, `{"status":404,"detail":"no route","code":"no_such_route"}`), CodeNoRoute},
		"a proxy's":           {answer(404, "<html>", "Content-Type", "text/html"), fleet.CodeInternal},
		"another service's":   {answer(404, `{"error":"not found"}`, "Content-Type", "application/json"), fleet.CodeInternal},
		"a problem of others": {answer(404, `{"title":"Not Found","status":404}`), fleet.CodeInternal},
		"a page instead":      {answer(200, "<html>", "Content-Type", "text/html"), fleet.CodeInternal},
		"half an answer":      {answer(200, `{"generation":`), fleet.CodeInternal},
		"a redirect":          {answer(302, "", "Location", "https://elsewhere.example"), fleet.CodeInternal},
	} {
		client, e := scripted(c.answer)
		_, err := client.GetAccount(t.Context(), "acme")
		if fleet.CodeOf(err) != c.code || len(e.asked) != 1 {
			t.Errorf("%s: %v, code %s, want %s", name, err, fleet.CodeOf(err), c.code)
		}
	}
}

func TestClient_decodesTheFieldsOfAProblem(t *testing.T) {
	c, _ := scripted(answer(422, `{"status":422,"detail":"region \"eu\" is not valid","code":"invalid","errors":[{"pointer":"/hosts/public","detail":"is required"}],"request_id":"q7"}`))
	_, err := c.PutRegion(t.Context(), fleet.Region{Name: "eu"}, PutOptions{})
	fault, ok := errors.AsType[*fleet.Error](err)
	if !ok || fault.Code != fleet.CodeInvalid || len(fault.Fields) != 1 || fault.Fields[0].Pointer != "/hosts/public" {
		t.Fatalf("%#v", err)
	}
	if want := `write region "eu": region "eu" is not valid: /hosts/public: is required`; err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}

func TestClient_sendsWhatTheCallSays(t *testing.T) {
	c, e := scripted(answer(200, `{}`), answer(200, `{}`), answer(200, `{}`))
	_, err := c.PutServer(t.Context(), fleet.Server{Account: "a", Region: "b"}, PutOptions{IfMatch: 4, DryRun: true})
	_, err2 := c.Redeploy(t.Context(), fleet.ServerKey{Account: "a", Region: "b"}, "key-1")
	_, err3 := c.GetServer(t.Context(), fleet.ServerKey{Account: "a/b", Region: "?"}, GetOptions{ObserveNow: true})
	if err := errors.Join(err, err2, err3); err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"PUT /v1/servers/a/b?dry_run=true", "POST /v1/servers/a/b:redeploy?", "GET /v1/servers/a%2Fb/%3F?observe=now"} {
		r := e.seen[i]
		if got := r.Method + " " + r.URL.EscapedPath() + "?" + r.URL.RawQuery; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if r.Header.Get("Authorization") != "Bearer kura_a_b" || r.Header.Get(HeaderEnvironment) != "staging" || r.Header.Get("User-Agent") != "test" {
			t.Errorf("headers %v", r.Header)
		}
	}
	if e.seen[0].Header.Get("If-Match") != `"4"` || e.seen[1].Header.Get(HeaderIdempotency) != "key-1" {
		t.Errorf("%v %v", e.seen[0].Header, e.seen[1].Header)
	}
	for _, name := range []string{"", ".", ".."} {
		if _, err := c.GetAccount(t.Context(), name); fleet.CodeOf(err) != fleet.CodeInvalid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestClient_readsAllPagesAndBeginsAgainWhenTheyAreGone(t *testing.T) {
	page := func(id, next string) func(*http.Request) (*http.Response, error) {
		return answer(200, fmt.Sprintf(`{"items":[{"id":%q}],"next":%q}`, id, next))
	}
	c, e := scripted(page("a", "p2"), answer(410, `{"status":410,"detail":"gone","code":"cursor_expired"}`), page("a", "p3"), page("b", ""))
	got, err := c.ListAccounts(t.Context())
	if err != nil || len(got) != 2 || got[0].ID != "a" || got[1].ID != "b" {
		t.Errorf("%+v, %v", got, err)
	}
	for i, want := range []string{"limit=1000", "limit=1000&page=p2", "limit=1000", "limit=1000&page=p3"} {
		if q := e.seen[i].URL.RawQuery; q != want {
			t.Errorf("request %d: %s, want %s", i, q, want)
		}
	}
}

func TestClient_asksNoMoreThanMaxConcurrentAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now, most := 0, 0
		var mu sync.Mutex
		slow := roundTripper(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second) // the bubble's
			mu.Lock()
			now--
			mu.Unlock()
			return answer(200, `{}`)(r)
		})
		c := newClient(Config{MaxConcurrent: 3, RequestTimeout: time.Minute, Logger: hclog.NewNullLogger()}, &url.URL{Scheme: "http", Host: "x"}, slow)
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { _, _ = c.Version(t.Context()) })
		}
		wg.Wait()
		if most != 3 {
			t.Errorf("%d at once, want 3", most)
		}
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestNew_refusesEndpointsThatCannotBeMeant(t *testing.T) {
	for endpoint, word := range map[string]string{
		"127.0.0.1:7433": "write it like", "ftp://x": "https, http or unix", "http://": "names no host", "https://": "names no host", "unix://sock": "three slashes", "unix://": "three slashes",
		"http://kurad.example.dev:7433": "in the clear", "https://user:secret@kurad.example.dev": "token", "https://x?y=z": "nothing but", "://": "not a URL",
	} {
		_, err := New(Config{Endpoint: endpoint, Token: NewSecret("t")})
		if fleet.CodeOf(err) != fleet.CodeInvalid || !strings.Contains(err.Error(), word) {
			t.Errorf("%s: %v, want %q", endpoint, err, word)
		}
	}
	for _, endpoint := range []string{"", "http://localhost:1", "http://[::1]:1", "https://kurad.example.dev/kura/", "unix:///run/kurad.sock"} {
		if _, err := New(Config{Endpoint: endpoint, Token: NewSecret("t")}); err != nil {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	if _, err := New(Config{Endpoint: "https://x", CACertificate: "no pem"}); err == nil || !strings.Contains(err.Error(), "PEM") {
		t.Errorf("%v", err)
	}
}

func TestClient_reachesAUnixSocketAndATLSServer(t *testing.T) {
	hello := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"environment":"staging"}`)
	})
	socket := filepath.Join(t.TempDir(), "kurad.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	plain := &httptest.Server{Listener: listener, Config: &http.Server{Handler: hello}}
	plain.Start()
	defer plain.Close()
	secure := httptest.NewUnstartedServer(hello)
	secure.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	secure.Config.ErrorLog = hclog.NewNullLogger().StandardLogger(nil)
	secure.StartTLS()
	defer secure.Close()
	ca := pemOf(secure.Certificate().Raw)
	for endpoint, pem := range map[string]string{"unix://" + socket: "", secure.URL: ca} {
		c, err := New(Config{Endpoint: endpoint, CACertificate: pem, Token: NewSecret("t")})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Version(t.Context()); err != nil || got.Environment != "staging" {
			t.Errorf("%s: %+v, %v", endpoint, got, err)
		}
	}
	c, err := New(Config{Endpoint: secure.URL, Token: NewSecret("t")})
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	if _, err := c.Version(t.Context()); fleet.CodeOf(err) != fleet.CodeUnavailable || !strings.Contains(err.Error(), "certificate") || time.Since(begun) > retryWaitMax {
		t.Errorf("an unknown certificate: %v", err)
	}
}
