package readiness

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/dns/wire"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Prober makes probes. It is safe for concurrent use and keeps nothing between them.
type Prober struct {
	resolve resolveFunc
	policy  Policy
	roots   *x509.CertPool
	dialer  net.Dialer
}

// NewProber returns a prober with the operator's settings.
func NewProber(cfg Config) *Prober {
	p := &Prober{resolve: newResolve(cfg.Resolver), policy: NewPolicy(cfg.AllowCIDR), roots: cfg.RootCAs}
	p.dialer = net.Dialer{
		KeepAlive: -1, // a probe is over before the first would be sent
		// The kernel connects to exactly the address that this hook is shown, so
		// nothing can change between the check and the connection (R4).
		ControlContext: func(_ context.Context, _, address string, _ syscall.RawConn) error {
			target, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			return p.policy.Check(target.Addr())
		},
	}
	return p
}

// Probe makes one probe: everything afresh, from resolution to the end of the body.
func (p *Prober) Probe(ctx context.Context, t Target) fleet.ProbeObservation {
	seen := fleet.ProbeObservation{URL: t.URL, Begun: time.Now(), Ready: true, Reason: fleet.ReasonReady}
	timeout := t.Timeout
	if timeout <= 0 || timeout > MaxTimeout {
		timeout = MaxTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if failure := p.attempt(ctx, t, timeout); failure != nil {
		seen.Ready, seen.Reason, seen.Message = false, failure.reason, clip(failure.message)
	}
	return seen
}

// failure is why an endpoint is not ready.
type failure struct {
	reason  fleet.Reason
	message string
}

func failed(reason fleet.Reason, format string, args ...any) *failure {
	return &failure{reason, fmt.Sprintf(format, args...)}
}

// attempt goes through the phases; the first that fails names the reason.
func (p *Prober) attempt(ctx context.Context, t Target, timeout time.Duration) *failure {
	// late turns a failure into Timeout where the phase ended because ctx did.
	late := func(doing string, otherwise *failure) *failure {
		// A socket's deadline can fire a moment before that of ctx.
		deadline, _ := ctx.Deadline()
		switch {
		case otherwise == nil || (ctx.Err() == nil && time.Now().Before(deadline)):
			return otherwise
		case errors.Is(ctx.Err(), context.Canceled):
			return failed(fleet.ReasonTimeout, "the probe was cancelled while it waited to %s", doing)
		}
		return failed(fleet.ReasonTimeout, "the time of the whole probe, %s, was over while it waited to %s", timeout, doing)
	}

	u, err := parse(t)
	if err != nil {
		// Never an answer about the endpoint: nothing was asked (L58).
		return failed(fleet.ReasonNotChecked, "the probe cannot be made: %s", err)
	}
	host := u.Hostname()
	addrs, err := p.resolve(ctx, host)
	if err != nil {
		// Also when the time is over: the DNS server is what has to be looked at.
		return failed(fleet.ReasonNotResolvable, "resolve %s: %s", host, err)
	}
	raw, address, failure := p.connect(ctx, host, addrs, u.Port())
	if failure != nil {
		return late("connect to "+address, failure)
	}
	defer raw.Close()
	defer wire.EndWith(ctx, raw)()

	conn := raw
	if u.Scheme == fleet.SchemeHTTPS {
		secure := tls.Client(raw, &tls.Config{
			ServerName: host,
			RootCAs:    p.roots,
			MinVersion: tls.VersionTLS12,
			NextProtos: []string{"http/1.1"},
		})
		if err := secure.HandshakeContext(ctx); err != nil {
			return late("finish the TLS handshake with "+address, failed(fleet.ReasonTLSNotReady, "%s", tlsMessage(err, host, address)))
		}
		conn = secure
	}
	return late("hear an answer from "+address, get(conn, u, t.Foreign))
}

// parse joins url and path and fills in the port.
func parse(t Target) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(t.URL, "/") + t.Path)
	if err != nil {
		return nil, fmt.Errorf("%q with path %q is no url", t.URL, t.Path)
	}
	ports := map[string]string{fleet.SchemeHTTPS: "443", fleet.SchemeHTTP: "80"}
	if ports[u.Scheme] == "" || u.Hostname() == "" {
		return nil, fmt.Errorf("%q is not of the form https://host or http://host", t.URL)
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), ports[u.Scheme]) // the bare host stays in the Host header: see get
	}
	if _, err := strconv.ParseUint(u.Port(), 10, 16); err != nil {
		return nil, fmt.Errorf("%q has a port over 65535", t.URL)
	}
	return u, nil
}

