package cloudflare_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

func TestFault_outagesDoNothing(t *testing.T) {
	for name, test := range map[string]struct {
		fault  cloudflare.Fault
		status int // 0: no answer
		text   string
		code   int
	}{
		"reset":              {cloudflare.Fault{Kind: cloudflare.Reset}, 0, "", 0},
		"503":                {cloudflare.Fault{Kind: cloudflare.Unavailable}, 503, "", 0},
		"520":                {cloudflare.Fault{Kind: cloudflare.Unavailable, Status: 520}, 520, "", 0},
		"HTML":               {cloudflare.Fault{Kind: cloudflare.HTML}, 502, "<!DOCTYPE html>", 0},
		"HTML that says 200": {cloudflare.Fault{Kind: cloudflare.HTML, Status: 200}, 200, "<!DOCTYPE html>", 0},
		"429":                {cloudflare.Fault{Kind: cloudflare.RateLimited}, 429, `"success":false`, 971},
		"10100":              {cloudflare.Fault{Kind: cloudflare.RateLimited, Form: cloudflare.Form10100}, 400, `"success":false`, 10100},
		"10300":              {cloudflare.Fault{Kind: cloudflare.RateLimited, Form: cloudflare.Form10300}, 403, `"success":false`, 10300},
		"unsuccessful":       {cloudflare.Fault{Kind: cloudflare.Unsuccessful}, 200, `{"result":null,"success":false`, 10001},
		"quota":              {cloudflare.Fault{Kind: cloudflare.QuotaExceeded}, 400, `"success":false`, 81045},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, nil)
			r.Break(test.fault)
			a, err := r.try("secret", "POST", zonePath+"/dns_records", record("A", "a", "192.0.2.1"))
			if (err != nil) != (test.status == 0) || a.Status != test.status || !strings.HasPrefix(a.Text, test.text) && !strings.Contains(a.Text, test.text) || a.code() != test.code {
				t.Errorf("%d %q %v, want %+v", a.Status, a.Text, err, test)
			}
			if r.Table() != "" || len(r.History()) != 0 {
				t.Errorf("something was done: %s", r.Table())
			}
			if c := r.Counters(); c.Calls["POST records"] != 1 || c.Statuses[test.status] != 1 {
				t.Errorf("counters %v %v", c, c.Statuses)
			}
			r.Heal()
			r.made(record("A", "a", "192.0.2.1"))
		})
	}
}

func TestFault_loadBalancingIsRefusedOnRequest(t *testing.T) {
	r := start(t, nil)
	id := r.pool(pool("eu", "192.0.2.1", 50, 8))
	body := fields{"name": "a.kura.test", "default_pools": []string{id}, "fallback_pool": id}
	for _, kind := range []cloudflare.FaultKind{cloudflare.QuotaExceeded, cloudflare.NotSubscribed} {
		r.Break(cloudflare.Fault{Kind: kind})
		if a := r.call("POST", poolsPath, pool("us", "192.0.2.1", 50, 8)); a.Status != 400 || a.code() != 1002 {
			t.Errorf("%s of pools: %d %s", kind, a.Status, a.Text)
		}
		if a := r.call("POST", balancersPath, body); a.Status != 403 || a.code() != 1002 {
			t.Errorf("%s of balancers: %d %s", kind, a.Status, a.Text)
		}
		r.Heal()
	}
	made := r.balancer(body)
	r.Break(cloudflare.Fault{Kind: cloudflare.QuotaExceeded})
	if a := r.call("PUT", balancersPath+"/"+made.ID, with(body, fields{"ttl": 60})); !a.Success {
		t.Errorf("what is there already may be changed: %s", a.Text)
	}
}

