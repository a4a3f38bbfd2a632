package readiness

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestR4_addressPolicy(t *testing.T) {
	const public = ""
	for addr, kind := range map[string]string{
		"93.184.216.34": public, "8.8.8.8": public, "2606:4700::1111": public, "172.15.255.255": public, "172.32.0.1": public,
		"100.63.255.255": public, "100.128.0.0": public, "169.253.1.1": public, "::ffff:8.8.8.8": public, "64:ff9b::8.8.8.8": public, "2002:808:808::1": public,

		"127.0.0.1": "loopback", "127.255.255.254": "loopback", "::1": "loopback", "::ffff:127.0.0.1": "loopback",
		"0.0.0.0": "unspecified", "0.1.2.3": "unspecified", "::": "unspecified",
		"10.0.0.1": "private", "172.16.0.1": "private", "172.31.255.255": "private", "192.168.1.1": "private", "::ffff:192.168.1.1": "private",
		"fc00::1": "private", "fdff:ffff::1": "private",
		"169.254.1.1": "link-local", "fe80::1": "link-local", "fe80::1%eth0": "link-local", "::ffff:169.254.1.1": "link-local",
		"224.0.0.1": "multicast", "239.1.2.3": "multicast", "ff02::1": "multicast",
		"100.64.0.1": "carrier-grade NAT", "100.127.255.255": "carrier-grade NAT",
		"169.254.169.254": "cloud metadata", "::ffff:169.254.169.254": "cloud metadata", "fd00:ec2::254": "cloud metadata", "fd20:ce::254": "cloud metadata",
		"100.100.100.200": "cloud metadata", "168.63.129.16": "cloud metadata", "192.0.0.192": "reserved",
		"255.255.255.255": "reserved", "240.0.0.1": "reserved", "198.18.0.1": "benchmark",
		"64:ff9b::127.0.0.1": "loopback", "64:ff9b::10.0.0.1": "private", "64:ff9b::a9fe:a9fe": "cloud metadata", "64:ff9b::100.64.0.1": "carrier-grade NAT",
		"64:ff9b:1::8.8.8.8": "local-use NAT64", "::127.0.0.1": "loopback", "::10.0.0.1": "private",
		"2002:7f00:1::1": "loopback", "2002:a00:1::1": "private", "2001:0:a00:1::1": "Teredo", "fec0::1": "site-local", "100::1": "discard",
	} {
		err := NewPolicy(nil).Check(netip.MustParseAddr(addr))
		denied, _ := errors.AsType[*DeniedError](err)
		switch {
		case kind == public && err != nil:
			t.Errorf("%s: %v, want allowed", addr, err)
		case kind != public && (denied == nil || denied.Kind != kind):
			t.Errorf("%s: %v, want denied as %s", addr, err, kind)
		}
	}
	if err := NewPolicy(nil).Check(netip.Addr{}); err == nil {
		t.Error("no address at all is allowed, want denied")
	}
}

func TestR4_listedAddressesAreAllowed(t *testing.T) {
	for _, tt := range []struct {
		allow   string
		addr    string
		allowed bool
	}{
		{"127.0.0.1", "127.0.0.1", true},
		{"127.0.0.1", "127.0.0.2", false},
		{"127.0.0.1", "::ffff:127.0.0.1", true},
		{"::ffff:10.0.0.0/104", "10.9.9.9", true},
		{"10.0.0.0/8", "10.255.0.1", true},
		{"10.0.0.0/8", "11.0.0.1", true}, // public
		{"10.0.0.0/8", "64:ff9b::10.0.0.1", true},
		{"64:ff9b::/96", "64:ff9b::10.0.0.1", true},
		{"10.0.0.0/8", "192.168.0.1", false},
		{"fd00::/8", "fd12::1", true},
		{"fd00::/8", "fc12::1", false},
		{"fe80::/10", "fe80::1%eth0", true},
		{"0.0.0.0/0", "::1", false},
	} {
		allow, err := ParseAllow([]string{tt.allow})
		if err != nil {
			t.Fatal(err)
		}
		if err := NewPolicy(allow).Check(netip.MustParseAddr(tt.addr)); (err == nil) != tt.allowed {
			t.Errorf("with --probe-allow-cidr %s, %s: %v; want allowed %t", tt.allow, tt.addr, err, tt.allowed)
		}
	}
}