// connect tries the addresses one after the other, each with its share of the
// time that is left. It returns the address of the connection, or the last one tried.
func (p *Prober) connect(ctx context.Context, host string, addrs []netip.Addr, port string) (net.Conn, string, *failure) {
	var address string
	var denied error
	var tried []string
	for i, addr := range addrs {
		share, cancel := ctx, context.CancelFunc(func() {})
		if deadline, ok := ctx.Deadline(); ok {
			share, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(addrs)-i))
		}
		target := net.JoinHostPort(addr.String(), port)
		conn, err := p.dialer.DialContext(share, "tcp", target)
		cancel()
		if err == nil {
			// A reset at the end instead of TIME_WAIT, which would keep the local port
			// for a minute. By then the answer was read, or none is expected.
			if tcp, ok := conn.(*net.TCPConn); ok {
				_ = tcp.SetLinger(0)
			}
			return conn, target, nil
		}
		if refusal, ok := errors.AsType[*DeniedError](err); ok {
			denied = refusal
			continue
		}
		address = target
		tried = append(tried, fmt.Sprintf("connect to %s: %s", target, errno(err)))
		if ctx.Err() != nil {
			break
		}
	}
	if denied != nil {
		// First, and the host last: the flag has to survive clipping.
		tried = append([]string{fmt.Sprintf("%s (an address of %s)", denied, host)}, tried...)
	}
	return nil, address, failed(fleet.ReasonConnectFailed, "%s", strings.Join(tried, "; "))
}

// errno returns the part of a network error that is not its address.
func errno(err error) string {
	if number, ok := errors.AsType[syscall.Errno](err); ok {
		return number.Error()
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return "no answer in time"
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "the connection was closed"
	}
	return err.Error()
}

// tlsMessage says what is wrong with the certificate and what to do, and
// repeats nothing of it but its dates.
func tlsMessage(err error, host, address string) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return fmt.Sprintf("the certificate of %s at %s is signed by an authority that kurad does not know (x509 unknown authority): name the authority's file with --probe-ca", host, address)
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("the certificate at %s is not valid for %s: the server needs one that names the host, or its wildcard", address, host)
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason == x509.Expired && invalid.Cert != nil {
			return fmt.Sprintf("the certificate of %s at %s is valid only from %s to %s: renew it, or set the clock", host, address,
				invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
		}
		return fmt.Sprintf("the certificate of %s at %s is not valid (x509 reason %d)", host, address, invalid.Reason)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return fmt.Sprintf("the certificate of %s at %s is not valid", host, address)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		return fmt.Sprintf("%s does not speak TLS: is the scheme http?", address)
	}
	if alert, ok := errors.AsType[*net.OpError](err); ok && alert.Op == "remote error" {
		return fmt.Sprintf("%s refused the TLS handshake: %s", address, alert.Err)
	}
	return fmt.Sprintf("TLS handshake with %s failed: %s", address, errno(err))
}

const (
	maxBody   = 4 << 10  // what is read of a body; the rest does not matter
	maxAnswer = 64 << 10 // of everything that is read, header and framing included
	maxHints  = 5        // informational answers before the real one
)

// get asks for u on a connection that nothing else uses, and judges the answer.
// There is no http.Transport in between: it would pool, dial on after a timeout
// and follow the environment's proxy.
func get(conn net.Conn, u *url.URL, foreign bool) *failure {
	request := &http.Request{
		Method: http.MethodGet,
		URL:    u,
		Host:   hostHeader(u),
		Header: http.Header{"User-Agent": {"kurad-probe"}, "Accept": {"*/*"}},
		Close:  true,
	}
	notReady := func(format string, args ...any) *failure {
		return failed(fleet.ReasonHTTPNotReady, "GET "+strings.ReplaceAll(u.Redacted(), "%", "%%")+" "+format, args...)
	}
	if err := request.Write(conn); err != nil {
		return notReady("could not be sent: %s", errno(err))
	}
	limit := &io.LimitedReader{R: conn, N: maxAnswer}
	reader := bufio.NewReader(limit)
	var answer *http.Response
	for range maxHints {
		var err error
		answer, err = http.ReadResponse(reader, request) //nolint:bodyclose // closing it could mean to read it to its end: the connection is closed
		if err != nil {
			if limit.N <= 0 {
				return notReady("was answered with a header over %d KiB", maxAnswer>>10)
			}
			if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
				return notReady("was not answered: %s", errno(err))
			}
			return notReady("was answered with something that is not HTTP") // its text would repeat what was sent
		}
		if answer.StatusCode >= 200 || answer.StatusCode == http.StatusSwitchingProtocols {
			break
		}
	}
	switch {
	case foreign && answer.StatusCode >= 200 && answer.StatusCode < 500:
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return notReady("answered %d; redirects are not followed: the path must answer 2xx itself", answer.StatusCode)
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		return notReady("answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	// An answer that stops half way is none, but nobody needs more than its beginning.
	if _, err := io.CopyN(io.Discard, answer.Body, maxBody); err != nil && !errors.Is(err, io.EOF) {
		return notReady("answered %d, but its body broke off: %s", answer.StatusCode, errno(err))
	}
	return nil
}

// hostHeader leaves the scheme's own port out, as clients do.
func hostHeader(u *url.URL) string {
	if (u.Scheme == fleet.SchemeHTTPS && u.Port() == "443") || (u.Scheme == fleet.SchemeHTTP && u.Port() == "80") {
		return strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	return u.Host
}
