package readiness

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/miekg/dns"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestR1_theSystemsResolverIsUsedWithoutAnother(t *testing.T) {
	prober := NewProber(Config{AllowCIDR: loopback})
	port := serveHTTP(t, listen(t, "127.0.0.1"), nil, ok)
	if seen := prober.Probe(t.Context(), Target{URL: "http://localhost:" + port, Path: "/up"}); !seen.Ready {
		t.Errorf("probe of localhost: %s %s, want ready", seen.Reason, seen.Message)
	}
	// RFC 6761: no resolver knows it, if there is one.
	seen := prober.Probe(t.Context(), Target{URL: "http://kura.invalid", Path: "/up", Timeout: short})
	if seen.Reason != fleet.ReasonNotResolvable || !strings.Contains(seen.Message, "resolve kura.invalid") {
		t.Errorf("probe of kura.invalid: %s %q, want NotResolvable that names the host", seen.Reason, seen.Message)
	}
}

func TestR4_anOwnResolverReadsNoHostsFile(t *testing.T) {
	o := newOutside(t)
	if addrs, err := o.prober().resolve(t.Context(), "localhost"); err == nil {
		t.Errorf("localhost is %v, want only what the DNS server says (it knows kura.test)", addrs)
	}
	if addrs, err := newResolve("192.0.2.1")(t.Context(), "127.0.0.1"); err != nil || len(addrs) != 1 {
		t.Errorf("an address as host: %v %v, want itself, unasked", addrs, err)
	}
}

// TestR4_aForgedAnswerIsIgnored has a server that sends answers to other questions
// and noise before the true answer.
func TestR4_aForgedAnswerIsIgnored(t *testing.T) {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	t.Cleanup(func() { conn.Close(); done.Wait() })
	reply := func(question *dns.Msg, change func(*dns.Msg), addr string) []byte {
		answer := new(dns.Msg).SetReply(question)
		if question.Question[0].Qtype == dns.TypeA {
			answer.Answer = []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: question.Question[0].Name, Rrtype: dns.TypeA, Class: dns.ClassINET}, A: net.ParseIP(addr)}}
		}
		change(answer)
		packed, err := answer.Pack()
		if err != nil {
			t.Error(err)
		}
		return packed
	}
	done.Go(func() {
		for buffer := make([]byte, 1500); ; {
			n, client, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			question := new(dns.Msg)
			if err := question.Unpack(buffer[:n]); err != nil {
				t.Error(err)
				continue
			}
			for _, datagram := range [][]byte{
				[]byte("noise that is longer than a header"),
				reply(question, func(m *dns.Msg) { m.Id++ }, "127.0.0.66"),
				reply(question, func(m *dns.Msg) { m.Question[0].Name = "other.kura.test." }, "127.0.0.66"),
				reply(question, func(m *dns.Msg) { m.Response = false }, "127.0.0.66"),
				reply(question, func(*dns.Msg) {}, "127.0.0.1"),
			} {
				_, _ = conn.WriteTo(datagram, client)
			}
		}
	})
	addrs, err := newResolve(conn.LocalAddr().String())(t.Context(), testHost)
	if err != nil || len(addrs) != 1 || addrs[0] != netip.MustParseAddr("127.0.0.1") {
		t.Errorf("resolve among forged answers: %v %v, want 127.0.0.1 alone", addrs, err)
	}
}

func TestR1_anAddressThatNeverAnswersLeavesTimeForTheNext(t *testing.T) {
	port := serveHTTP(t, listen(t, "127.0.0.1"), nil, ok)
	prober := NewProber(Config{AllowCIDR: loopback})
	silent, good := netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("127.0.0.1")
	check := prober.dialer.ControlContext
	prober.dialer.ControlContext = func(ctx context.Context, network, address string, conn syscall.RawConn) error {
		if strings.HasPrefix(address, silent.String()) {
			<-ctx.Done()
			return ctx.Err()
		}
		return check(ctx, network, address, conn)
	}
	for _, tt := range []struct {
		addrs  []netip.Addr
		reason fleet.Reason
	}{
		{[]netip.Addr{silent, good}, fleet.ReasonReady},
		{[]netip.Addr{silent, silent}, fleet.ReasonTimeout},
	} {
		prober.resolve = func(context.Context, string) ([]netip.Addr, error) { return tt.addrs, nil }
		seen := prober.Probe(t.Context(), Target{URL: "http://" + testHost + ":" + port, Path: "/up", Timeout: short})
		if seen.Reason != tt.reason {
			t.Errorf("addresses %v, the first silent: %s %q, want %s", tt.addrs, seen.Reason, seen.Message, tt.reason)
		}
	}
}

func TestR1_probeCAIsAddedToTheSystems(t *testing.T) {
	o := newOutside(t)
	dir := t.TempDir()
	ca, empty := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "empty.pem")
	for file, content := range map[string][]byte{ca: o.ca.PEM(), empty: []byte("nothing")} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots, err := LoadRoots(ca)
	if err != nil {
		t.Fatal(err)
	}
	port := serveHTTP(t, listen(t, "127.0.0.1"), o.serverTLS(), ok)
	prober := NewProber(Config{Resolver: o.dns.Addr(), AllowCIDR: loopback, RootCAs: roots})
	if seen := prober.Probe(t.Context(), Target{URL: "https://" + testHost + ":" + port, Path: "/up"}); !seen.Ready {
		t.Errorf("with --probe-ca: %s %s, want ready", seen.Reason, seen.Message)
	}
	if roots, err := LoadRoots(); roots != nil || err != nil {
		t.Errorf("LoadRoots of nothing: %v %v, want the system's alone (nil)", roots, err)
	}
	for _, file := range []string{empty, filepath.Join(dir, "missing.pem")} {
		if _, err := LoadRoots(file); err == nil || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "--probe-ca") {
			t.Errorf("LoadRoots(%s): %v, want an error that names the flag and the file", file, err)
		}
	}
}
