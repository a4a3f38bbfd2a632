package dns

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// mine puts a record of the environment's owner there, with its ownership record.
func (z *rude) mine(host, resource string) {
	for _, r := range []fleet.DNSRecord{
		{Type: TypeA, Name: host, Content: "192.0.2.1", TTL: 30},
		{Type: "TXT", Name: "a-" + host, Content: TXT{Owner: "kura-staging", Resource: resource}.String(), TTL: 30},
	} {
		r.ID = z.id()
		z.records[r.ID] = r
	}
}

// byHand is what somebody may ask for in the zone, for servers that want the hosts.
func (z *rude) byHand(hosts ...string) ByHand {
	return ByHand{
		Environment: staging(z.t), Zones: Zones{{Domain: "kura.test"}, {Domain: "queried.test"}}, Writers: map[string]*Writer{"kura.test": NewWriter(Zone{Domain: "kura.test"}, staging(z.t), z)},
		Wanted: func(context.Context) (all []Wanted, owners []string, _ error) {
			for i, host := range hosts {
				all = append(all, Wanted{Host: host, Kind: HostPublic, Server: account(i), Owner: "kura-staging", Managed: true})
			}
			return all, []string{"kura-staging"}, nil
		},
		Kept: func(context.Context, fleet.Finding) (string, error) { return "", nil },
		Now:  func() time.Time { return z.now },
	}
}

func wantError(t *testing.T, err error, code fleet.Code, words ...string) {
	t.Helper()
	if err == nil || code != "" && fleet.CodeOf(err) != code {
		t.Errorf("got %v, want code %s", err, code)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not said in %q", word, err)
		}
	}
}

func TestD6_aPruneDeletesWhatIsOursAndUnwantedNow(t *testing.T) {
	z := newRude(t)
	z.seedTXT("a-theirs-eu.kura.test", "production")
	z.seed(TypeA, "theirs-eu.kura.test", "192.0.2.7")
	z.seed(TypeA, "bare-eu.kura.test", "192.0.2.8")
	z.mine("wanted-eu-staging.kura.test", fleet.ResourceOf("staging", account(0)))
	z.mine("old-eu.kura.test", fleet.ResourceOf("staging", account(7)))
	z.mine("gone-eu-staging.kura.test", fleet.ResourceOf("staging", account(8)))
	z.mine("held-eu-staging.kura.test", fleet.ResourceOf("staging", account(9)))
	b := z.byHand("wanted-eu-staging.kura.test")
	b.Kept = func(_ context.Context, f fleet.Finding) (string, error) {
		if strings.HasPrefix(f.Host, "held-") {
			return "server a0009/eu has it reserved", nil
		}
		return "", nil
	}
	before := z.table()
	would, err := b.Prune(t.Context(), fleet.PruneRequest{}, true)
	if err != nil || len(would.Items) != 2 || len(would.Kept) != 1 || z.table() != before || z.writes != 0 {
		t.Fatalf("a dry run: %+v, %v", would, err)
	}
	if f := would.Items[0]; f.Host != "gone-eu-staging.kura.test" || f.Kind != fleet.FindingUnwanted || f.Account != "a0008" || would.Items[1].Kind != fleet.FindingStale {
		t.Errorf("%+v", would.Items)
	}
	hosts := []string{"gone-eu-staging.kura.test", "Held-eu-staging.kura.test.", "theirs-eu.kura.test", "bare-eu.kura.test"}
	done, err := b.Prune(t.Context(), fleet.PruneRequest{Zone: "kura.test", Hosts: hosts}, false)
	if err != nil || len(done.Items) != 1 || len(done.Kept) != 3 || z.batches != 1 {
		t.Fatalf("%+v in %d batches, %v", done, z.batches, err)
	}
	if len(z.find(TypeA, "gone-eu-staging.kura.test"))+len(z.find("TXT", "a-gone-eu-staging.kura.test")) != 0 || len(z.find(TypeA, "old-eu.kura.test")) != 1 {
		t.Errorf("left:\n%s", z.table())
	}
	// Once more, and with a wish that came in between.
	hosts = append(hosts, "old-eu.kura.test")
	b = z.byHand("wanted-eu-staging.kura.test", "old-eu.kura.test")
	b.Kept = func(context.Context, fleet.Finding) (string, error) { return "it is held", nil }
	done, err = b.Prune(t.Context(), fleet.PruneRequest{Zone: "kura.test", Hosts: hosts}, false)
	if err != nil || len(done.Items) != 0 || len(done.Kept) != len(hosts) || z.batches != 1 {
		t.Errorf("%+v, %v", done, err)
	}
}

