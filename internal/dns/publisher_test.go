package dns

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func (z *rude) publisher() *Publisher {
	return &Publisher{Zone: Zone{Domain: "kura.test"}, Environment: staging(z.t), API: z}
}

func account(i int) fleet.ServerKey {
	return fleet.ServerKey{Account: fmt.Sprintf("a%04d", i), Region: "eu"}
}

func hostOf(i int) string { return fmt.Sprintf("s%04d-eu-staging.kura.test", i) }

func wanted(i int, content string) fleet.Effect {
	e := fleet.Effect{Kind: fleet.TaskPublish, Name: hostOf(i), DNS: fleet.DNSChange{Owner: "kura-staging", Resource: fleet.ResourceOf("staging", account(i)), Type: TypeA, Content: content}}
	switch {
	case strings.HasSuffix(content, ".test"):
		e.DNS.Type = TypeCNAME
	case strings.Contains(content, ":"):
		e.DNS.Type = TypeAAAA
	}
	return e
}

func unwanted(i int) fleet.Effect {
	e := wanted(i, "")
	e.Kind, e.DNS.Type = fleet.TaskWithdraw, ""
	return e
}

// expect compares what a task was answered; text is a part of its message.
func expect(t *testing.T, is fleet.Outcome, class fleet.Class, reason fleet.Reason, text string) {
	t.Helper()
	if is.Class != class || is.Reason != reason || !strings.Contains(is.Message, text) {
		t.Errorf("answered %+v, want %s %s %q", is, class, reason, text)
	}
}

func expectOK(t *testing.T, all []fleet.Outcome) {
	t.Helper()
	for i, o := range all {
		if o.Class != fleet.ClassOK || !o.Answered {
			t.Errorf("task %d answered %+v", i, o)
		}
	}
}

func TestD4_aHostIsPublishedCorrectedAndWithdrawn(t *testing.T) {
	z := newRude(t)
	p := z.publisher()
	host := hostOf(1)
	run := func(e fleet.Effect, batches int) {
		t.Helper()
		was := z.batches
		expectOK(t, p.Run(t.Context(), []fleet.Effect{e}))
		if z.batches-was != batches {
			t.Errorf("%s took %d batches, want %d", e.Describe(), z.batches-was, batches)
		}
	}
	is := func(want string) {
		t.Helper()
		if got := z.table(); got != want {
			t.Errorf("there is\n%s\nwant\n%s", got, want)
		}
	}
	txt := func(kind string) string {
		return "TXT " + kind + "-" + host + " heritage=external-dns,external-dns/owner=kura-staging,external-dns/resource=kura-staging/eu/a0001"
	}
	run(wanted(1, "192.0.2.1"), 1)
	is("A " + host + " 192.0.2.1\n" + txt("a"))
	run(wanted(1, "192.0.2.1"), 0)
	if c := z.find("A", host)[0].Comment; c != "managed by kurad staging a0001/eu" {
		t.Errorf("comment %q", c)
	}
	run(wanted(1, "192.0.2.2"), 1)
	is("A " + host + " 192.0.2.2\n" + txt("a"))
	for id, r := range z.records { // by hand
		if r.Type == "A" {
			r.Content, r.Proxied, r.TTL = "192.0.2.66", true, 1
			z.records[id] = r
		}
	}
	run(wanted(1, "192.0.2.2"), 1)
	is("A " + host + " 192.0.2.2\n" + txt("a"))
	for id, r := range z.records { // by hand, where only the form differs
		if r.Type == "A" {
			r.Proxied = true
			z.records[id] = r
		}
	}
	run(wanted(1, "192.0.2.2"), 1)
	if r := z.find("A", host)[0]; r.Proxied || r.TTL != fleet.RecordTTL {
		t.Errorf("there is %+v", r)
	}
	extra := z.seed("A", host, "192.0.2.77")
	delete(z.others, extra) // beside ours it is ours
	run(wanted(1, "192.0.2.2"), 1)
	is("A " + host + " 192.0.2.2\n" + txt("a"))
	run(wanted(1, "lb.example.test"), 1)
	is("CNAME " + host + " lb.example.test\n" + txt("cname"))
	run(wanted(1, "2001:db8::1"), 1)
	is("AAAA " + host + " 2001:db8::1\n" + txt("aaaa"))
	run(wanted(1, "2001:db8:0:0::1"), 0)
	run(unwanted(1), 1)
	is("")
	run(unwanted(1), 0)
}

