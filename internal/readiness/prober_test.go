package readiness

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

// ok answers 200 with a short body.
func ok(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") }

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(code)
	}
}

// short is the whole time of probes that are meant to run out of it.
const short = time.Second

func TestR1_faultTable(t *testing.T) {
	now := time.Now()
	https := func(handler http.HandlerFunc) func(*testing.T, *outside) string {
		return func(t *testing.T, o *outside) string {
			return "https://" + testHost + ":" + serveHTTP(t, listen(t, "127.0.0.1"), o.serverTLS(), handler)
		}
	}
	plain := func(handle func(net.Conn)) func(*testing.T, *outside) string {
		return func(t *testing.T, _ *outside) string { return "http://" + testHost + ":" + serveRaw(t, nil, handle) }
	}
	secure := func(handle func(net.Conn)) func(*testing.T, *outside) string {
		return func(t *testing.T, o *outside) string {
			return "https://" + testHost + ":" + serveRaw(t, o.serverTLS(), handle)
		}
	}
	certificate := func(from, to time.Time, host string) func(*testing.T, *outside) string {
		return func(t *testing.T, o *outside) string {
			config := &tls.Config{Certificates: []tls.Certificate{o.certificate(from, to, host)}}
			return "https://" + testHost + ":" + serveHTTP(t, listen(t, "127.0.0.1"), config, ok)
		}
	}
	dnsFault := func(fault world.DNSFault, handler http.HandlerFunc) func(*testing.T, *outside) string {
		return func(t *testing.T, o *outside) string {
			o.dns.SetFault(fault)
			return https(handler)(t, o)
		}
	}

	tests := []struct {
		name    string
		url     func(*testing.T, *outside) string
		reason  fleet.Reason
		message string // part of it
		timeout time.Duration
	}{
		{name: "200", url: https(ok), reason: fleet.ReasonReady},
		{name: "204", url: https(status(204)), reason: fleet.ReasonReady},
		{name: "200 over plain http", url: func(t *testing.T, _ *outside) string {
			return "http://" + testHost + ":" + serveHTTP(t, listen(t, "127.0.0.1"), nil, ok)
		}, reason: fleet.ReasonReady},
		{name: "a big body is not read", url: https(func(w http.ResponseWriter, _ *http.Request) {
			for chunk := make([]byte, 1<<20); ; {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}), reason: fleet.ReasonReady},
		{name: "hints come before the answer", url: plain(say("HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")), reason: fleet.ReasonReady},
		{name: "AAAA is never answered", url: dnsFault(world.DNSFault{DropAAAA: true}, ok), reason: fleet.ReasonReady, timeout: short},
		{name: "the first address is dead", url: func(t *testing.T, o *outside) string {
			o.dns.Set(testHost, netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1"))
			return https(ok)(t, o)
		}, reason: fleet.ReasonReady},

		{name: "no such name", url: func(*testing.T, *outside) string { return "https://nowhere.example.test" }, reason: fleet.ReasonNotResolvable, message: "REFUSED"},
		{name: "no address", url: func(_ *testing.T, o *outside) string { o.dns.Set(testHost); return "https://" + testHost }, reason: fleet.ReasonNotResolvable, message: "resolve acme-eu.kura.test: it has no A or AAAA record"},
		{name: "DNS fails", url: dnsFault(world.DNSFault{ServFail: true}, ok), reason: fleet.ReasonNotResolvable, message: "SERVFAIL"},
		{name: "DNS is silent", url: dnsFault(world.DNSFault{Drop: true}, ok), reason: fleet.ReasonNotResolvable, message: "did not answer", timeout: short},
		{name: "DNS is slow", url: dnsFault(world.DNSFault{Delay: time.Hour}, ok), reason: fleet.ReasonNotResolvable, message: "did not answer", timeout: short},

		{name: "nobody listens", url: func(t *testing.T, _ *outside) string {
			closed := listen(t, "127.0.0.1")
			closed.Close()
			return "https://" + testHost + ":" + portOf(closed)
		}, reason: fleet.ReasonConnectFailed, message: "connection refused"},
		{name: "the address is not allowed", url: func(t *testing.T, o *outside) string {
			o.dns.Set(testHost, netip.MustParseAddr("10.1.2.3"))
			return "https://" + testHost
		}, reason: fleet.ReasonConnectFailed, message: "10.1.2.3 is a private address, which is not probed unless kurad runs with --probe-allow-cidr 10.1.2.3/32 (an address of acme-eu.kura.test)"},

		{name: "L14 unknown authority", url: func(t *testing.T, _ *outside) string { return https(ok)(t, newOutside(t)) }, reason: fleet.ReasonTLSNotReady, message: "--probe-ca"},
		{name: "expired", url: certificate(now.Add(-2*time.Hour), now.Add(-time.Hour), testHost), reason: fleet.ReasonTLSNotReady, message: "renew it"},
		{name: "not valid yet", url: certificate(now.Add(time.Hour), now.Add(2*time.Hour), testHost), reason: fleet.ReasonTLSNotReady, message: "valid only from"},
		{name: "certificate of another host", url: certificate(now.Add(-time.Hour), now.Add(time.Hour), "other.kura.test"), reason: fleet.ReasonTLSNotReady, message: "not valid for acme-eu.kura.test"},
		{name: "no TLS there", url: func(t *testing.T, _ *outside) string {
			return "https://" + testHost + ":" + serveHTTP(t, listen(t, "127.0.0.1"), nil, ok)
		}, reason: fleet.ReasonTLSNotReady, message: "does not speak TLS"},
		{name: "closed in the handshake", url: func(t *testing.T, _ *outside) string {
			return "https://" + testHost + ":" + serveRaw(t, nil, say(""))
		}, reason: fleet.ReasonTLSNotReady, message: "was closed"},
		{name: "only old TLS", url: func(t *testing.T, o *outside) string {
			config := o.serverTLS()
			config.MinVersion, config.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
			return "https://" + testHost + ":" + serveHTTP(t, listen(t, "127.0.0.1"), config, ok)
		}, reason: fleet.ReasonTLSNotReady, message: "refused the TLS handshake"},

		{name: "503", url: https(status(503)), reason: fleet.ReasonHTTPNotReady, message: "answered 503 Service Unavailable"},
		{name: "404", url: https(status(404)), reason: fleet.ReasonHTTPNotReady, message: "answered 404"},
		{name: "302", url: https(status(302)), reason: fleet.ReasonHTTPNotReady, message: "answered 302; redirects are not followed"},
		{name: "101", url: plain(say("HTTP/1.1 101 Switching Protocols\r\n\r\n")), reason: fleet.ReasonHTTPNotReady, message: "answered 101"},
		{name: "hints without end", url: plain(say(strings.Repeat("HTTP/1.1 103 Early Hints\r\n\r\n", 100))), reason: fleet.ReasonHTTPNotReady, message: "answered 103"},
		{name: "not HTTP", url: secure(say("220 mail.kura.test ESMTP\r\n")), reason: fleet.ReasonHTTPNotReady, message: "not HTTP"},
		{name: "closed without an answer", url: secure(say("")), reason: fleet.ReasonHTTPNotReady, message: "was not answered: the connection was closed"},
		{name: "half a header", url: secure(say("HTTP/1.1 200 OK\r\nA: b")), reason: fleet.ReasonHTTPNotReady, message: "was closed"},
		{name: "half a body", url: secure(say("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")), reason: fleet.ReasonHTTPNotReady, message: "its body broke off"},
		{name: "endless header", url: plain(func(conn net.Conn) {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\n")
			for line := "A: " + strings.Repeat("b", 1000) + "\r\n"; ; {
				if _, err := io.WriteString(conn, line); err != nil {
					return
				}
			}
		}), reason: fleet.ReasonHTTPNotReady, message: "header over 64 KiB"},

		{name: "no answer to the handshake", url: func(t *testing.T, _ *outside) string {
			return "https://" + testHost + ":" + serveRaw(t, nil, sayAndStay(""))
		}, reason: fleet.ReasonTimeout, message: "TLS handshake", timeout: short},
		{name: "no answer to the request", url: secure(sayAndStay("")), reason: fleet.ReasonTimeout, message: "the time of the whole probe, 1s, was over", timeout: short},
		{name: "slow body", url: secure(sayAndStay("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf")), reason: fleet.ReasonTimeout, message: "to hear an answer", timeout: short},

		{name: "L58 no url", url: func(*testing.T, *outside) string { return "" }, reason: fleet.ReasonNotChecked, message: "cannot be made"},
		{name: "L58 another scheme", url: func(*testing.T, *outside) string { return "gopher://" + testHost }, reason: fleet.ReasonNotChecked, message: "not of the form https://host"},
		{name: "L58 port too high", url: func(*testing.T, *outside) string { return "https://" + testHost + ":70000" }, reason: fleet.ReasonNotChecked, message: "port over 65535"},
		{name: "L58 not a url", url: func(*testing.T, *outside) string { return "https://a b" }, reason: fleet.ReasonNotChecked, message: "no url"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := newOutside(t)
			target := Target{URL: tt.url(t, o), Path: "/up", Timeout: tt.timeout}
			begun := time.Now()
			seen := o.prober().Probe(t.Context(), target)
			if seen.Reason != tt.reason || seen.Ready != (tt.reason == fleet.ReasonReady) || !strings.Contains(seen.Message, tt.message) {
				t.Errorf("probe of %s: ready %t, %s %q; want %s %q", target.URL, seen.Ready, seen.Reason, seen.Message, tt.reason, tt.message)
			}
			if seen.URL != target.URL || seen.Begun.Before(begun) || seen.Begun.After(time.Now()) {
				t.Errorf("probe of %s is of %q and began %s, want after %s", target.URL, seen.URL, seen.Begun, begun)
			}
			if tt.timeout > 0 && !seen.Ready && time.Since(begun) < tt.timeout-50*time.Millisecond {
				t.Errorf("the probe ended after %s, want its whole time of %s", time.Since(begun), tt.timeout)
			}
		})
	}
}

// Of a foreign endpoint nothing but its url is known, so what it refuses to a stranger is
// an answer as well.
func TestR1_aForeignEndpointAnswersWithAnythingBelow500(t *testing.T) {
	o := newOutside(t)
	for code, want := range map[int]bool{200: true, 204: true, 302: true, 401: true, 404: true, 500: false, 503: false} {
		target := Target{URL: "https://" + testHost + ":" + serveHTTP(t, listen(t, "127.0.0.1"), o.serverTLS(), status(code)), Foreign: true}
		if seen := o.prober().Probe(t.Context(), target); seen.Ready != want || seen.Ready == (seen.Reason == fleet.ReasonHTTPNotReady) {
			t.Errorf("%d: %+v, want ready %v", code, seen, want)
		}
	}
}

func TestR1_asksForTheDeclaredHostPathAndPort(t *testing.T) {
	o := newOutside(t)
	var got atomic.Value
	port := serveHTTP(t, listen(t, "127.0.0.1"), o.serverTLS(), func(w http.ResponseWriter, r *http.Request) {
		got.Store(fmt.Sprintf("%s %s %s", r.Method, r.Host, r.URL))
	})
	for _, tt := range []struct{ url, path, want string }{
		{"https://acme-eu.kura.test:" + port, "/up", "GET acme-eu.kura.test:" + port + " /up"},
		{"https://acme-eu.kura.test:" + port + "/", "/up?deep=1", "GET acme-eu.kura.test:" + port + " /up?deep=1"},
		{"https://acme-eu.kura.test:" + port + "/base", "/up", "GET acme-eu.kura.test:" + port + " /base/up"},
		{"https://127.0.0.1:" + port, "/up", "GET 127.0.0.1:" + port + " /up"},
	} {
		seen := o.prober().Probe(t.Context(), Target{URL: tt.url, Path: tt.path})
		if !seen.Ready || got.Load() != tt.want {
			t.Errorf("probe of %s with path %s asked %v, want %s (%s %s)", tt.url, tt.path, got.Load(), tt.want, seen.Reason, seen.Message)
		}
	}
	for raw, want := range map[string]string{
		"https://a.kura.test": "a.kura.test", "https://a.kura.test:443": "a.kura.test", "http://a.kura.test:443": "a.kura.test:443",
		"http://a.kura.test": "a.kura.test", "https://[2001:db8::1]": "[2001:db8::1]", "https://[2001:db8::1]:8443": "[2001:db8::1]:8443",
	} {
		u, err := parse(Target{URL: raw, Path: "/up"})
		if err != nil {
			t.Fatal(err)
		}
		if host := hostHeader(u); host != want {
			t.Errorf("the Host header for %s is %q, want %q", raw, host, want)
		}
	}
}

func TestR1_anAnswerTooLongForADatagramIsAskedForByTCP(t *testing.T) {
	o := newOutside(t)
	addrs := make([]netip.Addr, 60)
	for i := range addrs {
		addrs[i] = netip.AddrFrom4([4]byte{127, 0, 1, byte(i)})
	}
	o.dns.Set(testHost, addrs...)
	got, err := o.prober().resolve(t.Context(), testHost)
	if diff := cmp.Diff(fmt.Sprint(addrs), fmt.Sprint(got)); err != nil || diff != "" {
		t.Errorf("resolve %s: %v (-want +got):\n%s", testHost, err, diff)
	}
}

func TestR1_IPv6(t *testing.T) {
	o := newOutside(t)
	o.dns.Set(testHost, netip.MustParseAddr("::1"))
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil { // a machine without IPv6 sees what it would in a probe
		seen := o.prober().Probe(t.Context(), Target{URL: "https://" + testHost, Path: "/up"})
		if seen.Reason != fleet.ReasonConnectFailed || !strings.Contains(seen.Message, "[::1]:443") {
			t.Errorf("probe of ::1 without IPv6: %s %q, want ConnectFailed naming [::1]:443", seen.Reason, seen.Message)
		}
		return
	}
	port := serveHTTP(t, listener, o.serverTLS(), ok)
	for _, url := range []string{"https://" + testHost + ":" + port, "https://[::1]:" + port} {
		if seen := o.prober().Probe(t.Context(), Target{URL: url, Path: "/up"}); !seen.Ready {
			t.Errorf("probe of %s: %s %s, want ready", url, seen.Reason, seen.Message)
		}
	}
}

func TestR1_everyProbeIsFresh(t *testing.T) {
	o := newOutside(t)
	config := o.serverTLS()
	var handshakes, resumed atomic.Int32
	config.VerifyConnection = func(state tls.ConnectionState) error {
		handshakes.Add(1)
		if state.DidResume {
			resumed.Add(1)
		}
		return nil
	}
	port := serveHTTP(t, listen(t, "127.0.0.1"), config, ok)
	prober := o.prober()
	const probes = 3
	for range probes {
		if seen := prober.Probe(t.Context(), Target{URL: "https://" + testHost + ":" + port, Path: "/up"}); !seen.Ready {
			t.Fatalf("%s %s, want ready", seen.Reason, seen.Message)
		}
	}
	if handshakes.Load() != probes || resumed.Load() != 0 || o.dns.Queries() != 2*probes {
		t.Errorf("%d probes made %d handshakes (%d resumed) and %d DNS questions, want %d, none, %d (A and AAAA each)",
			probes, handshakes.Load(), resumed.Load(), o.dns.Queries(), probes, 2*probes)
	}
}

func TestR1_messagesAreShortAndRepeatNothing(t *testing.T) {
	const canary = "canary-7f3a"
	long := strings.Repeat(canary, 100)
	for name, answer := range map[string]string{
		"reason phrase": "HTTP/1.1 503 " + canary + "\r\n\r\n" + canary,
		"status line":   "HTTP/1.1 " + long + "\r\n\r\n",
		"header":        "HTTP/1.1 302 Found\r\nLocation: http://" + canary + "/\r\n\r\n",
		"bad header":    "HTTP/1.1 200 OK\r\n" + canary + "\r\n\r\n",
		"bad length":    "HTTP/1.1 200 OK\r\nContent-Length: " + canary + "\r\n\r\n",
		"bad encoding":  "HTTP/1.1 200 OK\r\nTransfer-Encoding: " + canary + "\r\n\r\n",
		"bad chunk":     "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + canary + "\r\n",
		"not http":      long,
	} {
		t.Run(name, func(t *testing.T) {
			o := newOutside(t)
			seen := o.prober().Probe(t.Context(), Target{URL: "http://" + testHost + ":" + serveRaw(t, nil, say(answer)), Path: "/up"})
			if seen.Reason != fleet.ReasonHTTPNotReady || strings.Contains(seen.Message, "canary") || len(seen.Message) > 256 {
				t.Errorf("%s %q (%d bytes), want HTTPNotReady, at most 256 bytes, without what was sent", seen.Reason, seen.Message, len(seen.Message))
			}
		})
	}
	if got := clip(strings.Repeat("ä", 200)); len(got) > 256 || !strings.HasSuffix(got, "ä…") {
		t.Errorf("clip ends in %q with %d bytes, want whole letters and at most 256", got[len(got)-8:], len(got))
	}
}

func TestR1_aCancelledProbeEndsAtOnce(t *testing.T) {
	o := newOutside(t)
	asked := make(chan struct{}, 1)
	port := serveRaw(t, nil, func(conn net.Conn) {
		_, _ = conn.Read(make([]byte, 4096))
		asked <- struct{}{}
		_, _ = io.Copy(io.Discard, conn)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	seen := o.prober().Probe(ctx, Target{URL: "http://" + testHost + ":" + port, Path: "/up"})
	if seen.Ready || !strings.Contains(seen.Message, "cancelled") || time.Since(seen.Begun) > MaxTimeout-time.Second {
		t.Errorf("%s %q after %s, want cancelled, at once", seen.Reason, seen.Message, time.Since(seen.Begun))
	}
}
