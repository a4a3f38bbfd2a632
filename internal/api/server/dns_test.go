package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// zones are those of a daemon, as they are told to be.
type zones struct {
	mu     sync.Mutex
	audits []fleet.ZoneAudit
	pruned fleet.Pruned
	taken  fleet.Taken
	err    error
	asked  []string
}

func (z *zones) ask(format string, args ...any) func() {
	z.mu.Lock()
	z.asked = append(z.asked, fmt.Sprintf(format, args...))
	return z.mu.Unlock
}

func (z *zones) Audit(context.Context) ([]fleet.ZoneAudit, error) {
	defer z.ask("audit")()
	return z.audits, z.err
}

func (z *zones) Prune(_ context.Context, r fleet.PruneRequest, dry bool) (fleet.Pruned, error) {
	defer z.ask("prune %s %v dry=%v", r.Zone, r.Hosts, dry)()
	return z.pruned, z.err
}

func (z *zones) Take(_ context.Context, r fleet.TakeRequest, dry bool) (fleet.Taken, error) {
	defer z.ask("take %s from %s dry=%v", r.Host, r.From, dry)()
	return z.taken, z.err
}

func newZonesWorld(t *testing.T) (*world, *zones) {
	z := &zones{}
	return newWorld(t, func(c *server.Config) { c.DNS = z }), z
}

func finding(account, host string, kind fleet.FindingKind) fleet.Finding {
	return fleet.Finding{Zone: "kura.test", Host: host, Kind: kind, Account: account, Region: "eu", Why: "so"}
}

