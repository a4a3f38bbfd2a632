package cloudflare

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	emulator "github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

// seed puts n A records of hosts h0 to h<n-1> there.
func seed(t *testing.T, e *emulator.Emulator, n int) {
	t.Helper()
	var all []emulator.Record
	for i := range n {
		all = append(all, emulator.Record{Name: fmt.Sprintf("h%d.%s", i, domain), Type: "A", Content: "192.0.2.1"})
	}
	if err := e.Seed("somebody", all...); err != nil {
		t.Fatal(err)
	}
}

func list1(t *testing.T, z *Zone, parts dns.Parts) dns.Listing {
	t.Helper()
	l, err := z.List(t.Context(), parts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestZone_recordsAreWrittenAndReadAsKuradSaysThem(t *testing.T) {
	z, e := emulate(t, nil)
	long := strings.Repeat(`0123456789"\ü`, 40)
	want := []fleet.DNSRecord{
		{Name: "a.kura.test", Type: "A", Content: "192.0.2.1", TTL: 60, Comment: "a note"},
		{Name: "a.kura.test", Type: "AAAA", Content: "2001:db8::1", TTL: 1},
		{Name: "c.kura.test", Type: "CNAME", Content: "lb.example.dev", TTL: 60, Proxied: false},
		{Name: "a-a.kura.test", Type: "TXT", Content: "heritage=external-dns,external-dns/owner=me", TTL: 60},
		{Name: "long.kura.test", Type: "TXT", Content: long, TTL: 60},
	}
	if err := e.Seed("somebody", emulator.Record{Name: "mail.kura.test", Type: "MX", Content: "x.test"}, emulator.Record{Name: "old.kura.test", Type: "TXT", Content: "no quotes"}); err != nil {
		t.Fatal(err)
	}
	if err := z.Apply(t.Context(), dns.Batch{Posts: want}); err != nil {
		t.Fatal(err)
	}
	if got := e.Records("a-a.kura.test", "TXT")[0].Content; got != `"heritage=external-dns,external-dns/owner=me"` {
		t.Errorf("the TXT is %s", got)
	}
	want = append(want, fleet.DNSRecord{Name: "old.kura.test", Type: "TXT", Content: "no quotes", TTL: 1})
	got := list1(t, z, everything).Records
	ids := map[string]string{}
	for i := range got {
		ids[got[i].Name], got[i].ID = got[i].ID, ""
	}
	sorted := func(all []fleet.DNSRecord) []fleet.DNSRecord {
		return slices.SortedFunc(slices.Values(all), func(a, b fleet.DNSRecord) int {
			return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Type, b.Type))
		})
	}
	if diff := gocmp.Diff(sorted(want), sorted(got)); diff != "" {
		t.Error(diff)
	}

	next := fleet.DNSRecord{ID: ids["c.kura.test"], Name: "c.kura.test", Type: "CNAME", Content: "other.example.dev", TTL: 60}
	if err := z.Apply(t.Context(), dns.Batch{Deletes: []fleet.DNSRecord{{ID: ids["long.kura.test"]}}, Puts: []fleet.DNSRecord{next}}); err != nil {
		t.Fatal(err)
	}
	if got := e.Records("c.kura.test", "")[0].Content; got != "other.example.dev" || len(e.Records("long.kura.test", "")) != 0 {
		t.Errorf("after a put and a delete: %s", e.Table())
	}
}

func TestZone_aBatchFailsAsAWholeAndSaysWhatItBeginsWith(t *testing.T) {
	z, e := emulate(t, nil)
	seed(t, e, 1)
	b := dns.Batch{Posts: []fleet.DNSRecord{{Name: "new.kura.test", Type: "A", Content: "192.0.2.1", TTL: 60}, {Name: "h0.kura.test", Type: "CNAME", Content: "x.test", TTL: 60}}}
	err := wantError(t, z.Apply(t.Context(), b), dns.Error{Class: fleet.ClassTransient, Reason: fleet.ReasonDrifted, Conflict: true, Answered: true})
	want := "zone kura.test: create A new.kura.test and 1 more changes: Cloudflare answers 400: An A, AAAA, or CNAME record with that host already exists. (code 81053)"
	if err.Message != want || len(e.Records("new.kura.test", "")) != 0 {
		t.Errorf("got  %s\nwant %s", err.Message, want)
	}
	wantError(t, z.Apply(t.Context(), dns.Batch{Puts: []fleet.DNSRecord{{ID: "0123", Name: "x.kura.test", Type: "A", Content: "192.0.2.1"}}}),
		dns.Error{Class: fleet.ClassTransient, Reason: fleet.ReasonDrifted, NotFound: true, Answered: true})
	wantError(t, z.Apply(t.Context(), dns.Batch{Deletes: []fleet.DNSRecord{{Name: "h0.kura.test", Type: "A"}}}),
		dns.Error{Class: fleet.ClassRefused, Reason: fleet.ReasonInvalid, Answered: true})
	wantError(t, z.Apply(t.Context(), dns.Batch{Posts: []fleet.DNSRecord{{Name: "x.kura.test", Type: "A", Content: "no address"}}}),
		dns.Error{Class: fleet.ClassRefused, Reason: fleet.ReasonInvalid, Answered: true})
}

