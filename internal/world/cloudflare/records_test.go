package cloudflare_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

func TestRecord_livesThroughItsCalls(t *testing.T) {
	r := start(t, nil)
	made := r.made(map[string]any{"type": "a", "name": "ACME", "content": "192.0.2.1", "comment": "by a test", "ttl": 60.0, "unknown": true})
	if made.ID == "" || made.Name != "acme.kura.test" || made.Type != "A" || made.TTL != 60 || !made.Proxiable || made.Comment != "by a test" || made.CreatedOn.IsZero() {
		t.Errorf("created: %+v", made)
	}
	path := zonePath + "/dns_records/" + made.ID
	patched := as[cloudflare.Record](t, r.call("PATCH", path, map[string]any{"content": "192.0.2.2"}))
	if patched.Content != "192.0.2.2" || patched.TTL != 60 || patched.Comment != "by a test" {
		t.Errorf("PATCH leaves the rest as it was: %+v", patched)
	}
	put := as[cloudflare.Record](t, r.call("PUT", path, record("A", "acme.kura.test", "192.0.2.3")))
	if put.Content != "192.0.2.3" || put.TTL != 1 || put.Comment != "" || put.ID != made.ID {
		t.Errorf("PUT sets the rest to its defaults: %+v", put)
	}
	if got := as[cloudflare.Record](t, r.call("GET", path, nil)); !cmp.Equal(got, put) {
		t.Errorf("GET: %s", cmp.Diff(got, put))
	}
	if got := as[map[string]string](t, r.call("DELETE", path, nil)); got["id"] != made.ID {
		t.Errorf("DELETE answers %v, want the id", got)
	}
	for method, body := range map[string]any{"GET": nil, "DELETE": nil, "PATCH": record("A", "acme", "192.0.2.4"), "PUT": record("A", "acme", "192.0.2.4")} {
		if a := r.call(method, path, body); a.Status != http.StatusNotFound || a.code() != 81044 {
			t.Errorf("%s of what is gone: %d %s, want 404 and 81044", method, a.Status, a.Text)
		}
	}
	var told []string
	for _, change := range r.History() {
		told = append(told, change.String())
	}
	want := []string{
		`kurad: record acme.kura.test: "" -> "A 192.0.2.1 ttl=60 comment=\"by a test\""`,
		`kurad: record acme.kura.test: "A 192.0.2.1 ttl=60 comment=\"by a test\"" -> "A 192.0.2.2 ttl=60 comment=\"by a test\""`,
		`kurad: record acme.kura.test: "A 192.0.2.2 ttl=60 comment=\"by a test\"" -> "A 192.0.2.3 ttl=1"`,
		`kurad: record acme.kura.test: "A 192.0.2.3 ttl=1" -> ""`,
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
}

func TestRecord_rulesAndTheirCodes(t *testing.T) {
	body := func(kind, name, content string, more ...any) map[string]any {
		b := record(kind, name, content)
		for i := 0; i < len(more); i += 2 {
			b[fmt.Sprint(more[i])] = more[i+1]
		}
		return b
	}
	there := []cloudflare.Record{
		{Name: "a.kura.test", Type: "A", Content: "192.0.2.1", TTL: 60},
		{Name: "alias.kura.test", Type: "CNAME", Content: "a.kura.test"},
		{Name: "text.kura.test", Type: "TXT", Content: `"hello"`},
		{Name: "sub.kura.test", Type: "NS", Content: "ns.example.test"},
	}
	for name, test := range map[string]struct {
		body map[string]any
		plan cloudflare.Plan
		code int // 0: it is created
	}{
		"a second address":               {body("A", "a", "192.0.2.2"), "", 0},
		"the same address, another TTL":  {body("A", "a", "192.0.2.1", "ttl", 120), "", 81057},
		"the same record":                {body("A", "a", "192.0.2.1", "ttl", 60), "", 81058},
		"the same text without quotes":   {body("TXT", "text", "hello"), "", 81058},
		"another text":                   {body("TXT", "text", "hello again"), "", 0},
		"CNAME beside A":                 {body("CNAME", "a", "b.kura.test"), "", 81053},
		"CNAME beside TXT":               {body("CNAME", "text", "b.kura.test"), "", 81053},
		"CNAME beside CNAME":             {body("CNAME", "alias", "b.kura.test"), "", 81053},
		"A beside CNAME":                 {body("A", "alias", "192.0.2.1"), "", 81054},
		"TXT beside CNAME":               {body("TXT", "alias", "x"), "", 81054},
		"A beside NS":                    {body("A", "sub", "192.0.2.1"), "", 81056},
		"a name in another case":         {body("CNAME", "A.KURA.TEST", "b.kura.test"), "", 81053},
		"the zone itself":                {body("A", "@", "192.0.2.1"), "", 0},
		"a name that is none":            {body("A", "a..b", "192.0.2.1"), "", 9000},
		"a label of 64":                  {body("A", strings.Repeat("a", 64), "192.0.2.1"), "", 9000},
		"a wildcard":                     {body("A", "*.b", "192.0.2.1"), "", 0},
		"no IPv4 address":                {body("A", "b", "2001:db8::1"), "", 9005},
		"no IPv6 address":                {body("AAAA", "b", "192.0.2.1"), "", 9006},
		"an IPv6 address":                {body("AAAA", "b", "2001:0db8::0001"), "", 0},
		"no host":                        {body("CNAME", "b", "not a host"), "", 9007},
		"an alias of itself":             {body("CNAME", "b", "b.kura.test"), "", 9039},
		"an empty text":                  {body("TXT", "b", ""), "", 1004},
		"a type nobody knows":            {body("HINFO", "b", "x"), "", 1004},
		"a comment of 101":               {body("A", "b", "192.0.2.1", "comment", strings.Repeat("x", 101)), "", 1004},
		"a long comment of who pays":     {body("A", "b", "192.0.2.1", "comment", strings.Repeat("x", 500)), cloudflare.PlanPro, 0},
		"TTL 1":                          {body("A", "b", "192.0.2.1", "ttl", 1), "", 0},
		"TTL 59":                         {body("A", "b", "192.0.2.1", "ttl", 59), "", 9021},
		"TTL 30 for those who pay":       {body("A", "b", "192.0.2.1", "ttl", 30), cloudflare.PlanEnterprise, 0},
		"TTL 29 for those who pay":       {body("A", "b", "192.0.2.1", "ttl", 29), cloudflare.PlanEnterprise, 9021},
		"TTL of a day":                   {body("A", "b", "192.0.2.1", "ttl", 86400), "", 0},
		"TTL of more":                    {body("A", "b", "192.0.2.1", "ttl", 86401), "", 9021},
		"proxied":                        {body("A", "b", "192.0.2.1", "proxied", true, "ttl", 60), "", 0},
		"proxied text":                   {body("TXT", "b", "x", "proxied", true), "", 9004},
		"proxied to this very machine":   {body("A", "b", "127.0.0.1", "proxied", true), "", 9003},
		"explicitly not proxied":         {body("TXT", "b", "x", "proxied", false), "", 0},
		"a body that is no object":       {nil, "", 9207},
		"a name that is that of a token": {body("A", "a-a", "192.0.2.1"), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, func(o *cloudflare.Options) { o.Zones[0].Plan = test.plan })
			if err := r.Seed(cloudflare.ByHand, there...); err != nil {
				t.Fatal(err)
			}
			before := r.Table()
			a := r.call("POST", zonePath+"/dns_records", test.body)
			if a.code() != test.code || a.Success != (test.code == 0) {
				t.Fatalf("%d %s, want code %d", a.Status, a.Text, test.code)
			}
			if test.code != 0 && (a.Status != http.StatusBadRequest || string(a.Result) != "null" || r.Table() != before) {
				t.Errorf("%d %s, want 400, no result, and nothing done:\n%s", a.Status, a.Text, r.Table())
			}
		})
	}
}