func TestD6_theAuditIsSortedAndCountsWhatIsFine(t *testing.T) {
	w, z := newZonesWorld(t)
	at := w.clock.now()
	z.audits = []fleet.ZoneAudit{
		{Zone: "kura.test", Listed: at, Findings: []fleet.Finding{
			finding("umbra", "b.kura.test", fleet.FindingStale), finding("acme", "a.kura.test", fleet.FindingForeign), finding("acme", "a.kura.test", fleet.FindingBalancerShadow), finding("acme", "ok.kura.test", fleet.FindingOurs),
		}},
		{Zone: "a.test", Listed: at, Failure: &fleet.ReadFailure{Reason: fleet.ReasonZoneUnreachable, Message: "no answer\x1b[2J", Since: at}, Findings: []fleet.Finding{{Zone: "a.test", Host: "x.a.test", Kind: fleet.FindingAbsent, Why: "\u202eno"}}},
		{Zone: "new.test"},
	}
	got, err := w.clientWith(w.token("reader", fleet.ScopeRead)).DNSAudit(t.Context(), api.DNSFilter{})
	if err != nil {
		t.Fatal(err)
	}
	want := api.DNSAudit{
		Zones: []fleet.AuditedZone{
			{Zone: "a.test", Listed: &at, Reason: fleet.ReasonZoneUnreachable, Message: "no answer [2J", Since: &at},
			{Zone: "kura.test", Listed: &at},
			{Zone: "new.test", Reason: fleet.ReasonNotObservedYet, Message: "it was not listed yet by the kurad that answers"},
		},
		Counts: map[fleet.FindingKind]int{fleet.FindingOurs: 1, fleet.FindingAbsent: 1, fleet.FindingForeign: 1, fleet.FindingBalancerShadow: 1, fleet.FindingStale: 1},
		Items: []fleet.Finding{
			{Zone: "a.test", Host: "x.a.test", Kind: fleet.FindingAbsent, Why: "no"},
			finding("acme", "a.kura.test", fleet.FindingBalancerShadow), finding("acme", "a.kura.test", fleet.FindingForeign), finding("umbra", "b.kura.test", fleet.FindingStale),
		},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got.Clean() {
		t.Error("it reads as clean")
	}
	fine, err := w.client.DNSAudit(t.Context(), api.DNSFilter{Zone: "kura.test", Kind: fleet.FindingOurs})
	if err != nil || len(fine.Items) != 1 || len(fine.Zones) != 1 || fine.Items[0].Host != "ok.kura.test" || fine.Counts[fleet.FindingStale] != 1 {
		t.Errorf("of one zone and kind: %+v, %v", fine, err)
	}
	_, err = w.client.DNSAudit(t.Context(), api.DNSFilter{Zone: "none.test"})
	wantFault(t, err, fleet.CodeNotFound, "", `"none.test"`, "a.test, kura.test, new.test", "--zone")
	_, err = w.client.DNSAudit(t.Context(), api.DNSFilter{Kind: "odd"})
	wantFault(t, err, fleet.CodeInvalid, "", "kind")
}

func TestToken_limitedToAPrefixSeesItsRowsOfTheAuditOnly(t *testing.T) {
	w, z := newZonesWorld(t)
	z.audits = []fleet.ZoneAudit{{Zone: "kura.test", Listed: w.clock.now(), Findings: []fleet.Finding{
		finding("team-a-1", "a.kura.test", fleet.FindingForeign), finding("umbra", "b.kura.test", fleet.FindingForeign), finding("", "c.kura.test", fleet.FindingUnwanted),
	}}}
	c := w.clientWith(w.limited("ci", fleet.ScopeWrite, "team-a-"))
	got, err := c.DNSAudit(t.Context(), api.DNSFilter{})
	if err != nil || len(got.Items) != 1 || got.Items[0].Account != "team-a-1" || !cmp.Equal(got.Counts, map[fleet.FindingKind]int{fleet.FindingForeign: 1}) {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = c.PruneDNS(t.Context(), fleet.PruneRequest{}, true)
	wantFault(t, err, fleet.CodeForbidden, "", "needs admin")
	_, err = c.TakeHost(t.Context(), fleet.TakeRequest{Host: "a.kura.test", From: "x"}, true)
	wantFault(t, err, fleet.CodeForbidden, "", "needs admin")
	for _, asked := range z.asked {
		if asked != "audit" {
			t.Errorf("the zones were asked to %s", asked)
		}
	}
}

func TestD6_theAuditComesInPagesOfOneAnswer(t *testing.T) {
	w, z := newZonesWorld(t)
	list := func(n int) (all []fleet.Finding) {
		for i := range n {
			all = append(all, finding("acme", fmt.Sprintf("h%05d.kura.test", i), fleet.FindingAbsent))
		}
		return all
	}
	z.audits = []fleet.ZoneAudit{{Zone: "kura.test", Listed: w.clock.now(), Findings: list(2500)}}
	all, err := w.client.DNSAudit(t.Context(), api.DNSFilter{})
	if err != nil || len(all.Items) != 2500 || all.Items[2499].Host != "h02499.kura.test" || len(z.asked) != 3 {
		t.Errorf("%d findings in %d pages, %v", len(all.Items), len(z.asked), err)
	}
	first := w.page("/v1/dns/audit?limit=1")
	if first.status != http.StatusOK || first.Next == "" {
		t.Fatalf("the first page: %+v", first)
	}
	z.mu.Lock()
	z.audits[0].Findings = list(2499)
	z.mu.Unlock()
	if second := w.page("/v1/dns/audit?limit=1&page=" + first.Next); second.Code != api.CodeCursorExpired {
		t.Errorf("the next page of another answer: %+v, want that the list begins again", second)
	}
}

func TestD6_aPruneIsWrittenDownHostByHost(t *testing.T) {
	w, z := newZonesWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	mine, gone, nobody := finding("acme", "a.kura.test", fleet.FindingStale), finding("lost", "b.kura.test", fleet.FindingUnwanted), finding("", "c.kura.test", fleet.FindingBareTXT)
	mine.Contents, nobody.Region = []string{"A 192.0.2.1"}, ""
	z.pruned = fleet.Pruned{Items: []fleet.Finding{nobody, gone, mine}, Kept: []fleet.KeptHost{{Host: "d.kura.test", Why: "it is wanted now"}}}
	written := func() (all []string) {
		for _, e := range w.audit.Entries() {
			if e.Event == audit.EventDNS {
				all = append(all, e.Reason)
			}
		}
		return all
	}
	if _, err := w.client.PruneDNS(t.Context(), fleet.PruneRequest{}, true); err != nil || len(written()) != 0 {
		t.Errorf("a dry run: %v, written %v", err, written())
	}
	hosts := []string{"a.kura.test", "b.kura.test", "c.kura.test", "d.kura.test"}
	got, err := w.client.PruneDNS(t.Context(), fleet.PruneRequest{Zone: "kura.test", Hosts: hosts}, false)
	if err != nil || len(got.Items) != 3 || got.Items[0].Host != "a.kura.test" || len(got.Kept) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if d := cmp.Diff([]string{"deleted host a.kura.test of zone kura.test (A 192.0.2.1): so", "deleted host b.kura.test of zone kura.test (): so", "deleted host c.kura.test of zone kura.test (): so"}, written()); d != "" {
		t.Errorf("the audit log (-want +got):\n%s", d)
	}
	for _, account := range []string{"acme", "lost"} {
		l, err := w.records.Events(t.Context(), key(account, "eu"))
		if err != nil || len(l.Items) != 1 || l.Items[0].Value.Reason != "DNSPruned" || !strings.Contains(l.Items[0].Value.Message, "deleted host ") {
			t.Errorf("events of %s: %+v, %v", account, l.Items, err)
		}
	}
	_, err = w.client.PruneDNS(t.Context(), fleet.PruneRequest{}, false)
	wantFault(t, err, fleet.CodeInvalid, "/hosts", "name the hosts to delete")
	_, err = w.client.PruneDNS(t.Context(), fleet.PruneRequest{Hosts: make([]string, api.MaxPage+1)}, true)
	wantFault(t, err, fleet.CodeInvalid, "/hosts", "1001 hosts")
	// What was deleted before an error is told and written down.
	z.err = &server.Later{Err: fleet.Errorf(fleet.CodeUnavailable, "zone kura.test: RateLimited"), After: 90 * time.Second}
	before := len(written())
	_, err = w.client.PruneDNS(t.Context(), fleet.PruneRequest{Hosts: hosts}, false)
	wantFault(t, err, fleet.CodeUnavailable, "", "3 hosts were deleted before it failed", "RateLimited")
	if fault, ok := errors.AsType[*api.Error](err); !ok || fault.RetryAfter != 90*time.Second || len(written()) != before+3 {
		t.Errorf("%#v, %d lines", err, len(written())-before)
	}
}

func TestD4_aTakeIsCheckedAndWrittenDown(t *testing.T) {
	w, z := newZonesWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	z.taken = fleet.Taken{Zone: "kura.test", Host: "a.kura.test", From: "prod", To: "staging", Account: "acme", Region: "eu", Changed: true}
	if _, err := w.client.TakeHost(t.Context(), fleet.TakeRequest{Host: "a.kura.test", From: "prod"}, true); err != nil {
		t.Fatal(err)
	}
	if l, err := w.records.Events(t.Context(), key("acme", "eu")); err != nil || len(l.Items) != 0 {
		t.Errorf("a dry run has events %+v, %v", l.Items, err)
	}
	got, err := w.client.TakeHost(t.Context(), fleet.TakeRequest{Host: "a.kura.test", From: "prod"}, false)
	if err != nil || !got.Changed {
		t.Fatalf("%+v, %v", got, err)
	}
	if l, err := w.records.Events(t.Context(), key("acme", "eu")); err != nil || len(l.Items) != 1 || l.Items[0].Value.Message != "host a.kura.test was moved from owner prod to owner staging on purpose" {
		t.Errorf("events %+v, %v", l.Items, err)
	}
	_, err = w.client.TakeHost(t.Context(), fleet.TakeRequest{Host: "A b"}, false)
	wantFault(t, err, fleet.CodeInvalid, "/host", "/from")
	z.err = fleet.Errorf(fleet.CodeConflict, "host a.kura.test is owner canary's, not prod's")
	_, err = w.client.TakeHost(t.Context(), fleet.TakeRequest{Host: "a.kura.test", From: "prod"}, false)
	wantFault(t, err, fleet.CodeConflict, "", "owner canary's")
}

func TestD6_aKuradWithoutZonesSaysSo(t *testing.T) {
	w := newWorld(t)
	got, err := w.client.DNSAudit(t.Context(), api.DNSFilter{})
	if err != nil || len(got.Zones) != 0 || len(got.Items) != 0 || !got.Clean() {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = w.client.PruneDNS(t.Context(), fleet.PruneRequest{}, true)
	wantFault(t, err, fleet.CodeConflict, "", "was given no DNS zone", "--zone")
}

func TestG2_aFollowerLeavesZonesToTheLeader(t *testing.T) {
	z, none := &zones{}, &zones{}
	leader := newWorld(t, func(c *server.Config) { c.DNS = z })
	at := &elsewhere{leader.url}
	follower := newWorldOn(t, lent{leader.records.Store()}, func(c *server.Config) { c.Leader, c.DNS = at, none })
	z.audits = []fleet.ZoneAudit{{Zone: "kura.test", Listed: leader.clock.now()}}
	none.audits = []fleet.ZoneAudit{{Zone: "kura.test"}}
	z.taken = fleet.Taken{Host: "a.kura.test", Changed: true}
	got, err := follower.client.DNSAudit(t.Context(), api.DNSFilter{})
	if err != nil || len(got.Zones) != 1 || got.Zones[0].Listed == nil {
		t.Errorf("the audit: %+v, %v", got, err)
	}
	if taken, err := follower.client.TakeHost(t.Context(), fleet.TakeRequest{Host: "a.kura.test", From: "prod"}, false); err != nil || !taken.Changed {
		t.Errorf("a take: %+v, %v", taken, err)
	}
	z.mu.Lock()
	z.err = fleet.Errorf(fleet.CodeConflict, "host a.kura.test is owner canary's")
	z.mu.Unlock()
	_, err = follower.client.TakeHost(t.Context(), fleet.TakeRequest{Host: "a.kura.test", From: "prod"}, false)
	wantFault(t, err, fleet.CodeConflict, "", "owner canary's")
	if len(none.asked) != 0 {
		t.Errorf("the follower did it itself: %v", none.asked)
	}
	at.url = "" // nobody leads
	impatient, err := api.New(api.Config{Endpoint: follower.url, Token: api.NewSecret(follower.admin), Impatient: true})
	if err != nil {
		t.Fatal(err)
	}
	got, err = impatient.DNSAudit(t.Context(), api.DNSFilter{})
	if err != nil || len(got.Zones) != 1 || got.Zones[0].Reason != fleet.ReasonNotObservedYet || got.Clean() {
		t.Errorf("without a leader the audit is %+v, %v; want that it says it knows nothing", got, err)
	}
	p := follower.problem("POST", "/v1/dns/take", `{"host":"a.kura.test","from":"prod"}`, follower.admin)
	if p.Status != http.StatusServiceUnavailable || !strings.Contains(p.Detail, "only the kurad that leads changes DNS zones") {
		t.Errorf("a take without a leader: %+v", p)
	}
	if n := len(none.asked); n != 1 { // the audit
		t.Errorf("the follower was asked %v", none.asked)
	}
}
