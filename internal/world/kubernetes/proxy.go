package kubernetes

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

// Fault is what a Proxy does to calls instead of handing them on and bringing the answer.
type Fault struct {
	// Status is answered, with the reason that the API server would give, unless Answer
	// says what; 0: nothing is answered, the stream of the call is cut.
	Status int
	// Answer is the whole answer, where that of Status alone does not do.
	Answer *metav1.Status
	// After hands the call on first, which is for writes: they have their effect, and the
	// answer is another or none.
	After bool
	// Hold keeps the call without an answer until the fault is over, and hands it on then.
	Hold bool
	// When picks the calls; nil: all.
	When func(Call) bool
}

// Proxy sits between a client and the API server. It speaks TLS with a certificate of the
// server's CA, so that a client notices nothing, and breaks what goes through it on
// command.
type Proxy struct {
	// Wire is the connections themselves: refuse, drop, half-open, delay.
	Wire *world.Proxy

	server *Server
	web    *http.Server
	onward *httputil.ReverseProxy

	mu      sync.Mutex
	fault   *Fault
	over    chan struct{} // closed when the fault is over
	held    chan struct{} // closed when watches go on; nil: they do
	watches map[*watched]bool
	calls   []Call
}

// StartProxy runs a proxy before the server, until Close.
func (s *Server) StartProxy() (*Proxy, error) {
	fail := func(err error) (*Proxy, error) {
		return nil, fmt.Errorf("start a proxy before kube-apiserver: %w", err)
	}
	transport, err := rest.TransportFor(&rest.Config{Host: "https://" + s.host, TLSClientConfig: rest.TLSClientConfig{CAData: s.ca.PEM()}})
	if err != nil {
		return fail(err)
	}
	pair, err := tls.LoadX509KeyPair(s.files.Cert, s.files.Key)
	if err != nil {
		return fail(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fail(err)
	}
	p := &Proxy{server: s, over: make(chan struct{}), watches: map[*watched]bool{}}
	quiet := log.New(io.Discard, "", 0) // cut connections are what it is for
	target := &url.URL{Scheme: "https", Host: s.host}
	p.onward = &httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		FlushInterval:  -1, // the events of a watch are not to wait for each other
		ErrorLog:       quiet,
		ModifyResponse: p.answered,
		// An API server that does not answer is to look like one.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p.web = &http.Server{
		Handler: p, ErrorLog: quiet, ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	}
	go func() { _ = p.web.ServeTLS(listener, "", "") }() // ends by Close
	if p.Wire, err = world.StartProxy("tcp", "", listener.Addr().String()); err != nil {
		return fail(errors.Join(err, p.web.Close()))
	}
	return p, nil
}

// Close ends the proxy and every connection through it.
func (p *Proxy) Close() {
	p.Heal()
	p.Wire.Close()
	_ = p.web.Close() // its listener is all that could fail
}

// Address is host:port of the proxy.
func (p *Proxy) Address() string { return p.Wire.Addr() }

// REST is how a user reaches the server through the proxy.
func (p *Proxy) REST(user string, groups ...string) *rest.Config {
	c := p.server.REST(user, groups...)
	c.Host = "https://" + p.Address()
	return c
}

// Kubeconfig is the server's, through the proxy.
func (p *Proxy) Kubeconfig(user string) (string, error) {
	return p.server.kubeconfig(user, p.Address())
}

// Set makes the fault the only one, until the next Set or Heal. Watches that are open
// stay open; see CutWatches.
func (p *Proxy) Set(f Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(&f)
}

// Heal ends the fault, and lets watches go on.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end(nil)
	if p.held != nil {
		close(p.held)
		p.held = nil
	}
}

// end replaces the fault; the lock is held.
func (p *Proxy) end(next *Fault) {
	close(p.over)
	p.fault, p.over = next, make(chan struct{})
}

// CutWatches ends the watches that are open, without a word, and says how many there were.
func (p *Proxy) CutWatches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for w := range p.watches {
		w.cut()
	}
	return len(p.watches)
}

// HoldWatches keeps watches open, those that come as well, and brings none of their events
// until Heal.
func (p *Proxy) HoldWatches() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held == nil {
		p.held = make(chan struct{})
	}
}