func TestBatch_isOneTransactionInItsOrder(t *testing.T) {
	r := start(t, nil)
	old := r.made(record("A", "acme", "192.0.2.1"))
	edited := r.made(record("A", "b", "192.0.2.1"))
	whole := r.made(map[string]any{"type": "A", "name": "c", "content": "192.0.2.1", "comment": "goes"})
	r.ResetCounters()
	type list = []map[string]any
	result := as[map[string][]cloudflare.Record](t, r.call("POST", zonePath+"/dns_records/batch", map[string]any{
		// The CNAME can only be where the address was if deletes come first.
		"posts":   list{record("CNAME", "acme", "b.kura.test"), record("TXT", "cname-acme", "x")},
		"deletes": list{{"id": old.ID}},
		"patches": list{{"id": edited.ID, "name": "moved.kura.test"}},
		"puts":    list{{"id": whole.ID, "type": "A", "name": "c", "content": "192.0.2.9"}},
	}))
	if len(result["posts"]) != 2 || len(result["deletes"]) != 1 || result["patches"][0].Name != "moved.kura.test" || result["puts"][0].Comment != "" {
		t.Errorf("result: %+v", result)
	}
	want := "acme.kura.test        CNAME b.kura.test ttl=1\nc.kura.test           A 192.0.2.9 ttl=1\ncname-acme.kura.test  TXT x ttl=1\nmoved.kura.test       A 192.0.2.1 ttl=1\n"
	if got := r.Table(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	changes := len(r.History())

	// One bad operation, the last one: nothing is done, and nothing says which it was.
	a := r.call("POST", zonePath+"/dns_records/batch", map[string]any{
		"posts": list{record("A", "good", "192.0.2.1"), record("A", "acme", "192.0.2.1")}, "deletes": list{{"id": edited.ID}},
	})
	if a.Status != http.StatusBadRequest || a.code() != 81054 || strings.Contains(a.Text, "acme") || len(a.Errors) != 1 {
		t.Errorf("a bad batch: %d %s, want 400 and 81054 alone", a.Status, a.Text)
	}
	if a := r.call("POST", zonePath+"/dns_records/batch", map[string]any{"deletes": list{{"id": edited.ID}, {"id": edited.ID}}}); a.code() != 81044 {
		t.Errorf("deleting twice: %s, want 81044", a.Text)
	}
	if got := r.Table(); got != want || len(r.History()) != changes {
		t.Errorf("after two bad batches got:\n%swant:\n%s", got, want)
	}
	if c := r.Counters(); c.Calls["POST batch"] != 3 || c.Batched != 5+3+2 {
		t.Errorf("counters %v with %d operations, want 3 batches with 10", c, c.Batched)
	}
}

// The body is that of external-dns' provider (cloudflare_batch.go): fields without a value are there.
func TestBatch_asExternalDNSSendsIt(t *testing.T) {
	r := start(t, nil)
	old := r.made(record("A", "old", "192.0.2.1"))
	body := func(kind, name, content string) map[string]any {
		return map[string]any{"type": kind, "name": name, "content": content, "ttl": 1.0, "proxied": false, "priority": 0.0, "comment": "", "tags": nil}
	}
	update := body("A", "old.kura.test", "192.0.2.2")
	update["id"] = old.ID
	text := `"heritage=external-dns,external-dns/owner=prod,external-dns/resource=ingress/kura/acme"`
	result := as[map[string][]cloudflare.Record](t, r.call("POST", zonePath+"/dns_records/batch", map[string]any{
		"puts": []any{update}, "posts": []any{body("A", "acme.kura.test", "192.0.2.1"), body("TXT", "a-acme.kura.test", text)},
	}))
	if posts := result["posts"]; len(posts) != 2 || posts[1].Content != text || posts[0].Tags == nil || posts[0].Comment != "" || result["puts"][0].Content != "192.0.2.2" {
		t.Errorf("%+v", result)
	}
}

func TestBatch_hasALimitByPlan(t *testing.T) {
	for plan, most := range map[cloudflare.Plan]int{cloudflare.PlanFree: 200, cloudflare.PlanPro: 3500} {
		r := start(t, func(o *cloudflare.Options) { o.Zones[0].Plan = plan })
		var posts []map[string]any
		for i := range most + 1 {
			posts = append(posts, record("A", fmt.Sprintf("h%d", i), "192.0.2.1"))
		}
		if a := r.call("POST", zonePath+"/dns_records/batch", map[string]any{"posts": posts}); a.Success || r.Table() != "" {
			t.Errorf("%s: %d operations: %.200s, want a refusal", plan, most+1, a.Text)
		}
		if a := r.call("POST", zonePath+"/dns_records/batch", map[string]any{"posts": posts[:most]}); !a.Success {
			t.Errorf("%s: %d operations: %.200s, want them done", plan, most, a.Text)
		}
	}
}

func TestList_pagesAndFilters(t *testing.T) {
	r := start(t, nil)
	var records []cloudflare.Record
	for i := range 250 {
		records = append(records, cloudflare.Record{Name: fmt.Sprintf("h%03d.kura.test", i), Type: "A", Content: "192.0.2.1"})
	}
	records = append(records, cloudflare.Record{Name: "h000.kura.test", Type: "TXT", Content: "Hello", Comment: "Of a test"})
	if err := r.Seed(cloudflare.ByHand, records...); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string][5]int{ // page, per_page, count, total_count, total_pages
		"":                                {1, 100, 100, 251, 3},
		"?page=3":                         {3, 100, 51, 251, 3},
		"?page=4":                         {4, 100, 0, 251, 3},
		"?per_page=5000":                  {1, 5000, 251, 251, 1},
		"?per_page=9999":                  {1, 5000, 251, 251, 1},
		"?name=h000.kura.test":            {1, 100, 2, 2, 1},
		"?name.exact=H000.kura.test":      {1, 100, 2, 2, 1},
		"?name.startswith=h00&type=A":     {1, 100, 10, 10, 1},
		"?name.endswith=9.kura.test":      {1, 100, 25, 25, 1},
		"?content.contains=ell":           {1, 100, 1, 1, 1},
		"?comment.exact=of%20a%20test":    {1, 100, 1, 1, 1},
		"?type=TXT&name=h001.kura.test":   {1, 100, 0, 0, 0},
		"?type=TXT&name=h1&match=any":     {1, 100, 1, 1, 1},
		"?proxied=true":                   {1, 100, 0, 0, 0},
		"?search=x&tag=y&order=name":      {1, 100, 100, 251, 3},
		"?include_shadow_metadata=false":  {1, 100, 100, 251, 3},
		"?content=192.0.2.1&per_page=250": {1, 250, 250, 250, 1},
	} {
		a := r.call("GET", zonePath+"/dns_records"+query, nil)
		got := [5]int{a.Info.Page, a.Info.PerPage, a.Info.Count, a.Info.TotalCount, a.Info.TotalPages}
		if n := len(as[[]cloudflare.Record](t, a)); got != want || n != want[2] {
			t.Errorf("%s: %v with %d records, want %v", query, got, n, want)
		}
	}
	if a := r.call("GET", zonePath+"/dns_records?page=0", nil); a.Status != http.StatusBadRequest {
		t.Errorf("page 0: %d %s, want 400", a.Status, a.Text)
	}
}

func TestRecord_quotaOfTheZone(t *testing.T) {
	r := start(t, func(o *cloudflare.Options) { o.Zones[0].Quota.Records = 1 })
	made := r.made(record("A", "a", "192.0.2.1"))
	if a := r.call("POST", zonePath+"/dns_records", record("A", "b", "192.0.2.1")); a.code() != 81045 {
		t.Errorf("one too many: %s, want 81045", a.Text)
	}
	r.call("DELETE", zonePath+"/dns_records/"+made.ID, nil)
	r.made(record("A", "b", "192.0.2.1"))
}

func TestD4_theTTLOfRecordsOfOursIsTakenOnEveryPlan(t *testing.T) {
	r := start(t, nil)
	for _, one := range []map[string]any{record("A", "a", "192.0.2.1"), record("TXT", "a-a", "x")} {
		one["ttl"] = fleet.RecordTTL
		r.made(one)
	}
}