// An owner id tells whose external-dns published a host, and not for what.
func TestD6_aPruneOfAllLeavesWhatMayBeAnotherApplications(t *testing.T) {
	z := newRude(t)
	z.mine("grafana.kura.test", "ingress/monitoring/grafana")
	z.mine("bare.kura.test", "")
	z.mine("acme-eu-canary.kura.test", "ingress/kura/kura-acme-eu")
	z.mine("old-eu.kura.test", "ingress/kura/kura-old-eu")
	b := z.byHand()
	all, err := b.Prune(t.Context(), fleet.PruneRequest{}, false)
	if err != nil || len(all.Items) != 1 || all.Items[0].Host != "old-eu.kura.test" || len(all.Kept) != 3 {
		t.Fatalf("%+v, %v", all, err)
	}
	for _, k := range all.Kept {
		if !strings.Contains(k.Why, "--host "+k.Host) || len(z.find(TypeA, k.Host)) != 1 {
			t.Errorf("%s is kept, for %s", k.Host, k.Why)
		}
	}
	if named, err := b.Prune(t.Context(), fleet.PruneRequest{Hosts: []string{"grafana.kura.test"}}, false); err != nil || len(named.Items) != 1 {
		t.Errorf("one that is named: %+v, %v", named, err)
	}
}

