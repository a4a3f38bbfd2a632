package world

import (
	"bufio"
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"go.uber.org/goleak"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestCA_issuesWhatItsPoolTrusts(t *testing.T) {
	ca, err := NewCA()
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := ca.IssueWildcard("kura.test")
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.WriteFiles(filepath.Join(t.TempDir(), "tls"), certificate)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(files.Cert)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(text)
	leaf, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for host, good := range map[string]bool{"acme-eu.kura.test": true, "kura.test": true, "grpc.acme-eu.kura.test": false, "kura.example": false} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: ca.Pool(), DNSName: host}); (err == nil) != good {
			t.Errorf("L14: the wildcard for %s: %v, want valid %t", host, err, good)
		}
	}
	for _, path := range []string{files.CA, files.Cert, files.Key} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v %v, want a file that containers can read (0644)", path, info.Mode(), err)
		}
	}
	if _, err := ca.Issue(); err == nil {
		t.Error("a certificate for no host was issued")
	}
}

// query asks the server over network, once.
func query(d *DNS, network, name string, kind uint16) (*dns.Msg, error) {
	client := &dns.Client{Net: network, Timeout: 200 * time.Millisecond}
	answer, _, err := client.Exchange(new(dns.Msg).SetQuestion(dns.Fqdn(name), kind), d.Addr())
	return answer, err
}

func TestDNS_answersItsRecordsAndMisbehavesOnCommand(t *testing.T) {
	d, err := StartDNS("kura.test")
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	v4, other, v6 := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2"), netip.MustParseAddr("::1")
	many := make([]netip.Addr, 60)
	for i := range many {
		many[i] = netip.AddrFrom4([4]byte{127, 0, 1, byte(i)})
	}
	expect := func(what, network, name string, kind uint16, rcode, records int) {
		t.Helper()
		answer, err := query(d, network, name, kind)
		if err != nil || answer.Rcode != rcode || len(answer.Answer) != records {
			t.Errorf("%s: %s by %s: %v %v, want %s with %d records", what, name, network, answer, err, dns.RcodeToString[rcode], records)
		}
	}
	expect("nothing set", "udp", "a.kura.test", dns.TypeA, dns.RcodeNameError, 0)
	d.SetWildcard(v4)
	expect("wildcard", "udp", "A.Kura.test", dns.TypeA, dns.RcodeSuccess, 1)
	expect("wildcard", "tcp", "b.kura.test", dns.TypeA, dns.RcodeSuccess, 1)
	expect("wildcard, other type", "udp", "a.kura.test", dns.TypeAAAA, dns.RcodeSuccess, 0)
	d.Set("a.kura.test", v4, other, v6)
	expect("exact", "udp", "a.kura.test", dns.TypeA, dns.RcodeSuccess, 2)
	expect("exact", "udp", "a.kura.test", dns.TypeAAAA, dns.RcodeSuccess, 1)
	d.Set("a.kura.test")
	expect("no address", "udp", "a.kura.test", dns.TypeA, dns.RcodeSuccess, 0)
	d.Remove("a.kura.test")
	expect("removed", "udp", "a.kura.test", dns.TypeA, dns.RcodeSuccess, 1)
	expect("another zone", "udp", "a.example.test", dns.TypeA, dns.RcodeRefused, 0)
	expect("the zone itself", "udp", "kura.test", dns.TypeA, dns.RcodeSuccess, 0)
	d.Set("many.kura.test", many...)
	expect("too many for a datagram", "tcp", "many.kura.test", dns.TypeA, dns.RcodeSuccess, len(many))
	if answer, err := query(d, "udp", "many.kura.test", dns.TypeA); err != nil || !answer.Truncated {
		t.Errorf("60 records by udp: %v, want truncated", err)
	}

	d.SetFault(DNSFault{ServFail: true})
	expect("servfail", "udp", "a.kura.test", dns.TypeA, dns.RcodeServerFailure, 0)
	for what, fault := range map[string]DNSFault{"drop": {Drop: true}, "delay": {Delay: time.Hour}} {
		d.SetFault(fault)
		if answer, err := query(d, "udp", "a.kura.test", dns.TypeA); err == nil {
			t.Errorf("%s: %v, want no answer", what, answer)
		}
	}
	d.SetFault(DNSFault{})
	expect("healed", "udp", "a.kura.test", dns.TypeA, dns.RcodeSuccess, 1)
	if d.Queries() < 10 {
		t.Errorf("%d questions counted", d.Queries())
	}
	if err := errors.Join(d.Close(), d.Close()); err != nil {
		t.Errorf("Close twice: %v", err)
	}
}

// echo serves lines back until the test ends.
func echo(t *testing.T, network, address string) string {
	t.Helper()
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	done.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			done.Go(func() { defer conn.Close(); _, _ = io.Copy(conn, conn) })
		}
	})
	t.Cleanup(func() { listener.Close(); done.Wait() })
	return listener.Addr().String()
}

