package dns

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var acmeEU = fleet.ServerKey{Account: "acme", Region: "eu"}

// made is the ownership record of a host that kurad made for a server of that environment.
func made(owner, environment string) string {
	return TXT{Owner: owner, Resource: fleet.ResourceOf(environment, acmeEU)}.String()
}

// wants are the hosts of acme/eu, each without the zone's name, by the owner id us.
func wants(hosts ...string) (list []Wanted) {
	for _, h := range hosts {
		list = append(list, Wanted{Host: h + "." + domain, Kind: HostPublic, Server: acmeEU, Owner: "us"})
	}
	return list
}

func auditOf(t testing.TB, l Listing, wanted []Wanted) []Finding {
	t.Helper()
	e := staging(t)
	z := Zone{Domain: domain, Token: "file"}
	return Audit(AuditInput{Environment: e, Wanted: wanted, Owners: []string{"us"}, Zones: []ZoneRead{{Zone: z, Index: NewIndex(l, z, e)}}})[0].Findings
}

// lines is what an audit says, a line each: the kind, the host without the zone's name, whose it
// is, the environment, the server, and whether it may be pruned.
func lines(findings []Finding) (out []string) {
	for _, f := range findings {
		server := f.Account
		if f.Region != "" {
			server = f.Server().String()
		}
		line := fmt.Sprintf("%s %s of %s", f.Kind, strings.TrimSuffix(f.Host, "."+domain), strings.Join(f.Owners, "+"))
		if f.Environment != "" {
			line += " in " + f.Environment
		}
		if server != "" {
			line += " for " + server
		}
		if f.Prunable {
			line += " PRUNE"
		}
		out = append(out, line)
	}
	return out
}