func TestR4_parseAllowNamesWhatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"10.0.0.1/8": "did you mean 10.0.0.0/8?", "home": `"home" is neither`, "fe80::1%eth0": "is neither", "10.0.0.0/33": "is neither", "": "is neither",
	} {
		if _, err := ParseAllow([]string{text}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseAllow(%q): %v, want an error with %q", text, err, want)
		}
	}
	got, err := ParseAllow([]string{"127.0.0.1", "::1", "10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, prefix := range got {
		texts = append(texts, prefix.String())
	}
	if diff := cmp.Diff([]string{"127.0.0.1/32", "::1/128", "10.0.0.0/8"}, texts); diff != "" {
		t.Errorf("ParseAllow (-want +got):\n%s", diff)
	}
}

// counted is a server that notes every connection.
func counted(t *testing.T, listener net.Listener) (port string, connections *atomic.Int32) {
	t.Helper()
	connections = new(atomic.Int32)
	return serveHTTP(t, &countingListener{listener, connections}, nil, ok), connections
}

type countingListener struct {
	net.Listener
	count *atomic.Int32
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.count.Add(1)
	}
	return conn, err
}

func TestR4_rebindingNeverReachesAForbiddenAddress(t *testing.T) {
	port, allowedHits := counted(t, listen(t, "127.0.0.1"))
	inside, err := net.Listen("tcp", "127.0.0.2:"+port)
	if err != nil {
		t.Fatal(err)
	}
	_, forbiddenHits := counted(t, inside)

	prober := NewProber(Config{AllowCIDR: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	good, bad := netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("127.0.0.2")
	mapped := netip.MustParseAddr("::ffff:127.0.0.2")
	questions := 0
	for _, tt := range []struct {
		name  string
		addrs []netip.Addr
		ready bool
	}{
		{"allowed", []netip.Addr{good}, true},
		{"now it is another", []netip.Addr{bad}, false},
		{"mapped", []netip.Addr{mapped}, false},
		{"both, forbidden first", []netip.Addr{bad, mapped, good}, true},
		{"both, allowed first", []netip.Addr{good, bad}, true},
	} {
		questions = 0
		prober.resolve = func(context.Context, string) ([]netip.Addr, error) {
			if questions++; questions > 1 { // a second resolution would be the rebinding
				return []netip.Addr{bad}, nil
			}
			return tt.addrs, nil
		}
		seen := prober.Probe(t.Context(), Target{URL: "http://rebind.kura.test:" + port, Path: "/up"})
		if seen.Ready != tt.ready || questions != 1 {
			t.Errorf("%s: %s %s after %d resolutions, want ready %t after one", tt.name, seen.Reason, seen.Message, questions, tt.ready)
		}
		if !tt.ready && (seen.Reason != fleet.ReasonConnectFailed || !strings.Contains(seen.Message, "--probe-allow-cidr 127.0.0.2/32")) {
			t.Errorf("%s: %s %q, want ConnectFailed that names the flag and the address", tt.name, seen.Reason, seen.Message)
		}
	}
	if allowedHits.Load() != 3 || forbiddenHits.Load() != 0 {
		t.Errorf("%d connections to the allowed address and %d to the forbidden one, want 3 and none", allowedHits.Load(), forbiddenHits.Load())
	}
}

func TestR4_redirectsNeverReachAForbiddenAddress(t *testing.T) {
	insidePort, forbiddenHits := counted(t, listen(t, "127.0.0.2"))
	port := serveHTTP(t, listen(t, "127.0.0.1"), nil, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://127.0.0.2:"+insidePort+"/latest/meta-data", http.StatusFound)
	})
	prober := NewProber(Config{AllowCIDR: loopback})
	seen := prober.Probe(t.Context(), Target{URL: "http://127.0.0.1:" + port, Path: "/up"})
	if seen.Reason != fleet.ReasonHTTPNotReady || forbiddenHits.Load() != 0 {
		t.Errorf("%s %q and %d connections to where it led, want HTTPNotReady and none", seen.Reason, seen.Message, forbiddenHits.Load())
	}
}

func TestR4_theEnvironmentsProxyIsNotUsed(t *testing.T) {
	proxyPort, proxyHits := counted(t, listen(t, "127.0.0.1"))
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:"+proxyPort)
	t.Setenv("ALL_PROXY", "http://127.0.0.1:"+proxyPort)
	port, hits := counted(t, listen(t, "127.0.0.1"))
	seen := NewProber(Config{AllowCIDR: loopback}).Probe(t.Context(), Target{URL: "http://127.0.0.1:" + port, Path: "/up"})
	if !seen.Ready || hits.Load() != 1 || proxyHits.Load() != 0 {
		t.Errorf("%s %q with %d connections and %d to the proxy, want ready by one of its own", seen.Reason, seen.Message, hits.Load(), proxyHits.Load())
	}
}