func TestZone_anAnswerThatIsLostAfterTheEffectIsNotAnswered(t *testing.T) {
	z, e := emulate(t, nil)
	e.Break(emulator.Fault{Kind: emulator.LostAnswer, Only: "writes", Times: 1})
	wantError(t, z.Apply(t.Context(), batch("a.kura.test")), unanswered)
	if len(list1(t, z, everything).Records) != 1 {
		t.Error("the effect took place and is not seen")
	}
}

func TestD5_anOutageIsNoAnswer(t *testing.T) {
	for _, fault := range []emulator.Fault{
		{Kind: emulator.Reset}, {Kind: emulator.Unavailable}, {Kind: emulator.HTML}, {Kind: emulator.HTML, Status: 200},
		{Kind: emulator.Unavailable, Status: 403}, {Kind: emulator.ShortListing}, {Kind: emulator.MovingPages},
	} {
		t.Run(string(fault.Kind), func(t *testing.T) {
			z, e := emulate(t, func(o *emulator.Options) {
				o.Now = func() time.Time { return time.Now().Add(-time.Minute) } // what is seeded was there before
			})
			z.client.settle = time.Millisecond
			all := 20
			if fault.Kind == emulator.MovingPages {
				all = 5010 // two pages
			}
			seed(t, e, all)
			if n := len(list1(t, z, everything).Records); n != all {
				t.Fatalf("%d records, want all", n)
			}
			e.Break(fault)
			l, err := z.List(t.Context(), everything)
			wantError(t, err, unreachable)
			if l.Records != nil {
				t.Error("half an answer is none")
			}
			e.Heal()
			if n := len(list1(t, z, everything).Records); n != all {
				t.Errorf("%d records after it, want all", n)
			}
		})
	}
}

func TestD5_aListingThatChangesWhileItIsReadIsReadAgain(t *testing.T) {
	var first atomic.Int32
	at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	z := answers(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Date", at.Format(http.TimeFormat))
		if r.URL.Query().Get("page") == "1" {
			first.Add(1)
			say(w, 200, `{"success": true, "result": [{"id": "1", "type": "A"}, {"id": "2", "type": "A"}], "result_info": {"total_count": 3}}`)
			return
		}
		changed := at.Add(-time.Minute)
		if first.Load() < 3 { // one was made in place of one that was deleted: as many as before
			changed = at.Add(time.Second / 2)
		}
		say(w, 200, `{"success": true, "result": [{"id": "4", "type": "A", "modified_on": "`+changed.Format(time.RFC3339Nano)+`"}], "result_info": {"total_count": 3}}`)
	})
	z.client.settle = time.Millisecond
	if l := list1(t, z, dns.Parts{Records: true}); len(l.Records) != 3 || first.Load() != 3 {
		t.Errorf("%d records after %d tries, want 3 after 3", len(l.Records), first.Load())
	}
	z.seen, at = map[string]memory{}, time.Now()
	first.Store(-10)
	if _, err := z.List(t.Context(), dns.Parts{Records: true}); err == nil || !strings.Contains(err.Error(), "changed while it was read") {
		t.Errorf("of one that goes on changing: %v", err)
	}
}

func TestD5_aListingThatLacksWhatIsThereIsNotBelieved(t *testing.T) {
	for _, kind := range []emulator.FaultKind{emulator.EmptyListing, emulator.HalfListing} {
		for _, n := range []int{1, 2, 40} {
			z, e := emulate(t, nil)
			seed(t, e, n)
			list1(t, z, everything)
			e.Break(emulator.Fault{Kind: kind, Only: "GET records"})
			for range 3 {
				_, err := z.List(t.Context(), everything)
				if e := wantError(t, err, unreachable); !strings.Contains(e.Message, "which is there") {
					t.Errorf("%s of %d: %s", kind, n, e.Message)
				}
			}
			e.Heal()
			if got := len(list1(t, z, everything).Records); got != n {
				t.Errorf("%s: %d records after it, want %d", kind, got, n)
			}
		}
	}
}

func TestD5_aListingIsNotMeasuredByOneThatBeganAfterIt(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	var calls atomic.Int32
	const one, two = `{"id": "1", "type": "A"}`, `{"id": "1", "type": "A"}, {"id": "2", "type": "A"}`
	z := answers(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/2"):
			say(w, 200, `{"success": true, "result": {}}`)
		case calls.Add(1) == 1: // cut before the second record was made, and late
			close(arrived)
			<-release
			say(w, 200, `{"success": true, "result": [`+one+`], "result_info": {"total_count": 1}}`)
		default:
			say(w, 200, `{"success": true, "result": [`+two+`], "result_info": {"total_count": 2}}`)
		}
	})
	late := make(chan error)
	go func() {
		_, err := z.List(t.Context(), dns.Parts{Records: true})
		late <- err
	}()
	<-arrived
	list1(t, z, dns.Parts{Records: true})
	close(release)
	if err := <-late; err != nil {
		t.Error(err)
	}
	if ids := z.seen["records"].ids; len(ids) != 2 {
		t.Errorf("remembered %v, want the listing that began last", ids)
	}
}