// D4: whatever stands at a name that is not ours is left as it is, by both tasks.
func TestD4_whatIsNotOursIsNeverTouched(t *testing.T) {
	host := hostOf(1)
	for name, c := range map[string]struct {
		seed     func(z *rude)
		text     string
		withdraw bool // is refused too, for there is something of ours
	}{
		"another's":    {func(z *rude) { z.seed("A", host, "192.0.2.9"); z.seedTXT("a-"+host, "prod") }, `belongs to "prod"`, false},
		"only its TXT": {func(z *rude) { z.seedTXT("a-"+host, "prod") }, `belongs to "prod"`, false},
		"the old form": {func(z *rude) { z.seed("A", host, "192.0.2.9"); z.seedTXT(host, "prod") }, `belongs to "prod"`, false},
		"nobody's":     {func(z *rude) { z.seed("CNAME", host, "elsewhere.test") }, "no ownership record claims", false},
		"encrypted":    {func(z *rude) { z.seed("A", host, "192.0.2.9"); z.seed("TXT", "a-"+host, strings.Repeat("QUJD", 20)) }, "encrypted", false},
		"another's, of one of ours": {func(z *rude) {
			z.seed("A", host, "192.0.2.9")
			z.seedTXT("a-"+host, "prod")
			z.seed("TXT", "a-"+host, TXT{Owner: "kura-staging", Resource: "kura-staging/eu/a0001"}.String())
		}, "claimed by", true},
		"another environment's with our owner id": {func(z *rude) {
			z.seed("A", host, "192.0.2.9")
			z.seed("TXT", "a-"+host, TXT{Owner: "kura-staging", Resource: "kura-production/eu/a0001"}.String())
		}, "same owner id", false},
	} {
		t.Run(name, func(t *testing.T) {
			z := newRude(t)
			c.seed(z)
			before := z.table()
			answers := z.publisher().Run(t.Context(), []fleet.Effect{wanted(1, "192.0.2.1"), wanted(2, "192.0.2.2")})
			expect(t, answers[0], fleet.ClassRefused, fleet.ReasonForeignOwner, c.text)
			expectOK(t, answers[1:])
			answers = z.publisher().Run(t.Context(), []fleet.Effect{unwanted(1), unwanted(2)})
			if c.withdraw {
				expect(t, answers[0], fleet.ClassRefused, fleet.ReasonForeignOwner, c.text)
			} else {
				expectOK(t, answers)
			}
			if got := z.table(); got != before {
				t.Errorf("there is\n%s\nwant\n%s", got, before)
			}
		})
	}
}

// A host that moved to another server of ours is its own: whoever comes last with a withdrawal
// leaves it, in one call as in two.
func TestD4_aHostOfAnotherServerOfOursIsLeft(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		z := newRude(t)
		p := z.publisher()
		expectOK(t, p.Run(t.Context(), []fleet.Effect{wanted(1, "192.0.2.1")}))
		next := wanted(2, "192.0.2.2")
		next.Name = hostOf(1)
		both := []fleet.Effect{unwanted(1), next}
		expectOK(t, p.Run(t.Context(), []fleet.Effect{both[order[0]], both[order[1]]}))
		if is := z.find("A", hostOf(1)); len(is) != 1 || is[0].Content != "192.0.2.2" {
			t.Errorf("order %v: there is\n%s", order, z.table())
		}
		before := z.table()
		expectOK(t, p.Run(t.Context(), []fleet.Effect{unwanted(1)}))
		if z.table() != before {
			t.Error("a host of another server was withdrawn")
		}
		old := z.seed("TXT", hostOf(1), TXT{Owner: "kura-staging", Resource: unwanted(1).DNS.Resource}.String())
		delete(z.others, old) // one of ours, of the old form
		expectOK(t, p.Run(t.Context(), []fleet.Effect{unwanted(1)}))
		if is := z.find("A", hostOf(1)); len(is) != 1 {
			t.Errorf("the record of another server was withdrawn; there is\n%s", z.table())
		}
	}
}