func TestD6_whatAnAuditFinds(t *testing.T) {
	const h = "acme-eu-staging"
	for _, c := range []struct {
		name   string
		zone   []string
		wanted []Wanted
		want   []string
		why    string // of one of them
	}{
		{"wanted and ours", []string{"A " + h + " 192.0.2.1", "TXT a-" + h + " " + owned("us")}, wants(h), []string{"wanted-ours acme-eu-staging of us for acme/eu"}, "is ours"},
		{"wanted, and another environment's", []string{"A " + h + " 192.0.2.1", "TXT a-" + h + " " + made("prod", "production")}, wants(h),
			[]string{"wanted-foreign acme-eu-staging of prod in production for acme/eu"}, `belongs to "prod" of environment "production"`},
		{"wanted, and shadowed with another's suffix", []string{"A x-canary 192.0.2.1", "TXT a-x-canary " + owned("other")}, wants("x-canary"),
			[]string{"wanted-foreign x-canary of other in canary for acme/eu"}, `"other" of environment "canary"`},
		{"wanted and absent", nil, wants(h), []string{"wanted-absent acme-eu-staging of  for acme/eu"}, "has no record"},
		{"wanted, and its TXT alone is there", []string{"TXT a-" + h + " " + owned("us")}, wants(h), []string{"txt-without-record acme-eu-staging of us for acme/eu"}, "leads nowhere"},
		{"wanted and encrypted", []string{"A " + h + " 192.0.2.1", "TXT a-" + h + " " + sealedTXT}, wants(h), []string{"wanted-unreadable acme-eu-staging of  for acme/eu"}, "encrypted"},
		{"wanted, and nobody claims it", []string{"A " + h + " 192.0.2.1"}, wants(h), []string{"wanted-foreign acme-eu-staging of  for acme/eu"}, "no ownership record claims"},
		{"issue 6617", []string{"A " + h + " 192.0.2.1", "TXT cname-" + h + " " + owned("prod")}, wants(h),
			[]string{"record-without-txt-beside-foreign acme-eu-staging of prod for acme/eu", "txt-without-record acme-eu-staging of prod for acme/eu"}, "no ownership record tells"},
		{"issue 5457", []string{"A " + h + " 192.0.2.1", "TXT a-" + h + " " + owned("prod"), "TXT a-" + h + " " + owned("us")}, wants(h),
			[]string{"two-owners acme-eu-staging of prod+us for acme/eu"}, "can change from read to read"},
		{"dns.mode is none", []string{"A " + h + " 192.0.2.1", "TXT a-" + h + " " + owned("us")}, []Wanted{{Host: h + "." + domain, Server: acmeEU}}, nil, ""},
		{"ours, and nobody wants it", []string{"A x-staging 192.0.2.1", "TXT a-x-staging " + made("us", "staging")}, nil, []string{"unwanted x-staging of us for acme/eu PRUNE"}, "no server wants it"},
		{"ours and stale", []string{"A x 192.0.2.1", "TXT a-x " + owned("us")}, nil, []string{"unwanted-stale x of us PRUNE"}, `without the suffix "-staging"`},
		{"a TXT of ours that nobody wants", []string{"TXT a-x-staging " + owned("us")}, nil, []string{"txt-without-record x-staging of us PRUNE"}, "without a record"},
		{"a TXT of another", []string{"TXT a-x " + owned("prod")}, nil, []string{"txt-without-record x of prod"}, `TXT a-x.kura.example.dev names "prod" as the owner of its A record, and it has none`},
		{"another's, and nobody of ours wants it", []string{"A x 192.0.2.1", "TXT a-x " + owned("prod")}, nil, nil, ""},
		{"nobody's, and nobody of ours wants it", []string{"A x 192.0.2.1", "TXT x v=spf1"}, nil, nil, ""},
		{"unwanted, of two owners", []string{"A x 192.0.2.1", "TXT a-x " + owned("prod"), "TXT a-x " + owned("us")}, nil, []string{"two-owners x of prod+us"}, "is claimed by"},
		{"unwanted, ours and encrypted", []string{"A x 192.0.2.1", "TXT a-x " + owned("us"), "TXT a-x " + sealedTXT}, nil, []string{"unwanted-stale x of us"}, "it is not deleted: it has an ownership record that cannot be read"},
		{"unwanted, with a record that nobody claims", []string{"A x 192.0.2.1", "AAAA x ::1", "TXT a-x " + owned("us")}, nil, []string{"unwanted-stale x of us"}, "an AAAA record (::1) that no ownership record claims"},
		{"issue 6617, of others", []string{"A x 192.0.2.1", "TXT cname-x " + owned("prod")}, nil, []string{"record-without-txt-beside-foreign x of prod"}, "no ownership record tells"},
		{"a leftover of ours beside what is wanted", []string{"A " + h + " 192.0.2.1", "TXT a-" + h + " " + owned("us"), "TXT cname-" + h + " " + owned("us")}, wants(h),
			[]string{"txt-without-record acme-eu-staging of us for acme/eu", "wanted-ours acme-eu-staging of us for acme/eu"}, "CNAME record"},
		{"one owner id in two environments, by a server", []string{"A x 192.0.2.1", "TXT a-x " + made("us", "production"), "A y 192.0.2.1", "TXT a-y " + owned("us"), "A z 192.0.2.1", "TXT a-z " + made("us", "staging")}, nil,
			[]string{"owner-in-two-environments x of us in production", "unwanted-stale y of us", "unwanted-stale z of us for acme/eu PRUNE"}, "give each environment an owner id of its own"},
		{"one owner id in two environments, by a suffix", []string{"A x-canary 192.0.2.1", "TXT a-x-canary " + owned("us")}, nil,
			[]string{"owner-in-two-environments x-canary of us in canary", "unwanted-stale x-canary of us in canary PRUNE"}, `1 hosts with the suffix of environment "canary"`},
		{"a form that the zone was not given is not pruned", []string{"A x 192.0.2.1", "TXT _e.a-x " + owned("us")}, nil, []string{"txt-without-record _e.a-x of us", "unwanted-stale x of us"}, "may be that of x.kura.example.dev"},
		{"and not what may be another host's", []string{"A x 192.0.2.1", "TXT kube-a-x " + owned("us")}, wants(h), []string{"wanted-absent acme-eu-staging of  for acme/eu", "txt-without-record kube-a-x of us"}, "with a prefix or suffix that the zone was not given"},
		{"and not what may be a wildcard's", []string{"A * 192.0.2.1", "TXT a-wild " + owned("us")}, nil, []string{"txt-without-record wild of us"}, "TXT a-wild.kura.example.dev may be that of *.kura.example.dev"},
		{"wanted, of our owner id, and another environment's", []string{"A " + h + " 192.0.2.1", "TXT a-" + h + " " + made("us", "production")}, wants(h),
			[]string{"owner-in-two-environments acme-eu-staging of us in production for acme/eu"}, `belongs to environment "production"`},
		{"wanted outside the zone", nil, []Wanted{{Host: "a.other.dev", Server: acmeEU, Owner: "us"}}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := auditOf(t, zone(c.zone...), c.wanted)
			if d := cmp.Diff(c.want, lines(got)); d != "" {
				t.Error(d)
			}
			if len(got) > 0 && !slices.ContainsFunc(got, func(f Finding) bool { return strings.Contains(f.Why, c.why) }) {
				t.Errorf("it says %q, not %q", got[0].Why, c.why)
			}
		})
	}
}