func TestFault_anAnswerThatDoesNotSayWhatHappened(t *testing.T) {
	for _, fault := range []cloudflare.Fault{{Kind: cloudflare.LostAnswer, Status: 504}, {Kind: cloudflare.Truncated}} {
		r := start(t, nil)
		r.Break(fault)
		a, err := r.try("secret", "POST", zonePath+"/dns_records", record("A", "a", "192.0.2.1"))
		if r.Table() == "" || a.Status != cmp.Or(fault.Status, 200) || a.Success || (err == nil) != (fault.Status != 0) {
			t.Errorf("%s: %d %q %v, and there is: %s", fault.Kind, a.Status, a.Text, err, r.Table())
		}
	}
}

func TestFault_aLostAnswerHadItsEffect(t *testing.T) {
	r := start(t, nil)
	r.Break(cloudflare.Fault{Kind: cloudflare.LostAnswer, Only: "writes", Times: 1})
	if as[[]cloudflare.Record](t, r.call("GET", zonePath+"/dns_records", nil)); r.Table() != "" {
		t.Error("a read has an effect")
	}
	if a, err := r.try("secret", "POST", zonePath+"/dns_records", record("A", "a", "192.0.2.1")); err == nil {
		t.Errorf("the answer arrived: %s", a.Text)
	}
	if r.Table() != "a.kura.test  A 192.0.2.1 ttl=1\n" {
		t.Errorf("the effect did not take place: %s", r.Table())
	}
	if a := r.call("POST", zonePath+"/dns_records", record("A", "a", "192.0.2.1")); a.code() != 81058 {
		t.Errorf("again: %s, want 81058", a.Text)
	}
}

func TestFault_aHangLastsUntilTheCallerGoes(t *testing.T) {
	r := start(t, nil)
	r.Break(cloudflare.Fault{Kind: cloudflare.Hang, Only: "GET zones", Times: 1})
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, "GET", r.URL()+"/zones", nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		ended <- err
	}()
	look, late := time.NewTicker(time.Millisecond), time.After(time.Minute)
	defer look.Stop()
	for r.Counters().Calls["GET zones"] == 0 {
		select {
		case err := <-ended:
			t.Fatalf("the call ended: %v", err)
		case <-late:
			t.Fatal("the call did not arrive in a minute")
		case <-look.C:
		}
	}
	if a := r.call("GET", zonePath, nil); !a.Success {
		t.Errorf("another call: %s", a.Text)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("ended with %v", err)
	}
}

func TestFault_slowAnswersAreRight(t *testing.T) {
	r := start(t, nil)
	r.Break(cloudflare.Fault{Kind: cloudflare.Slow, Delay: 30 * time.Millisecond})
	began := time.Now()
	if a := r.call("GET", "/zones", nil); !a.Success || time.Since(began) < 30*time.Millisecond {
		t.Errorf("%s after %s", a.Text, time.Since(began))
	}
}

func TestFault_listingsLie(t *testing.T) {
	r := start(t, nil)
	var all []cloudflare.Record
	for i := range 250 {
		all = append(all, cloudflare.Record{Name: fmt.Sprintf("h%03d.kura.test", i), Type: "A", Content: "192.0.2.1"})
	}
	if err := r.Seed(cloudflare.ByHand, all...); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[cloudflare.FaultKind]struct{ entries, distinct, total int }{
		"":                      {250, 250, 250},
		cloudflare.EmptyListing: {0, 0, 0},
		cloudflare.HalfListing:  {125, 125, 125},
		cloudflare.ShortListing: {125, 125, 250},
		cloudflare.MovingPages:  {250, 248, 250},
	} {
		r.Heal()
		if kind != "" {
			r.Break(cloudflare.Fault{Kind: kind, Only: "GET records"})
		}
		entries, total, seen := 0, 0, map[string]bool{}
		for page := 1; page <= 3; page++ {
			a := r.call("GET", fmt.Sprintf("%s/dns_records?page=%d", zonePath, page), nil)
			total = a.Info.TotalCount
			for _, one := range as[[]cloudflare.Record](t, a) {
				entries++
				seen[one.Name] = true
			}
		}
		if entries != want.entries || len(seen) != want.distinct || total != want.total {
			t.Errorf("%q: %d entries, %d of them distinct, total_count %d, want %+v", kind, entries, len(seen), total, want)
		}
	}
	r.Heal()
	r.Break(cloudflare.Fault{Kind: cloudflare.AnyOrder})
	whole := func() (names string) {
		for _, one := range as[[]cloudflare.Record](t, r.call("GET", zonePath+"/dns_records?per_page=5000", nil)) {
			names += one.Name[:4]
		}
		return names
	}
	if first, second := whole(), whole(); len(first) != 4*250 || len(second) != 4*250 || first == second {
		t.Error("two answers with one order, or with another number of records")
	}
	r.Heal()
	r.Break(cloudflare.Fault{Kind: cloudflare.EmptyListing})
	for _, path := range []string{"/zones", poolsPath, balancersPath} {
		if a := r.call("GET", path, nil); string(a.Result) != "[]" || a.Info.TotalCount != 0 {
			t.Errorf("%s: %s, want nothing", path, a.Text)
		}
	}
}