func TestD7_500changesAreFewBatches(t *testing.T) {
	z := newRude(t)
	p := z.publisher()
	var tasks []fleet.Effect
	for i := range 500 {
		tasks = append(tasks, wanted(i, fmt.Sprintf("10.0.%d.%d", i/250, i%250)))
	}
	expectOK(t, p.Run(t.Context(), tasks))
	if z.batches != 5 || z.largest > 200 || z.lists != 2 || len(z.records) != 1000 {
		t.Errorf("%d batches of at most %d, %d listings, %d records", z.batches, z.largest, z.lists, len(z.records))
	}
	z.batches, z.lists = 0, 0
	tasks[321].DNS.Content = "bad"
	z.bad = "bad"
	for i := range tasks {
		tasks[i].DNS.Content = strings.Replace(tasks[i].DNS.Content, "10.", "11.", 1)
	}
	answers := p.Run(t.Context(), tasks)
	for i, o := range answers {
		if i == 321 {
			expect(t, o, fleet.ClassRefused, fleet.ReasonInvalid, "9005 Content for A record is invalid")
		} else if is := z.find("A", hostOf(i)); o.Class != fleet.ClassOK || is[0].Content[:3] != "11." {
			t.Errorf("task %d: %+v, and there is %v", i, o, is)
		}
	}
	if z.batches > 3+2*9 || z.lists != 1 {
		t.Errorf("%d batches, %d listings", z.batches, z.lists)
	}
}

// Whoever declares what no zone takes does not spend what the zone's token may call.
func TestG8_badChangesCostFewCalls(t *testing.T) {
	z := newRude(t)
	z.bad = "kura"
	var tasks []fleet.Effect
	for i := range 500 {
		tasks = append(tasks, wanted(i, "192.0.2.1"))
	}
	for i, o := range z.publisher().Run(t.Context(), tasks) {
		if o.Class == fleet.ClassOK || o.Reason != fleet.ReasonInvalid {
			t.Errorf("task %d answered %+v", i, o)
		}
	}
	if z.batches > 100 {
		t.Errorf("%d batches", z.batches)
	}
}

func TestD5_aZoneThatIsFullTakesWhatItCan(t *testing.T) {
	z := newRude(t)
	p := z.publisher()
	var tasks []fleet.Effect
	for i := range 100 {
		tasks = append(tasks, wanted(i, "192.0.2.1"))
	}
	expectOK(t, p.Run(t.Context(), tasks[:30]))
	z.most, z.batches = 120, 0
	for i := range 10 {
		tasks[i] = unwanted(i)
	}
	fit := 0
	for i, o := range p.Run(t.Context(), tasks) {
		switch o.Class {
		case fleet.ClassOK:
			fit++
		case fleet.ClassRefused:
			expect(t, o, fleet.ClassRefused, fleet.ReasonQuotaExceeded, "81045")
		case fleet.ClassTransient:
			t.Errorf("task %d answered %+v", i, o)
		}
	}
	if fit != 10+20+40 || len(z.records) != 120 || z.batches > 20 {
		t.Errorf("%d tasks succeeded, there are %d records, after %d batches", fit, len(z.records), z.batches)
	}
}

// Rate limit, outage and a token that may not are answers to all, at the cost of one call.
func TestD2_whatIsWrongWithAllIsAskedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		err     Error
		writing bool
	}{
		"listing":    {Error{Class: fleet.ClassTransient, Reason: fleet.ReasonRateLimited, After: time.Minute, Answered: true}, false},
		"limited":    {Error{Class: fleet.ClassTransient, Reason: fleet.ReasonRateLimited, After: time.Minute, Answered: true}, true},
		"outage":     {Error{Class: fleet.ClassTransient, Reason: fleet.ReasonZoneUnreachable}, true},
		"permission": {Error{Class: fleet.ClassRefused, Reason: fleet.ReasonZoneForbidden, Answered: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			z := newRude(t)
			if z.down = &c.err; c.writing {
				z.down, z.fail = nil, func(int) (error, bool) { return &c.err, false }
			}
			var tasks []fleet.Effect
			for i := range 300 {
				tasks = append(tasks, wanted(i, "192.0.2.1"))
			}
			sent := 0
			for i, o := range z.publisher().Run(t.Context(), tasks) {
				if o.Class != c.err.Class || o.Reason != c.err.Reason || o.After.Std() != c.err.After {
					t.Fatalf("task %d answered %+v", i, o)
				}
				if !o.Answered {
					sent++
				}
			}
			if z.batches > 1 || z.lists != 1 || sent > 100 {
				t.Errorf("%d batches, %d listings, %d tasks possibly on their way", z.batches, z.lists, sent)
			}
		})
	}
}

