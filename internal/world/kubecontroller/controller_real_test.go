//go:build real

package kubecontroller_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubecontroller"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// stand is a controller on an API server of its own.
type stand struct {
	t   *testing.T
	c   *kubecontroller.Controller
	ca  *world.CA
	dns *world.DNS
	api dynamic.ResourceInterface
}

func startStand(t *testing.T, config kubecontroller.Config) *stand {
	t.Helper()
	server := kubernetes.Start(t, kubernetes.Options{})
	s := &stand{t: t}
	var err error
	if s.ca, err = world.NewCA(); err != nil {
		t.Fatal(err)
	}
	if s.dns, err = world.StartDNS("kura.test"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.dns.Close() })
	config.REST, config.CA, config.DNS = server.REST(kubernetes.Controller), s.ca, s.dns
	if s.c, err = kubecontroller.Start(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.c.Close(); err != nil {
			t.Error(err)
		}
	})
	client, err := server.Dynamic(kubernetes.Other)
	if err != nil {
		t.Fatal(err)
	}
	s.api = client.Resource(kubernetes.Instances).Namespace(kubernetes.Namespace)
	return s
}

func (s *stand) apply(name string, spec map[string]any) {
	s.t.Helper()
	if err := s.applied(name, spec); err != nil {
		s.t.Fatal(err)
	}
}

func (s *stand) applied(name string, spec map[string]any) error {
	all := map[string]any{"accountHandle": "acme", "tenantID": "acme", "region": "eu", "image": "cache:v1"}
	maps.Copy(all, spec)
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": fleet.KubeGroup + "/" + fleet.KubeVersion, "kind": fleet.KubeKind, "metadata": map[string]any{"name": name}, "spec": all,
	}}
	_, err := s.api.Apply(s.t.Context(), name, o, metav1.ApplyOptions{FieldManager: "test", Force: true})
	return err
}

// status is what the instance's status says, without its times and urls.
func (s *stand) status(name string) map[string]any {
	s.t.Helper()
	o, err := s.api.Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	for _, field := range []string{"lastReconciledAt", "publicURL", "message"} {
		delete(status, field)
	}
	return status
}

// until waits for a real server until what it says is as wanted.
func until[T any](t *testing.T, what string, want T, say func() T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		diff := cmp.Diff(want, say())
		if diff == "" {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%s (-want +got):\n%s", what, diff)
		}
	}
}

// up is what /up answers for a host: its version, or the code, or what is wrong with TLS.
func (s *stand) up(host string) string {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: s.ca.Pool(), MinVersion: tls.VersionTLS12},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, s.c.Address())
		},
	}}
	answer, err := client.Get("https://" + host + "/up")
	if err != nil {
		if strings.Contains(err.Error(), "certificate") {
			return "certificate"
		}
		return err.Error()
	}
	defer answer.Body.Close()
	var body struct{ Version string }
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		return err.Error()
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Sprint(answer.StatusCode)
	}
	return body.Version
}

func (s *stand) resolves(host string) bool {
	answer, err := dns.Exchange(new(dns.Msg).SetQuestion(host+".", dns.TypeA), s.dns.Addr())
	return err == nil && len(answer.Answer) == 1
}

func runs(phase, image string, ready int64) map[string]any {
	status := map[string]any{"phase": phase, "readyReplicas": ready}
	if image != "" {
		status["observedImage"] = image
	}
	return status
}