func TestList_pagesMoveWhileRecordsChange(t *testing.T) {
	r := start(t, nil)
	for _, name := range []string{"a", "b", "c", "d"} {
		r.made(record("A", name, "192.0.2.1"))
	}
	page := func(n int) (names string) {
		for _, one := range as[[]cloudflare.Record](t, r.call("GET", fmt.Sprintf("%s/dns_records?per_page=2&page=%d", zonePath, n), nil)) {
			names += one.Name[:1]
		}
		return names
	}
	first := page(1)
	r.Delete("a.kura.test", "")
	if second := page(2); first != "ab" || second != "d" {
		t.Errorf("%q then %q: c was on neither page", first, second)
	}
}

func TestSeed_byExternalDNSInEachForm(t *testing.T) {
	for form, want := range map[cloudflare.TXTForm]string{
		cloudflare.TXTNew:  "a-acme.kura.test TXT, acme.kura.test A",
		cloudflare.TXTBoth: "a-acme.kura.test TXT, acme.kura.test A, acme.kura.test TXT",
		cloudflare.TXTOld:  "acme.kura.test A, acme.kura.test TXT",
	} {
		r := start(t, nil)
		if err := r.SeedExternalDNS("prod", "ingress/kura/acme", form, cloudflare.Record{Name: "acme.kura.test", Type: "A", Content: "192.0.2.1"}); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, one := range as[[]cloudflare.Record](t, r.call("GET", zonePath+"/dns_records", nil)) {
			got = append(got, one.Name+" "+one.Type)
			if text := `"heritage=external-dns,external-dns/owner=prod,external-dns/resource=ingress/kura/acme"`; one.Type == "TXT" && one.Content != text {
				t.Errorf("%s: %s", form, one.Content)
			}
		}
		if strings.Join(got, ", ") != want || r.History()[0].By != "external-dns/prod" {
			t.Errorf("%s: %q, want %q", form, got, want)
		}
	}
	r := start(t, nil)
	if err := r.Seed("x", cloudflare.Record{Name: "a.example.test", Type: "A", Content: "192.0.2.1"}); err == nil {
		t.Error("a record in a zone that there is not")
	}
}

func TestHand_editsAndDeletesLikeSomebodyAtTheDashboard(t *testing.T) {
	r := start(t, nil)
	r.made(record("A", "a", "192.0.2.1"))
	r.made(record("TXT", "a", "x"))
	if n := r.Edit("A.kura.test", "A", "192.0.2.9"); n != 1 || r.Records("a.kura.test", "A")[0].Content != "192.0.2.9" {
		t.Errorf("edited %d: %s", n, r.Table())
	}
	if n := r.Delete("a.kura.test", ""); n != 2 || r.Table() != "" {
		t.Errorf("deleted %d: %s", n, r.Table())
	}
	if n := r.Delete("a.kura.test", ""); n != 0 {
		t.Errorf("deleted %d of what is gone", n)
	}
	if last := r.History()[4]; last.By != cloudflare.ByHand || last.After != "" {
		t.Errorf("history: %s", last)
	}
}