// Another writes between the listing and the batch.
func TestD4_whatAnotherWritesInBetweenIsItsOwn(t *testing.T) {
	host := hostOf(1)
	txt := func(z *rude) { z.seedTXT("a-"+host, "prod") }
	for name, c := range map[string]struct {
		ours    bool // it is published already, elsewhere
		writes  func(z *rude)
		withhim bool // it wins
	}{
		"its TXT beside ours":      {false, txt, true},
		"its record and TXT":       {false, func(z *rude) { z.seed("A", host, "192.0.2.9"); txt(z) }, true},
		"the very record":          {false, func(z *rude) { z.seed("A", host, "192.0.2.1"); txt(z) }, true},
		"a CNAME":                  {false, func(z *rude) { z.seed("CNAME", host, "x.test"); z.seedTXT("cname-"+host, "prod") }, true},
		"ours replaced by its own": {true, func(z *rude) { z.gone(host); z.seed("A", host, "192.0.2.9"); txt(z) }, true},
		"ours deleted":             {true, func(z *rude) { z.gone(host) }, false},
		"ours deleted and made again": {true, func(z *rude) {
			z.gone(host)
			expectOK(t, z.publisher().Run(t.Context(), []fleet.Effect{wanted(1, "192.0.2.5")}))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			z := newRude(t)
			if c.ours {
				expectOK(t, z.publisher().Run(t.Context(), []fleet.Effect{wanted(1, "192.0.2.7")}))
			}
			first := true
			z.between = func(int) {
				if first {
					first = false
					c.writes(z)
				}
			}
			answers := z.publisher().Run(t.Context(), []fleet.Effect{wanted(1, "192.0.2.1"), wanted(2, "192.0.2.2")})
			expectOK(t, answers[1:])
			if !c.withhim {
				expectOK(t, answers)
				return
			}
			expect(t, answers[0], fleet.ClassRefused, fleet.ReasonForeignOwner, "prod")
			for id, r := range z.records {
				if !z.others[id] && strings.HasSuffix(r.Name, host) {
					t.Errorf("of ours there is left %+v", r)
				}
			}
		})
	}
}

// Its ownership record may be in a form that the zone was not told of: then ours is the only one that is read.
func TestD4_whatAnotherWritesInBetweenIsItsOwnInEveryForm(t *testing.T) {
	for _, txt := range []string{"theirs-a-", "a-theirs.", ""} {
		z := newRude(t)
		host := hostOf(1)
		z.between = func(int) {
			z.between = nil
			z.seed("A", host, "192.0.2.9")
			if txt != "" {
				z.seedTXT(txt+host, "prod")
			}
		}
		p := z.publisher()
		expect(t, p.Run(t.Context(), []fleet.Effect{wanted(1, "192.0.2.1")})[0], fleet.ClassRefused, fleet.ReasonForeignOwner, "was taken back")
		expect(t, p.Run(t.Context(), []fleet.Effect{wanted(1, "192.0.2.1")})[0], fleet.ClassRefused, fleet.ReasonForeignOwner, "")
		expectOK(t, p.Run(t.Context(), []fleet.Effect{unwanted(1)}))
		for id, r := range z.records {
			if !z.others[id] {
				t.Errorf("TXT %q: of ours there is left %+v", txt, r)
			}
		}
	}
}

// What no listing of ours shows stands in the way for ever: the API's own words are the answer.
func TestD4_whatStandsInTheWayUnseenIsSaid(t *testing.T) {
	z := newRude(t)
	z.seed("MX", hostOf(1), "mail.test")
	answers := z.publisher().Run(t.Context(), []fleet.Effect{wanted(1, "lb.example.test"), wanted(2, "lb.example.test")})
	expect(t, answers[0], fleet.ClassRefused, fleet.ReasonInvalid, "81053")
	expectOK(t, answers[1:])
}