// Watches is how many watches are open.
func (p *Proxy) Watches() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.watches)
}

// Calls returns what was asked since the last Forget, in the order of the answers; a watch
// counts when it is opened.
func (p *Proxy) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Call(nil), p.calls...)
}

// Count is how many of Calls are picked.
func (p *Proxy) Count(picked func(Call) bool) int {
	n := 0
	for _, c := range p.Calls() {
		if picked(c) {
			n++
		}
	}
	return n
}

// Forget makes Calls begin anew.
func (p *Proxy) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = nil
}

func (p *Proxy) note(c Call, status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c.Status = status
	p.calls = append(p.calls, c)
}

type callKey struct{}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := callOf(r)
	if call.Verb == "create" {
		call.Name = nameIn(r)
	}
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, call))
	p.mu.Lock()
	fault, over := p.fault, p.over
	p.mu.Unlock()
	switch {
	case fault == nil || fault.When != nil && !fault.When(call):
		p.onward.ServeHTTP(w, r)
		return
	case fault.Hold:
		select {
		case <-over:
			p.onward.ServeHTTP(w, r)
		case <-r.Context().Done():
			p.note(call, 0)
		}
		return
	case fault.After:
		p.lose(r)
	}
	status := fault.status()
	p.note(call, int(status.Code))
	if status.Code == 0 {
		panic(http.ErrAbortHandler) // cuts the stream
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // the client may be gone
}

// nameIn is the name of the object in the body of a request.
func nameIn(r *http.Request) string {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return ""
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	var o struct{ Metadata struct{ Name string } }
	_ = json.Unmarshal(body, &o) // what is no JSON names nothing
	return o.Metadata.Name
}

// lose hands a call on and forgets the answer.
func (p *Proxy) lose(r *http.Request) {
	out := r.Clone(r.Context())
	out.RequestURI, out.URL.Scheme, out.URL.Host = "", "https", p.server.host
	answer, err := p.onward.Transport.RoundTrip(out)
	if err != nil {
		return
	}
	_, _ = io.Copy(io.Discard, answer.Body) // until it has been answered in full
	answer.Body.Close()
}

// answered notes an answer, and gets hold of the events of a watch.
func (p *Proxy) answered(answer *http.Response) error {
	call, _ := answer.Request.Context().Value(callKey{}).(Call)
	p.note(call, answer.StatusCode)
	if call.Watch() && answer.StatusCode == http.StatusOK {
		w := &watched{ReadCloser: answer.Body, proxy: p, ended: make(chan struct{})}
		p.mu.Lock()
		p.watches[w] = true
		p.mu.Unlock()
		answer.Body = w
	}
	return nil
}

// reasons are those of the API server for answers without more to say.
var reasons = map[int]metav1.StatusReason{
	http.StatusUnauthorized: metav1.StatusReasonUnauthorized, http.StatusForbidden: metav1.StatusReasonForbidden,
	http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusConflict: metav1.StatusReasonConflict,
	http.StatusGone: metav1.StatusReasonExpired, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
	http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests, http.StatusInternalServerError: metav1.StatusReasonInternalError,
	http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable, http.StatusGatewayTimeout: metav1.StatusReasonTimeout,
}

func (f *Fault) status() metav1.Status {
	if f.Answer != nil {
		return *f.Answer
	}
	return metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(f.Status), Reason: reasons[f.Status], Message: http.StatusText(f.Status) + " (injected)",
	}
}

// watched is the stream of a watch.
type watched struct {
	io.ReadCloser
	proxy *Proxy
	ended chan struct{}
	once  sync.Once
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.ReadCloser.Read(b)
	w.proxy.mu.Lock()
	held := w.proxy.held
	w.proxy.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-w.ended:
			return 0, io.ErrUnexpectedEOF
		}
	}
	return n, err
}

// cut ends the stream, also while it is held.
func (w *watched) cut() {
	w.once.Do(func() { close(w.ended) })
	w.ReadCloser.Close()
}

// Close implements io.Closer.
func (w *watched) Close() error {
	w.proxy.mu.Lock()
	delete(w.proxy.watches, w)
	w.proxy.mu.Unlock()
	w.once.Do(func() { close(w.ended) })
	return w.ReadCloser.Close()
}
