package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

func TestAsker_reachesServersByTheFlagsOfKuradsProbes(t *testing.T) {
	ca, err := world.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	issued, err := ca.IssueWildcard(zone)
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.WriteFiles(t.TempDir(), issued)
	if err != nil {
		t.Fatal(err)
	}
	dns, err := world.StartDNS(zone)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = dns.Close() })
	dns.SetWildcard(netip.MustParseAddr("127.0.0.1"))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/up" {
			http.NotFound(w, r)
		}
		_, _ = w.Write([]byte("up\n"))
	}))
	certificate, err := issued.TLS()
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	defer server.Close()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	published := "https://acme." + zone + ":" + at.Port()

	mine := cluster{flags: "--probe-ca=" + files.CA + " --resolver " + dns.Addr()}
	a, err := newAsker(mine.serve())
	if err != nil {
		t.Fatal(err)
	}
	if said, err := a.up(t.Context(), published); err != nil || said != "up" {
		t.Errorf("up: %q, %v", said, err)
	}
	if _, err := a.up(t.Context(), published+"/elsewhere"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("an answer of 404 is: %v", err)
	}
	want := "curl --cacert " + files.CA + " --resolve acme." + zone + ":" + at.Port() + ":127.0.0.1 " + published + "/up"
	if got, err := a.curl(t.Context(), published); err != nil || got != want {
		t.Errorf("curl: %q, %v; want %q", got, err, want)
	}

	stranger, err := newAsker([]string{"--resolver", dns.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stranger.up(t.Context(), published); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an authority that is not named is trusted: %v", err)
	}
}

func TestAsker_refusesAnAuthorityThatItCannotRead(t *testing.T) {
	if _, err := newAsker([]string{"--probe-ca", "/no/such.pem"}); err == nil || !strings.Contains(err.Error(), "/no/such.pem") {
		t.Errorf("got %v", err)
	}
}

func TestContainers_thePortsThatAreChosenAreFree(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if port := l.Addr().(*net.TCPAddr).Port; free(port, port) {
		t.Errorf("port %d is called free, and somebody has it", port)
	}
	chosen, err := freePorts(portsAtOnce)
	if err != nil {
		t.Fatal(err)
	}
	var first, last int
	if _, err := fmt.Sscanf(chosen, "%d-%d", &first, &last); err != nil || last-first != portsAtOnce-1 || first < 20000 {
		t.Errorf("chose %s: %v", chosen, err)
	}
}

func TestCluster_everyRunOnAClusterOfYoursHasAnEnvironmentOfItsOwn(t *testing.T) {
	first, second := cluster{environment: ownName()}, cluster{environment: ownName()}
	if first.environment == second.environment || !strings.HasPrefix(first.environment, "demo-") {
		t.Errorf("environments %q and %q", first.environment, second.environment)
	}
	if !slices.Contains(first.serve(), "--env-suffix=-"+first.environment) {
		t.Errorf("kurad serve %q", first.serve())
	}
}

func TestCluster_aStoryThatBrokeOffTakesAwayItsOwnInstancesOnly(t *testing.T) {
	g := cluster{environment: ownName(), namespace: "kura"}
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodGet {
			asked = append(asked, "list "+r.URL.Query().Get("labelSelector"))
			_, _ = w.Write([]byte(`{"apiVersion":"kura.tuist.dev/v1alpha1","kind":"KuraInstanceList","metadata":{},"items":[
				{"apiVersion":"kura.tuist.dev/v1alpha1","kind":"KuraInstance","metadata":{"name":"one","uid":"u1"}}]}`))
			return
		}
		var options struct{ Preconditions struct{ UID string } }
		if err := json.NewDecoder(r.Body).Decode(&options); err != nil {
			t.Error(err)
		}
		asked = append(asked, r.Method+" "+r.URL.Path+" "+options.Preconditions.UID)
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"Status","metadata":{},"status":"Success"}`))
	}))
	defer server.Close()
	if err := g.connect(&rest.Config{Host: server.URL}); err != nil {
		t.Fatal(err)
	}
	if err := g.close(t.Context(), true); err != nil || len(asked) > 0 {
		t.Errorf("before anything was made: %v, %q", err, asked)
	}
	g.used = true
	if err := g.close(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	want := []string{"list dev.kura/environment=" + g.environment, "DELETE /apis/kura.tuist.dev/v1alpha1/namespaces/kura/kurainstances/one u1"}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Error(diff)
	}
}