func TestController_latchesTheImageAndRoutesEveryHost(t *testing.T) {
	s := startStand(t, kubecontroller.Config{})
	const name, host, next = "kura-acme-eu", "acme.kura.test", "umbra.kura.test"
	says := func() map[string]any { return s.status(name) }
	up := func(host string) func() string { return func() string { return s.up(host) } }
	stuck := func() { s.c.Set(kubernetes.Namespace, name, kubecontroller.Behaviour{Stuck: true}) }

	stuck()
	s.apply(name, map[string]any{"publicHost": host})
	until(t, "a first roll-out", runs("Pending", "", 0), says)
	until(t, "no pod is ready", "503", up(host))
	s.c.Heal()
	until(t, "the first roll-out is complete", runs("Ready", "cache:v1", 1), says)
	until(t, "it serves", "v1", up(host))

	stuck()
	s.apply(name, map[string]any{"publicHost": host, "image": "cache:v2"})
	until(t, "the latch holds", runs("Pending", "cache:v1", 1), says)
	until(t, "the old pods serve", "v1", up(host))
	s.c.Heal()
	until(t, "the latch moves", runs("Ready", "cache:v2", 1), says)
	until(t, "the new pods serve", "v2", up(host))

	stuck() // hosts roll nothing out
	moved := map[string]any{"publicHost": next, "image": "cache:v2", "clientHostAliases": []any{host}}
	s.apply(name, moved)
	until(t, "the new host", "v2", up(next))
	until(t, "the alias", "v2", up(host))
	if !s.resolves(next) || !s.resolves(host) {
		t.Errorf("%s resolves: %t, %s: %t", next, s.resolves(next), host, s.resolves(host))
	}
	if diff := cmp.Diff(runs("Ready", "cache:v2", 1), says()); diff != "" {
		t.Errorf("after hosts changed (-want +got):\n%s", diff)
	}
	delete(moved, "clientHostAliases")
	s.apply(name, moved)
	until(t, "no alias any more", "certificate", up(host))
	if s.resolves(host) {
		t.Errorf("%s still resolves", host)
	}
	moved["extraEnv"] = []any{map[string]any{"name": "A", "value": "1"}}
	s.apply(name, moved)
	until(t, "variables are rolled out", runs("Pending", "cache:v2", 1), says)

	if err := s.api.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "nothing serves a deleted one", "certificate", up(next))
	s.c.Heal()
	s.apply(name, moved)
	until(t, "one made again", runs("Ready", "cache:v2", 1), says)
}

func TestController_misbehavesAsTold(t *testing.T) {
	s := startStand(t, kubecontroller.Config{Resync: 50 * time.Millisecond})
	const name, host = "kura-acme-eu", "acme.kura.test"
	s.apply(name, map[string]any{"publicHost": host, "replicas": int64(3)})
	until(t, "it serves", "v1", func() string { return s.up(host) })
	for what, c := range map[string]struct {
		b      kubecontroller.Behaviour
		status map[string]any
		up     string
	}{
		"Ready while nothing answers": {kubecontroller.Behaviour{Down: true}, runs("Ready", "cache:v1", 3), "503"},
		"the wrong image":             {kubecontroller.Behaviour{Image: "cache:v9"}, runs("Ready", "cache:v9", 3), "v1"},
		"no certificate":              {kubecontroller.Behaviour{SelfSigned: true}, runs("Ready", "cache:v1", 3), "certificate"},
		"no route":                    {kubecontroller.Behaviour{Unrouted: true}, runs("Ready", "cache:v1", 3), "404"},
	} {
		s.c.Set("", "", c.b)
		until(t, what, c.up, func() string { return s.up(host) })
		until(t, what, c.status, func() map[string]any { return s.status(name) })
	}
	s.c.Set("", "", kubecontroller.Behaviour{Unpublished: true})
	until(t, "a host that is not published", false, func() bool { return s.resolves(host) })
	s.c.Heal()
	until(t, "a published host", true, func() bool { return s.resolves(host) })

	// A status that says nothing new is written all the same.
	before, err := s.api.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	until(t, "another version", true, func() bool {
		o, err := s.api.Get(t.Context(), name, metav1.GetOptions{})
		return err == nil && o.GetResourceVersion() != before.GetResourceVersion()
	})
}

func TestController_rollsAThousandInstancesOut(t *testing.T) {
	s := startStand(t, kubecontroller.Config{})
	const many = 1000
	var applying errgroup.Group
	applying.SetLimit(8)
	for i := range many {
		applying.Go(func() error {
			return s.applied(fmt.Sprintf("kura-%d", i), map[string]any{"publicHost": fmt.Sprintf("a%d.kura.test", i)})
		})
	}
	if err := applying.Wait(); err != nil {
		t.Fatal(err)
	}
	until(t, "all are ready", many, func() int {
		list, err := s.api.List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ready := 0
		for _, o := range list.Items {
			if phase, _, _ := unstructured.NestedString(o.Object, "status", "phase"); phase == "Ready" {
				ready++
			}
		}
		return ready
	})
}