// A kurad that is killed after any of its calls, with or without its effect, comes to the same.
func TestS5_aKilledPublisherConverges(t *testing.T) {
	for _, lands := range []bool{true, false} {
		for stop := 1; ; stop++ {
			z := newRude(t)
			z.seed("A", hostOf(7), "192.0.2.9")
			z.seedTXT("a-"+hostOf(7), "prod")
			other := z.table()
			p := z.publisher()
			p.Zone.BatchLimit = 3
			rounds := [][]fleet.Effect{
				{wanted(1, "192.0.2.1"), wanted(2, "192.0.2.1"), wanted(7, "192.0.2.1")},
				{wanted(1, "lb.example.test"), wanted(2, "192.0.2.2")},
				{unwanted(1), wanted(3, "192.0.2.1")},
				{unwanted(1), unwanted(2), unwanted(3), unwanted(7)},
			}
			killed := false
			z.fail = func(write int) (error, bool) {
				if write == stop {
					killed = true
					z.down = errLost // and whatever the process would do then
					return errLost, lands
				}
				return nil, false
			}
			for _, tasks := range rounds {
				answers := p.Run(t.Context(), tasks)
				if z.down != nil {
					z.down, p = nil, z.publisher()
					answers = p.Run(t.Context(), tasks)
				}
				for i, o := range answers {
					if tasks[i].Name != hostOf(7) && o.Class != fleet.ClassOK {
						t.Errorf("killed after %d (%v): %s answered %+v", stop, lands, tasks[i].Describe(), o)
					}
				}
			}
			if z.table() != other {
				t.Errorf("killed after %d (%v): there is\n%s\nwant\n%s", stop, lands, z.table(), other)
			}
			if !killed {
				break
			}
		}
	}
}

// A host may be as long as a name can be, and the name of its ownership record is longer.
func TestD4_aHostTooLongForItsOwnershipRecordIsRefused(t *testing.T) {
	z := newRude(t)
	long := wanted(1, "192.0.2.1")
	long.Name = strings.Repeat("a", 62) + ".kura.test"
	answers := z.publisher().Run(t.Context(), []fleet.Effect{long, wanted(2, "192.0.2.1")})
	expect(t, answers[0], fleet.ClassRefused, fleet.ReasonInvalid, "cannot have an ownership record")
	expectOK(t, answers[1:])
	if z.batches != 1 {
		t.Errorf("%d batches", z.batches)
	}
	p := z.publisher()
	p.Zone.TXT.Prefix = "%{record_type}."
	expectOK(t, p.Run(t.Context(), []fleet.Effect{long}))
}

// An ownership record whose own record somebody deleted reads like one, with an unknown prefix, of each host above its
// name: zones are often those of a whole domain, and what stands at the host above is somebody's website.
func TestD4_whatIsAboveAHostOfOursIsNotOurs(t *testing.T) {
	above, ours := "shop.kura.test", fleet.ResourceOf("staging", account(1))
	z := newRude(t)
	z.seed(TypeA, above, "192.0.2.80")
	left := fleet.DNSRecord{ID: z.id(), Type: "TXT", Name: "cname-s1." + above, Content: TXT{Owner: "kura-staging", Resource: ours}.String(), TTL: 60}
	z.records[left.ID] = left
	l, _ := z.List(t.Context(), Parts{Records: true})
	if got := NewIndex(l, Zone{Domain: "kura.test"}, staging(t)).Of(ours); !slices.Equal(got, []string{"s1." + above}) {
		t.Errorf("hosts of the server are %q", got)
	}
	withdraw, publish := unwanted(1), wanted(1, "192.0.2.1")
	withdraw.Name, publish.Name = above, above
	p := z.publisher()
	expectOK(t, p.Run(t.Context(), []fleet.Effect{withdraw}))
	expect(t, p.Run(t.Context(), []fleet.Effect{publish})[0], fleet.ClassRefused, fleet.ReasonForeignOwner, "txt-prefix")
	got, err := z.byHand().Prune(t.Context(), fleet.PruneRequest{}, false)
	if err != nil || len(got.Items) != 1 || got.Items[0].Host != "s1."+above {
		t.Errorf("a prune deleted %+v, %v", got, err)
	}
	if len(z.find(TypeA, above)) != 1 {
		t.Error("the website is gone")
	}
}