// TestH9_staleHostsAreFoundAndPrunedByTheirOwner is the table of the rule, each host with a record
// of ours and one of another owner's.
func TestH9_staleHostsAreFoundAndPrunedByTheirOwner(t *testing.T) {
	const suffix = "-eu-central-1"
	for _, c := range []struct {
		environment, host string
		stale             bool
	}{
		{"staging", "acme" + suffix, true},
		{"staging", "acme" + suffix + "-staging", false},
		{"staging", "my-staging" + suffix, true},
		{"staging", "my-staging" + suffix + "-staging", false},
		{"staging", "acme" + suffix + "-canary", true},
		{"staging", "a-acme" + suffix, true},
		{"canary", "acme" + suffix, true},
		{"canary", "my-staging" + suffix + "-canary", false},
		{"production", "acme" + suffix, false},
		{"production", "my-staging" + suffix, false},
		{"production", "acme" + suffix + "-staging", false},
	} {
		for _, owner := range []string{"us", "them"} {
			e, err := fleet.NewEnvironment(c.environment, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			z := Zone{Domain: domain, Token: "file"}
			x := NewIndex(zone("A "+c.host+" 192.0.2.1", "TXT a-"+c.host+" "+owned(owner)), z, e)
			got := Audit(AuditInput{Environment: e, Owners: []string{"us"}, Zones: []ZoneRead{{Zone: z, Index: x}}})[0].Findings
			var kinds []fleet.FindingKind
			for _, f := range got {
				if f.Kind != fleet.FindingSharedOwner {
					kinds = append(kinds, f.Kind)
				}
			}
			want := []fleet.FindingKind{fleet.FindingUnwanted}
			if c.stale {
				want[0] = fleet.FindingStale
			}
			if owner == "them" {
				want = nil
			}
			deletes := Prune(got).Records
			if !slices.Equal(kinds, want) || len(deletes) != 2*len(want) {
				t.Errorf("%s in %s of %s: got %q, which deletes %d records; want %q", c.host, c.environment, owner, kinds, len(deletes), want)
			}
		}
	}
	// Of a zone that is more than that of the hosts, what lies outside theirs is not stale.
	z := Zone{Domain: "example.dev", Token: "file"}
	l := Listing{Records: []fleet.DNSRecord{
		{ID: "1", Type: "A", Name: "www.example.dev", Content: "192.0.2.1"}, {ID: "2", Type: "TXT", Name: "a-www.example.dev", Content: owned("us")},
		{ID: "3", Type: "A", Name: "acme.kura.example.dev", Content: "192.0.2.1"}, {ID: "4", Type: "TXT", Name: "a-acme.kura.example.dev", Content: owned("us")},
	}}
	got := Audit(AuditInput{Environment: staging(t), Wanted: wants("acme-staging"), Zones: []ZoneRead{{Zone: z, Index: NewIndex(l, z, staging(t))}}})[0].Findings
	want := []string{"wanted-absent acme-staging of  for acme/eu", "unwanted-stale acme of us PRUNE", "unwanted www.example.dev of us PRUNE"}
	if d := cmp.Diff(want, lines(got)); d != "" {
		t.Error(d)
	}
}

func TestD6_loadBalancersAndPoolsThatNobodyWants(t *testing.T) {
	us := fleet.ServerKey{Account: "acme", Region: "us"}
	pool := func(id string, key fleet.ServerKey) Pool {
		return Pool{ID: id, Name: fleet.PoolName("staging", key), Description: PoolOf("staging", key), Origins: []Origin{{Address: "acme-" + key.Region + "-staging." + domain}}}
	}
	gone := fleet.ServerKey{Account: "gone", Region: "eu"}
	l := zone("A acme-staging 192.0.2.1", "TXT a-acme-staging "+owned("us"), "A web 192.0.2.2")
	l.Pools = []Pool{pool("p-eu", acmeEU), pool("p-us", us), pool("p-gone", gone), {ID: "p-other", Name: "web", Description: "kura-production/eu/acme"}}
	l.Balancers = []Balancer{
		{ID: "b-acme", Name: "acme-staging." + domain, Description: BalancerOf("staging", "acme"), Pools: []string{"p-eu", "p-us"}, Fallback: "p-us"},
		{ID: "b-gone", Name: "gone-staging." + domain, Description: BalancerOf("staging", "gone"), Pools: []string{"p-gone"}, Fallback: "p-gone"},
		{ID: "b-web", Name: "web." + domain, Description: "by hand", Pools: []string{"p-other"}},
	}
	wanted := []Wanted{{Host: "acme-staging." + domain, Kind: HostGlobal, Server: acmeEU, Owner: "us"}}
	got := auditOf(t, l, wanted)
	want := []string{
		"balancer-shadows-record acme-staging of us for acme/eu",
		"unwanted-pool acme-staging of  for acme/us PRUNE",
		"wanted-ours acme-staging of us for acme/eu",
		"unwanted-balancer gone-staging of  for gone PRUNE",
		"unwanted-pool gone-staging of  for gone/eu PRUNE",
		"balancer-shadows-record web of ",
	}
	if d := cmp.Diff(want, lines(got)); d != "" {
		t.Error(d)
	}
	d := Prune(got)
	var deleted []string
	for _, b := range d.Balancers {
		deleted = append(deleted, b.ID)
	}
	for _, p := range d.Pools {
		deleted = append(deleted, p.ID)
	}
	if want := []string{"b-gone", "p-gone", "p-us"}; !slices.Equal(deleted, want) || len(d.Records) > 0 {
		t.Errorf("it deletes %q and %v, want %q", deleted, d.Records, want)
	}
	if len(d.Changed) != 1 || d.Changed[0].ID != "b-acme" || !slices.Equal(d.Changed[0].Pools, []string{"p-eu"}) || d.Changed[0].Fallback != "p-eu" {
		t.Errorf("the load balancer that loses a pool: %+v", d.Changed)
	}
	// Without any server of the account, its balancer loses its last pool, and goes.
	if d := Prune(auditOf(t, l, nil)); len(d.Balancers) != 2 || len(d.Changed) != 0 || len(d.Pools) != 3 {
		t.Errorf("nobody wants anything: %+v", d)
	}
	// A pool of ours in a load balancer that is not ours stays.
	l.Balancers[1].Description = "by hand"
	if d := Prune(auditOf(t, l, wanted)); len(d.Balancers) != 0 || len(d.Pools) != 1 {
		t.Errorf("a pool in somebody else's load balancer: %+v", d)
	}
}

func TestD6_aZoneThatIsReadByQueriesIsAuditedForItsWantedHostsOnly(t *testing.T) {
	in := AuditInput{Environment: staging(t), Wanted: wants("a-staging", "b-staging", "c-staging"), Zones: []ZoneRead{{Zone: Zone{Domain: domain}, Hosts: map[string]fleet.HostRead{
		"a-staging." + domain: {Ownership: fleet.OwnershipOurs, Records: []fleet.DNSRecord{{Type: "A", Content: "192.0.2.1"}}},
		"b-staging." + domain: {Ownership: fleet.OwnershipForeign, Owners: []string{"prod"}, Detail: `belongs to "prod"`},
		"x-staging." + domain: {Ownership: fleet.OwnershipOurs},
	}}}}
	got := Audit(in)[0]
	want := []string{"wanted-ours a-staging of  for acme/eu", "wanted-foreign b-staging of prod for acme/eu", "wanted-unread c-staging of  for acme/eu"}
	if d := cmp.Diff(want, lines(got.Findings)); d != "" {
		t.Error(d)
	}
	if got.Failure == nil || !strings.Contains(got.Failure.Message, "only hosts that a server wants are known") || len(got.ZoneAudit.Findings) != 3 {
		t.Errorf("it does not say so: %+v", got.ZoneAudit)
	}
	in.Zones[0].Zone.Token, in.Zones[0].Failure = "file", &fleet.ReadFailure{Reason: fleet.ReasonRateLimited}
	if got := Audit(in)[0]; got.Failure.Reason != fleet.ReasonRateLimited {
		t.Errorf("a listing that failed: %+v", got.Failure)
	}
}

// TestD6_nothingIsPrunedThatIsNotOurs holds for any listing: what a prune deletes are records
// of unwanted hosts that are ours, with their ownership records, and the answer does not depend
// on the order of the listing.
func TestD6_nothingIsPrunedThatIsNotOurs(t *testing.T) {
	random, e, pruned := rand.New(rand.NewPCG(6, 11)), staging(t), 0
	z := Zone{Domain: domain, Token: "file"}
	for range 4_000 {
		l := randomZone(random)
		in := AuditInput{Environment: e, Owners: []string{"us"}, Zones: []ZoneRead{{Zone: z, Index: NewIndex(l, z, e)}}}
		if random.IntN(2) == 0 {
			in.Wanted = wants("acme-eu-staging")
		}
		got := Audit(in)
		random.Shuffle(len(l.Records), func(i, j int) { l.Records[i], l.Records[j] = l.Records[j], l.Records[i] })
		in.Zones[0].Index = NewIndex(l, z, e)
		if again := Audit(in); !cmp.Equal(got, again, cmp.AllowUnexported()) {
			t.Fatalf("the order of the listing decides: %+v\n%s", l, cmp.Diff(got[0].Findings, again[0].Findings))
		}
		for _, f := range got[0].Findings {
			if f.Why == "" || f.Prunable != (len(Prune([]Finding{f}).Records)+len(Prune([]Finding{f}).Balancers) > 0) {
				t.Fatalf("%+v deletes %+v", f, Prune([]Finding{f}))
			}
			if !f.Prunable || len(f.Records) == 0 {
				continue
			}
			pruned++
			if in.Zones[0].Index.Host(f.Host, "us").Ownership != fleet.OwnershipOurs || f.Host == host && in.Wanted != nil {
				t.Fatalf("%s is pruned: %+v", f.Host, l)
			}
			for _, r := range f.Records {
				if text, _ := ParseTXT(r.Content); r.Type == "TXT" && text.Owner != "us" || r.Type != "TXT" && r.Name != f.Host {
					t.Fatalf("the prune of %s deletes %+v", f.Host, r)
				}
			}
		}
	}
	if pruned < 200 {
		t.Errorf("only %d prunes: the test says little", pruned)
	}
}

func TestD4_aHostIsTakenOnlyFromTheOwnerThatIsNamed(t *testing.T) {
	const a, txt = "A acme-eu-staging 192.0.2.1", "TXT a-acme-eu-staging "
	to := TXT{Owner: "us", Resource: fleet.ResourceOf("staging", acmeEU)}
	for _, c := range []struct {
		name    string
		lines   []string
		refused string
		puts    int
		deletes int
	}{
		{"its owner's", []string{a, txt + made("prod", "production")}, "", 1, 0},
		{"in two forms", []string{a, txt + owned("prod"), "TXT acme-eu-staging " + owned("prod")}, "", 2, 0},
		{"ours already", []string{a, txt + to.String()}, "", 0, 0},
		{"ours, too: the other one's goes", []string{a, txt + to.String(), txt + owned("prod")}, "", 0, 1},
		{"of one who names it twice", []string{a, txt + owned("prod"), txt + made("prod", "production")}, "", 1, 1},
		{"another's", []string{a, txt + owned("canary")}, `belongs to "canary"`, 0, 0},
		{"one more owner's", []string{a, txt + owned("prod"), txt + owned("canary")}, "is claimed by", 0, 0},
		{"nobody's", []string{a}, "no ownership record claims", 0, 0},
		{"not there", nil, "has no record", 0, 0},
		{"encrypted", []string{a, txt + owned("prod"), txt + sealedTXT}, "encrypted", 0, 0},
		{"a record that the TXT is not about", []string{a, "TXT cname-acme-eu-staging " + owned("prod")}, "has an A record (192.0.2.1) that no", 0, 0},
		{"another environment's with our owner id", []string{a, txt + made("us", "production")}, "same owner id", 0, 0},
		{"delegated", []string{a, txt + owned("prod"), "NS acme-eu-staging ns.example.net"}, "NS record", 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := zone(c.lines...)
			x := NewIndex(l, Zone{Domain: domain}, staging(t))
			got, err := x.Take(host, "prod", to)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) || fleet.CodeOf(err) != fleet.CodeConflict || got.Batch.Len() > 0 {
					t.Fatalf("got %+v, %v; want …%s…", got, err, c.refused)
				}
				return
			}
			if err != nil || len(got.Batch.Puts) != c.puts || len(got.Batch.Deletes) != c.deletes || len(got.Before) != len(c.lines) {
				t.Fatalf("got %+v, %v; want %d puts, %d deletes", got, err, c.puts, c.deletes)
			}
			if now := Judge(host, "us", Listing{Records: got.After}, Zone{Domain: domain}, staging(t)); now.Ownership != fleet.OwnershipOurs || c.puts == 1 && now.Resource != to.Resource {
				t.Errorf("afterwards it is %+v", now)
			}
		})
	}
	l := zone(a, txt+made("prod", "production"))
	l.Records[1].ID = ""
	if _, err := NewIndex(l, Zone{Domain: domain}, staging(t)).Take(host, "prod", to); err == nil || !strings.Contains(err.Error(), "read by DNS queries") {
		t.Errorf("without an id: %v", err)
	}
	l.Records[1].ID, to.Resource = "2", ""
	got, err := NewIndex(l, Zone{Domain: domain}, staging(t)).Take(host, "prod", to)
	if err != nil || got.Batch.Puts[0].Content != "heritage=external-dns,external-dns/owner=us" {
		t.Errorf("the server of another environment is still named: %+v, %v", got.Batch, err)
	}
}
