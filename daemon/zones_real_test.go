//go:build real

package main

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	miekg "github.com/miekg/dns"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

// zoneServer is the DNS server of the zone kura.test, as whoever publishes records there left it.
type zoneServer struct {
	*world.DNS
	mu      sync.Mutex
	records map[string][]string // by name: records in the form of zone files
}

func serveZone(t *testing.T) *zoneServer {
	t.Helper()
	z := &zoneServer{records: map[string][]string{}}
	var err error
	if z.DNS, err = world.ServeDNS(z.answer, "kura.test"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { z.Close() })
	return z
}

func (z *zoneServer) answer(q miekg.Question, _ netip.Addr) (answer []miekg.RR, exists bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	texts, exists := z.records[strings.TrimSuffix(q.Name, ".")]
	for _, text := range texts {
		if rr, err := miekg.NewRR(q.Name + " 30 IN " + text); err == nil && (rr.Header().Rrtype == q.Qtype || rr.Header().Rrtype == miekg.TypeCNAME) {
			answer = append(answer, rr)
		}
	}
	return answer, exists
}

// owns publishes a host as external-dns of that owner does; "" takes it away.
func (z *zoneServer) owns(host, owner string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	maps.DeleteFunc(z.records, func(name string, _ []string) bool { return strings.HasSuffix(name, host) })
	if owner != "" {
		z.records[host] = []string{"A 127.0.0.1"}
		z.records["a-"+host] = []string{`TXT "heritage=external-dns,external-dns/owner=` + owner + `,external-dns/resource=ingress/kura/acme"`}
	}
}

func checkedBy(owner string) func(*fleet.Region) {
	return func(r *fleet.Region) { r.DNS = fleet.DNS{Mode: fleet.DNSExternalDNS, OwnerID: owner} }
}

func owned(v fleet.ServerView) fleet.Condition { return condition(v, fleet.ConditionDNSOwned) }

func condition(v fleet.ServerView, t fleet.ConditionType) fleet.Condition {
	i := slices.IndexFunc(v.Conditions, func(c fleet.Condition) bool { return c.Type == t })
	if i < 0 {
		return fleet.Condition{}
	}
	return v.Conditions[i]
}

// A name that another environment has is not served under, whatever answers there, until it is
// ours; a zone that says nothing changes nothing; and what is lost later is kept from clients.
func TestD3_aServerIsActiveOnlyAtAHostThatIsOurs(t *testing.T) {
	t.Parallel()
	z := serveZone(t)
	const host = "acme-eu-owned-staging.kura.test"
	z.owns(host, "production")
	k := startKurad(t, "--zone", "kura.test,server="+z.Addr())
	key := fleet.ServerKey{Account: "acme", Region: "eu-owned"}
	k.declare(region(key.Region, checkedBy("staging")), key.Account)
	k.put(key, "v1")
	fresh := func() fleet.ServerView {
		v, err := k.client.GetServer(t.Context(), key, api.GetOptions{ObserveNow: true})
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	v := k.until(key, "names who has its host", func(v fleet.ServerView) bool {
		return owned(v).Status == fleet.False && owned(v).Reason == fleet.ReasonForeignOwner && condition(v, fleet.ConditionEndpointReady).Status == fleet.True
	})
	if v.Status == fleet.StatusActive || v.PublishedURL != "" || !strings.Contains(owned(v).Message, "production") || !strings.Contains(owned(v).Message, host) {
		t.Errorf("at a foreign host it is %s", brief(v))
	}
	z.SetFault(world.DNSFault{Drop: true})
	k.ticks(key, 3)
	if v := fresh(); v.Status == fleet.StatusActive || owned(v).Reason != fleet.ReasonForeignOwner {
		t.Errorf("at a foreign host whose zone is silent it is %s", brief(v))
	}
	z.SetFault(world.DNSFault{})

	z.owns(host, "staging")
	v = k.converged(key, "v1")
	if owned(v).Status != fleet.True || v.PublishedURL == "" {
		t.Errorf("at our host it is %s", brief(v))
	}
	endpoints := func() int {
		list, err := k.client.Resolve(t.Context(), key.Account)
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := endpoints(); n != 1 {
		t.Errorf("clients get %d endpoints, want one", n)
	}
	z.SetFault(world.DNSFault{ServFail: true})
	if v := fresh(); owned(v).Status != fleet.Unknown || v.Status != fleet.StatusActive || endpoints() != 1 {
		t.Errorf("with a zone that fails it is %s", brief(v))
	}
	z.SetFault(world.DNSFault{})

	z.owns(host, "production")
	if v := fresh(); v.Status != fleet.StatusActive || owned(v).Reason != fleet.ReasonForeignOwner || endpoints() != 0 {
		t.Errorf("taken by another, clients get %d endpoints, and it is %s", endpoints(), brief(v))
	}
	fresh()
	_, messages := k.events(key)
	if n := strings.Count(messages, "EndpointWithheld"); n != 1 {
		t.Errorf("%d events say that clients are led there no more, want one:\n%s", n, messages)
	}
	z.owns(host, "staging")
	if v := fresh(); owned(v).Status != fleet.True || endpoints() != 1 {
		t.Errorf("ours again, clients get %d endpoints, and it is %s", endpoints(), brief(v))
	}
	if restarted := len(k.deployments(key)); restarted != 1 {
		t.Errorf("%d deployments, want the one: the instance had nothing to do with it", restarted)
	}
}
