//go:build real

package provider

import (
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// between stands between the provider and kurad. It hands everything on and notes it,
// but for the requests that a test gave a fault.
type between struct {
	t *testing.T

	mu    sync.Mutex
	rules []*rule
	seen  []exchange
}

// exchange is a request of the provider and what it was answered.
type exchange struct {
	at     time.Time // when the request came
	on     on
	status int // 0: it was cut
}

// on says which requests are meant.
type on struct {
	method, path string
	polls        bool // requests that wait for news
	dry          bool // what a plan asks
}

// What the provider asks about servers.
var (
	writesServer = on{method: "PUT", path: "/v1/servers/acme/eu"}
	readsServer  = on{method: "GET", path: "/v1/servers/acme/eu"}
	endsServer   = on{method: "DELETE", path: "/v1/servers/acme/eu"}
	pollsServers = on{method: "GET", path: "/v1/servers", polls: true}
	meets        = on{method: "GET", path: "/v1/version"}
)

// fault answers a request in kurad's place; kurad is who would answer it.
type fault func(w http.ResponseWriter, r *http.Request, kurad http.Handler)

// rule gives faults to the next requests that it is on, one each.
type rule struct {
	on     on
	faults []fault
}

// between puts a proxy before the daemon, which the configurations name from now on.
func (k *kurad) between() *between {
	k.t.Helper()
	target, err := url.Parse(k.endpoint)
	if err != nil {
		k.t.Fatal(err)
	}
	b := &between{t: k.t}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // polls whose waiter left
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.serve(w, r, proxy) }))
	k.t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	k.front = web.URL
	return b
}

func (b *between) serve(w http.ResponseWriter, r *http.Request, kurad http.Handler) {
	is := on{method: r.Method, path: r.URL.Path, polls: r.URL.Query().Has("wait"), dry: r.URL.Query().Has("dry_run")}
	b.mu.Lock()
	n := len(b.seen)
	b.seen = append(b.seen, exchange{at: time.Now(), on: is})
	var f fault
	for _, rule := range b.rules {
		if rule.on == is && len(rule.faults) > 0 {
			f, rule.faults = rule.faults[0], rule.faults[1:]
			break
		}
	}
	b.mu.Unlock()
	note := &noted{ResponseWriter: w, note: func(status int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.seen[n].status = status
	}}
	if f != nil {
		f(note, r, kurad)
	} else {
		kurad.ServeHTTP(note, r)
	}
}

// noted notes the status of an answer.
type noted struct {
	http.ResponseWriter
	note func(status int)
}

func (w *noted) WriteHeader(status int) {
	w.note(status)
	w.ResponseWriter.WriteHeader(status)
}

func (w *noted) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// give gives the next requests a fault each.
func (b *between) give(to on, faults ...fault) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.rules = append(b.rules, &rule{on: to, faults: faults})
}

// given reports how many faults nobody has met yet.
func (b *between) given() (left int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, rule := range b.rules {
		left += len(rule.faults)
	}
	return left
}

// asked returns the exchanges of one kind, in their order.
func (b *between) asked(what on) []exchange {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []exchange
	for _, e := range b.seen {
		if e.on == what {
			out = append(out, e)
		}
	}
	return out
}

// forget begins anew, without faults and without a record.
func (b *between) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seen, b.rules = nil, nil
}

// statuses checks what the requests of a kind were answered, in their order.
func (b *between) statuses(what on, want ...int) {
	b.t.Helper()
	var got []int
	for _, e := range b.asked(what) {
		got = append(got, e.status)
	}
	if !slices.Equal(got, want) {
		b.t.Errorf("%s %s was answered %v, want %v", what.method, what.path, got, want)
	}
}

// answers is a problem document in kurad's place.
func answers(status int, code fleet.Code, detail string, header ...string) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", api.ContentTypeProblem)
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(api.Problem{Status: status, Code: code, Detail: detail, RequestID: "R1"})
	}
}

// busy is a daemon that asks for patience, in seconds.
func busy(seconds int) fault {
	return answers(http.StatusTooManyRequests, fleet.CodeUnavailable, "too many requests", "Retry-After", strconv.Itoa(seconds))
}

// page is what a proxy of others says.
func page(status int) fault {
	return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "<html>"+strings.ToLower(http.StatusText(status))+"</html>")
	}
}

// half is the beginning of an answer.
func half(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1000")
	w.WriteHeader(http.StatusOK)
	_, _ = io.WriteString(w, `{"items":[`)
	_ = http.NewResponseController(w).Flush() // else nothing of it would leave
	panic(http.ErrAbortHandler)
}

// cut resets the connection instead of an answer.
func cut(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

// loses lets kurad do what it is asked for, and cuts its answer.
func loses(w http.ResponseWriter, r *http.Request, kurad http.Handler) {
	kurad.ServeHTTP(httptest.NewRecorder(), r)
	cut(w, r, kurad)
}

// after lets something happen before kurad is asked.
func after(happens func()) fault {
	return func(w http.ResponseWriter, r *http.Request, kurad http.Handler) {
		happens()
		kurad.ServeHTTP(w, r)
	}
}

// nothing is no fault, for the requests before the one that a test means.
func nothing(w http.ResponseWriter, r *http.Request, kurad http.Handler) { kurad.ServeHTTP(w, r) }