func TestD5_aZoneThatWasEmptiedIsBelieved(t *testing.T) {
	z, e := emulate(t, nil)
	seed(t, e, 40)
	list1(t, z, everything)
	for i := range 40 {
		e.Delete(fmt.Sprintf("h%d.%s", i, domain), "")
	}
	e.ResetCounters()
	if n := len(list1(t, z, everything).Records); n != 0 {
		t.Errorf("%d records, want none", n)
	}
	if calls := e.Counters().Calls; calls["GET record"] != witnesses {
		t.Errorf("calls: %v, want %d records asked for", calls, witnesses)
	}
	e.ResetCounters()
	list1(t, z, everything)
	if calls := e.Counters().Calls; calls["GET record"] != 0 {
		t.Errorf("calls of the next round: %v, want no record asked for", calls)
	}
}

func TestZone_aLargeZoneIsReadInFewCalls(t *testing.T) {
	z, e := emulate(t, nil)
	seed(t, e, 5010)
	for range 2 {
		e.ResetCounters()
		if n := len(list1(t, z, everything).Records); n != 5010 {
			t.Fatalf("%d records, want all", n)
		}
	}
	total := 0
	for _, n := range e.Counters().Calls {
		total += n
	}
	if total != 4 {
		t.Errorf("%d calls, want 2 pages of records and 2 lists: %v", total, e.Counters().Calls)
	}
}

func TestZone_itsIdIsFoundAgainAfterItWasMadeAnew(t *testing.T) {
	z, e := emulate(t, nil)
	list1(t, z, everything)
	z.is.zone = strings.Repeat("0", 32)
	_, err := z.List(t.Context(), everything)
	wantError(t, err, mayNot)
	list1(t, z, everything)
	if n := e.Counters().Calls["GET zones"]; n < 2 {
		t.Errorf("zones were listed %d times", n)
	}
}

func TestZone_itIsFoundOnceForAllWhoAsk(t *testing.T) {
	z, e := emulate(t, nil)
	e.Break(emulator.Fault{Kind: emulator.Slow, Only: "GET zones", Delay: 50 * time.Millisecond})
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if _, err := z.identify(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := e.Counters().Calls["GET zones"]; n != 1 {
		t.Errorf("zones were listed %d times, want once", n)
	}
}

func TestZone_oneThatIsNotThereForTheTokenIsNamed(t *testing.T) {
	z, e := emulate(t, func(o *emulator.Options) {
		o.Zones = append(o.Zones, emulator.Zone{Name: "other.test"})
		o.Tokens[0].Zones = []string{"other.test"}
	})
	_, err := z.List(t.Context(), everything)
	said := wantError(t, err, invalidNow)
	if _, of := z.Permissions(t.Context()); of == nil || of.Error() != said.Message || !strings.Contains(said.Message, "zone kura.test: find it: it does not exist for its token") {
		t.Errorf("got %q and of permissions %v", said.Message, of)
	}
	e.SetToken(emulator.Token{Value: "secret", Name: "kurad"})
	list1(t, z, everything)
	z.Account = "another"
	z.is = identity{}
	if _, err := z.List(t.Context(), everything); err == nil || !strings.Contains(err.Error(), "in account another") {
		t.Errorf("of another account: %v", err)
	}
}

func TestZone_eachPermissionThatIsLackingIsNamed(t *testing.T) {
	z, e := emulate(t, nil)
	if missing, err := z.Permissions(t.Context()); err != nil || missing != nil {
		t.Errorf("with all: %q %v", missing, err)
	}
	for has, want := range map[emulator.Permission]string{
		emulator.ZoneRead:      "DNS:Edit (it may not list records)\nLoad Balancers:Edit (it may not list load balancers)\nLoad Balancing: Monitors And Pools:Edit (it may not list pools)",
		emulator.BalancersEdit: "Zone:Read (it may not find the zone)",
	} {
		e.SetToken(emulator.Token{Value: "secret", Permissions: []emulator.Permission{has}})
		missing, err := z.Permissions(t.Context())
		if got := strings.Join(missing, "\n"); err != nil || got != want {
			t.Errorf("with %s alone: %v\n%s\nwant\n%s", has, err, got, want)
		}
	}
	e.SetToken(emulator.Token{Value: "secret", Status: "expired"})
	_, err := z.Permissions(t.Context())
	wantError(t, err, invalidNow)
	e.SetToken(emulator.Token{Value: "secret"})
	e.Break(emulator.Fault{Kind: emulator.Unavailable, Only: "GET pools"})
	_, err = z.Permissions(t.Context())
	wantError(t, err, unreachable)
}