func TestD5_aZoneThatDoesNotAnswerIsNotPruned(t *testing.T) {
	z := newRude(t)
	z.mine("old-eu.kura.test", fleet.ResourceOf("staging", account(7)))
	b := z.byHand()
	z.down = &Error{Class: fleet.ClassTransient, Reason: fleet.ReasonRateLimited, Message: "429", After: time.Minute}
	got, err := b.Prune(t.Context(), fleet.PruneRequest{}, true)
	if err != nil || len(got.Items) != 0 || len(got.Unreadable) != 1 || got.Unreadable[0].Reason != fleet.ReasonRateLimited {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = b.Prune(t.Context(), fleet.PruneRequest{Zone: "kura.test", Hosts: []string{"old-eu.kura.test"}}, false)
	wantError(t, err, "", "list zone kura.test", "429")
	_, err = b.Prune(t.Context(), fleet.PruneRequest{Zone: "queried.test"}, true)
	wantError(t, err, fleet.CodeConflict, "without a token", "--zone queried.test,cloudflare=")
	_, err = b.Prune(t.Context(), fleet.PruneRequest{Zone: "none.test"}, true)
	wantError(t, err, fleet.CodeNotFound, `"none.test"`, "kura.test, queried.test")
	b.Writers = nil
	_, err = b.Prune(t.Context(), fleet.PruneRequest{}, true)
	wantError(t, err, fleet.CodeConflict, "no DNS zone with a token")
}

// Hosts are deleted in batches that the plan allows; what went before one that fails is told.
func TestD6_aPruneTellsWhatItDeletedBeforeItFailed(t *testing.T) {
	z := newRude(t)
	for i := range 250 {
		z.mine(fmt.Sprintf("old%d-eu.kura.test", i), fleet.ResourceOf("staging", account(i)))
	}
	z.fail = func(write int) (error, bool) {
		if write == 2 {
			return errLost, false
		}
		return nil, false
	}
	b := z.byHand()
	done, err := b.Prune(t.Context(), fleet.PruneRequest{Zone: "kura.test"}, false)
	wantError(t, err, "", "delete records of zone kura.test", "no answer")
	if len(done.Items) != 100 || len(z.records) != 300 || z.largest > 200 {
		t.Errorf("%d told, %d records left, the largest batch is %d", len(done.Items), len(z.records), z.largest)
	}
	if done, err = b.Prune(t.Context(), fleet.PruneRequest{Zone: "kura.test"}, false); err != nil || len(done.Items) != 150 || len(z.records) != 0 {
		t.Errorf("%d told, %d left, %v", len(done.Items), len(z.records), err)
	}
}

func TestD6_aPruneTakesPoolsOutOfWhatHasThem(t *testing.T) {
	z := newRude(t)
	pool := func(i int) string {
		p, err := z.PutPool(t.Context(), Pool{Name: fleet.PoolName("staging", account(i)), Description: PoolOf("staging", account(i)), Origins: []Origin{{Address: hostOf(i)}}})
		if err != nil {
			t.Fatal(err)
		}
		return p.ID
	}
	stays, goes := pool(0), pool(1)
	if _, err := z.PutBalancer(t.Context(), Balancer{Name: "g-staging.kura.test", Description: BalancerOf("staging", "a0000"), Pools: []string{stays, goes}, Fallback: stays, TTL: 30, Steering: "proximity", Enabled: true}); err != nil {
		t.Fatal(err)
	}
	b := z.byHand()
	b.Wanted = func(context.Context) ([]Wanted, []string, error) {
		return []Wanted{{Host: "g-staging.kura.test", Kind: HostGlobal, Server: account(0), Owner: "kura-staging"}}, nil, nil
	}
	done, err := b.Prune(t.Context(), fleet.PruneRequest{Zone: "kura.test"}, false)
	if err != nil || len(done.Items) != 1 || done.Items[0].Kind != fleet.FindingPool || len(z.pools) != 1 || len(z.balancers) != 1 {
		t.Errorf("%+v, %v:\n%s", done, err, z.table())
	}
}

// A join or a publish while somebody prunes or takes: what it has read is what there is when it writes.
func TestD6_noTwoOfThisProcessWriteAZoneAtOnce(t *testing.T) {
	for name, ask := range map[string]func(t *testing.T, b ByHand) error{
		"prune": func(t *testing.T, b ByHand) error {
			done, err := b.Prune(t.Context(), fleet.PruneRequest{Zone: "kura.test"}, false)
			if len(done.Items) != 2 {
				t.Errorf("pruned %+v", done)
			}
			return err
		},
		"take": func(t *testing.T, b ByHand) error {
			_, err := b.Take(t.Context(), fleet.TakeRequest{Host: hostOf(0), From: "production"}, false)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				z := newRude(t)
				z.seed(TypeA, hostOf(0), "192.0.2.7")
				z.seedTXT("a-"+hostOf(0), "production")
				clear(z.others)
				z.mine("old-eu.kura.test", fleet.ResourceOf("staging", account(7)))
				b := z.byHand(hostOf(0))
				b.Wanted = func(context.Context) (all []Wanted, owners []string, _ error) {
					for host, of := range map[string]fleet.ServerKey{hostOf(0): account(0), globalHost(1): {Account: "a0001", Region: "us"}} {
						all = append(all, Wanted{Host: host, Kind: HostGlobal, Server: of, Owner: "kura-staging", Managed: true})
					}
					return all, []string{"kura-staging"}, nil
				}
				w := b.Writers["kura.test"]
				expectOK(t, w.Balancers.Run(t.Context(), []fleet.Effect{joins(1, "eu"), joins(1, "us")}))
				var meanwhile []fleet.Outcome
				z.between = func(int) {
					z.between = nil
					go func() {
						meanwhile = append(w.Publisher.Run(t.Context(), []fleet.Effect{wanted(3, "192.0.2.3")}), w.Balancers.Run(t.Context(), []fleet.Effect{joins(1, "ap")})...)
					}()
					if synctest.Wait(); meanwhile != nil || len(z.find(TypeA, hostOf(3))) > 0 {
						t.Error("another wrote between its listing and its write")
					}
				}
				if err := ask(t, b); err != nil {
					t.Fatal(err)
				}
				if synctest.Wait(); len(meanwhile) != 2 {
					t.Fatal("who waited had no turn")
				}
				expectOK(t, meanwhile)
				if got := z.balancer(1); !strings.Contains(got, "ap") {
					t.Errorf("the load balancer has %s:\n%s", got, z.table())
				}
			})
		})
	}
}