func TestProxy_breaksConnectionsOnCommand(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			dir := t.TempDir()
			target, listen := "127.0.0.1:0", ""
			if network == "unix" {
				target, listen = filepath.Join(dir, "target.sock"), filepath.Join(dir, "proxy", "proxy.sock")
			}
			p, err := StartProxy(network, listen, echo(t, network, target))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			set := func(mode ProxyMode, delay time.Duration) {
				t.Helper()
				if err := p.Set(mode, delay); err != nil {
					t.Fatal(err)
				}
			}
			// talk sends a line and returns what comes back within a while.
			talk := func(conn net.Conn) (string, error) {
				_ = conn.SetDeadline(time.Now().Add(300 * time.Millisecond))
				if _, err := io.WriteString(conn, "hello\n"); err != nil {
					return "", err
				}
				return bufio.NewReader(conn).ReadString('\n')
			}
			dial := func() net.Conn {
				t.Helper()
				conn, err := net.Dial(network, p.Addr())
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { conn.Close() })
				return conn
			}
			open := dial()
			if line, err := talk(open); line != "hello\n" {
				t.Fatalf("pass: %q %v, want the echo", line, err)
			}
			set(ProxyPass, 50*time.Millisecond)
			begun := time.Now()
			if line, err := talk(open); line != "hello\n" || time.Since(begun) < 100*time.Millisecond {
				t.Errorf("delay: %q %v after %s, want the echo after 100 ms, there and back", line, err, time.Since(begun))
			}
			set(ProxyHalfOpen, 0)
			if line, err := talk(open); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("half-open: %q %v, want no answer and no end", line, err)
			}
			set(ProxyDrop, 0)
			if line, err := talk(open); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("drop: %q %v, want the open connection cut", line, err)
			}
			// A reset may come before the dialler has heard that it is connected.
			if conn, err := net.Dial(network, p.Addr()); err == nil {
				if line, err := talk(conn); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
					t.Errorf("drop: %q %v, want a new connection cut", line, err)
				}
				conn.Close()
			}
			set(ProxyRefuse, 0)
			if conn, err := net.Dial(network, p.Addr()); err == nil {
				conn.Close()
				t.Error("refuse: connected, want nobody there")
			}
			set(ProxyPass, 0)
			if line, err := talk(dial()); line != "hello\n" {
				t.Errorf("healed, at the same address: %q %v, want the echo", line, err)
			}
		})
	}
}

func TestFaults_sameSeedSameFaults(t *testing.T) {
	run := func(seed uint64) (story []string) {
		f := NewFaults(seed, Rates{Fail: 0.2, Ambiguous: 0.2, Stale: 0.3})
		value := 0
		for range 200 {
			before := value
			_, err := Change(t.Context(), f, func() (int, error) { value++; return value, nil })
			switch {
			case err == nil && value != before+1:
				t.Fatal("a change was acknowledged that did not happen")
			case err != nil && !errors.Is(err, ErrInjected):
				t.Fatal(err)
			case err != nil && value == before:
				story = append(story, "fail")
			case err != nil:
				story = append(story, "ambiguous")
			default:
				story = append(story, "ok")
			}
			if seen, err := Read(t.Context(), f, "value", func() (int, error) { return value, nil }); err == nil && seen != value {
				story = append(story, "stale")
			}
		}
		if counts := f.Counts(); counts["fail"] == 0 || counts["ambiguous"] == 0 || counts["stale"] == 0 {
			t.Errorf("seed %d: some fault never happened: %v", seed, counts)
		}
		f.SetRates(Rates{})
		for range 50 {
			if seen, err := Read(t.Context(), f, "value", func() (int, error) { return value, nil }); err != nil || seen != value {
				t.Errorf("healed: %d %v, want %d", seen, err, value)
			}
		}
		return story
	}
	if diff := cmp.Diff(run(7), run(7)); diff != "" {
		t.Errorf("two runs of one seed differ:\n%s", diff)
	}
	if cmp.Equal(run(7), run(8)) {
		t.Error("two seeds have the same faults")
	}
}

// fakeRuntime counts what reached it.
type fakeRuntime struct{ executed int }

func (r *fakeRuntime) List(context.Context, ...string) ([]fleet.Container, error) { return nil, nil }
func (r *fakeRuntime) Execute(context.Context, fleet.ServerKey, string, fleet.Task, *fleet.ServiceDocument) fleet.Outcome {
	r.executed++
	return fleet.Outcome{Class: fleet.ClassOK, Answered: true}
}

func TestFaultyRuntime_losesAnswersBeforeAndAfterTheEffect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			rates    Rates
			timeout  time.Duration
			executed int
			answered bool
		}{
			{Rates{}, time.Second, 1, true},
			{Rates{Fail: 1}, time.Second, 0, false},
			{Rates{Ambiguous: 1}, time.Second, 1, false},
			{Rates{Slow: 1, Delay: time.Minute}, time.Hour, 1, true},
			{Rates{Slow: 1, Delay: time.Minute}, time.Second, 0, false},
		} {
			inner := &fakeRuntime{}
			r := FaultyRuntime{inner, NewFaults(1, tt.rates)}
			ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
			outcome := r.Execute(ctx, fleet.ServerKey{}, "", fleet.Task{}, nil)
			cancel()
			if inner.executed != tt.executed || outcome.Answered != tt.answered || (outcome.Class == fleet.ClassOK) != tt.answered {
				t.Errorf("with %+v: executed %d times, answered %t (%s), want %d and %t", tt.rates, inner.executed, outcome.Answered, outcome.Class, tt.executed, tt.answered)
			}
			if _, err := r.List(t.Context()); (err != nil) != (tt.rates.Fail > 0) {
				t.Errorf("with %+v: List: %v", tt.rates, err)
			}
		}
	})
}