// Who has no turn in its time changes nothing, and is told so.
func TestD6_whoHasNoTurnInTimeChangesNothing(t *testing.T) {
	z := newRude(t)
	z.mine("old-eu.kura.test", fleet.ResourceOf("staging", account(7)))
	b := z.byHand(hostOf(0))
	w := b.Writers["kura.test"]
	end, err := w.alone(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	late, cancel := context.WithCancel(t.Context())
	cancel()
	for _, o := range append(w.Publisher.Run(late, []fleet.Effect{wanted(1, "192.0.2.1")}), w.Balancers.Run(late, []fleet.Effect{joins(1, "eu")})...) {
		expect(t, o, fleet.ClassTransient, fleet.ReasonZoneUnreachable, "not begun")
	}
	_, err = b.Prune(late, fleet.PruneRequest{Zone: "kura.test"}, false)
	wantError(t, err, "", "not begun")
	_, err = b.Take(late, fleet.TakeRequest{Host: hostOf(0), From: "production"}, false)
	wantError(t, err, "", "not begun")
	if end(); z.writes != 0 {
		t.Errorf("%d writes", z.writes)
	}
}

func TestD4_aTakeByHandIsOfWhatAServerWants(t *testing.T) {
	z := newRude(t)
	host := hostOf(0)
	put := func(ofType, name, content string) {
		r := fleet.DNSRecord{ID: z.id(), Type: ofType, Name: name, Content: content, TTL: 30}
		z.records[r.ID] = r
	}
	put(TypeA, host, "192.0.2.7")
	put("TXT", "a-"+host, TXT{Owner: "production", Resource: "ingress/prod/web"}.String())
	b := z.byHand(host)
	ask := fleet.TakeRequest{Host: host, From: "production"}
	before := z.table()
	would, err := b.Take(t.Context(), ask, true)
	if err != nil || !would.Changed || would.To != "kura-staging" || would.Account != "a0000" || z.table() != before {
		t.Fatalf("a dry run: %+v, %v", would, err)
	}
	for name, c := range map[string]struct {
		ask   fleet.TakeRequest
		by    ByHand
		words []string
	}{
		"another owner":  {fleet.TakeRequest{Host: host, From: "canary"}, b, []string{`"canary"`, `"production"`}},
		"nobody wants":   {ask, z.byHand(), []string{"no server of environment \"staging\" wants it"}},
		"no zone":        {fleet.TakeRequest{Host: "a.example.dev", From: "production"}, b, []string{"no zone", "kura.test"}},
		"without tokens": {fleet.TakeRequest{Host: "a.queried.test", From: "production"}, b, []string{"without a token"}},
	} {
		_, err := c.by.Take(t.Context(), c.ask, false)
		if wantError(t, err, fleet.CodeConflict, c.words...); z.table() != before {
			t.Errorf("%s: changed to\n%s", name, z.table())
		}
	}
	unchecked := b
	unchecked.Wanted = func(context.Context) ([]Wanted, []string, error) {
		return []Wanted{{Host: host, Server: account(0)}}, nil, nil
	}
	_, err = unchecked.Take(t.Context(), ask, false)
	wantError(t, err, fleet.CodeConflict, `dns.mode = "none"`)
	if done, err := b.Take(t.Context(), ask, false); err != nil || !done.Changed {
		t.Fatalf("%+v, %v", done, err)
	}
	want := TXT{Owner: "kura-staging", Resource: fleet.ResourceOf("staging", account(0))}.String()
	if got := z.find("TXT", "a-"+host); len(got) != 1 || got[0].Content != want {
		t.Errorf("the ownership record is %+v, want %s", got, want)
	}
	if again, err := b.Take(t.Context(), ask, false); err != nil || again.Changed || z.batches != 1 {
		t.Errorf("once more: %+v, %v in %d batches", again, err, z.batches)
	}
}
