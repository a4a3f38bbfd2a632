package cloudflare_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"

	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

var poolsPath, balancersPath = "/accounts/" + cloudflare.AccountID("main") + "/load_balancers/pools", zonePath + "/load_balancers"

type fields = map[string]any

// pool is the body of a pool of one origin, with its place.
func pool(name, address string, latitude, longitude float64) fields {
	return fields{"name": name, "latitude": latitude, "longitude": longitude, "origins": []fields{{"name": "o", "address": address}}}
}

func with(body fields, more fields) fields {
	all := maps.Clone(body)
	maps.Copy(all, more)
	return all
}

func (r *rig) pool(body fields) string {
	r.t.Helper()
	return as[cloudflare.Pool](r.t, r.call("POST", poolsPath, body)).ID
}

func (r *rig) balancer(body fields) cloudflare.Balancer {
	r.t.Helper()
	return as[cloudflare.Balancer](r.t, r.call("POST", balancersPath, body))
}

func TestPool_livesThroughItsCalls(t *testing.T) {
	r := start(t, nil)
	id := r.pool(with(pool("eu", "eu.kura.test", 50, 8), fields{"description": "of a test", "origins": []fields{
		{"name": "o", "address": "eu.kura.test", "header": fields{"Host": []string{"eu.kura.test"}}},
	}}))
	path := poolsPath + "/" + id
	patched := as[cloudflare.Pool](t, r.call("PATCH", path, fields{"longitude": 9.0}))
	if *patched.Longitude != 9 || *patched.Latitude != 50 || patched.Origins[0].Header["Host"][0] != "eu.kura.test" || patched.ID != id {
		t.Errorf("PATCH leaves the rest as it was: %+v", patched)
	}
	put := as[cloudflare.Pool](t, r.call("PUT", path, fields{"name": "eu", "enabled": false, "origins": []fields{{"address": "192.0.2.1", "enabled": false}}}))
	if put.Latitude != nil || put.Description != "" || put.Enabled || put.Origins[0].Header != nil || put.MinimumOrigins != 1 {
		t.Errorf("PUT sets the rest to its defaults: %+v", put)
	}
	if got := as[cloudflare.Pool](t, r.call("GET", path, nil)); !cmp.Equal(got, put) {
		t.Errorf("GET: %s", cmp.Diff(got, put))
	}
	if all := as[[]cloudflare.Pool](t, r.call("GET", poolsPath, nil)); len(all) != 1 || all[0].ID != id {
		t.Errorf("list: %+v", all)
	}
	as[map[string]string](t, r.call("DELETE", path, nil))
	for method, body := range map[string]any{"GET": nil, "DELETE": nil, "PATCH": fields{}, "PUT": fields{}} {
		if a := r.call(method, path, body); a.Status != http.StatusNotFound || a.code() != 1001 {
			t.Errorf("%s of what is gone: %d %s, want 404 and 1001", method, a.Status, a.Text)
		}
	}
	var told []string
	for _, change := range r.History() {
		told = append(told, change.String())
	}
	if want := `kurad: pool eu: "" -> "eu.kura.test Host=eu.kura.test at 50,8 \"of a test\""`; len(told) != 4 || told[0] != want {
		t.Errorf("history %q, want 4 changes, first %s", told, want)
	}
}

func TestPool_rulesAndTheirCodes(t *testing.T) {
	r := start(t, nil)
	r.pool(pool("there", "192.0.2.1", 0, 0))
	host := func(headers fields) fields {
		return fields{"origins": []fields{{"address": "192.0.2.1", "header": headers}}}
	}
	for name, test := range map[string]struct {
		more fields
		code int
	}{
		"a name that is taken":    {fields{"name": "there"}, 1003},
		"a dot in the name":       {fields{"name": "a.b"}, 1002},
		"no name":                 {fields{"name": ""}, 1002},
		"no origin":               {fields{"origins": []fields{}}, 1002},
		"an origin twice":         {fields{"origins": []fields{{"address": "192.0.2.1"}, {"address": "192.0.2.1"}}}, 1002},
		"no address":              {fields{"origins": []fields{{"name": "o"}}}, 1002},
		"two hosts":               {host(fields{"Host": []string{"a.kura.test", "b.kura.test"}}), 1002},
		"another header":          {host(fields{"Host": []string{"a.kura.test"}, "X": []string{"y"}}), 1002},
		"a host of somebody else": {host(fields{"Host": []string{"a.example.test"}}), 1002},
		"half a place":            {fields{"longitude": nil}, 1002},
		"no place on earth":       {fields{"latitude": 91.0}, 1002},
		"text for a number":       {fields{"latitude": "north"}, 1002},
	} {
		a := r.call("POST", poolsPath, with(pool("new", "192.0.2.1", 0, 0), test.more))
		if a.Status != http.StatusBadRequest || a.code() != test.code {
			t.Errorf("%s: %d %s, want 400 and %d", name, a.Status, a.Text, test.code)
		}
	}
	if n := len(r.Pools()); n != 1 {
		t.Errorf("%d pools, want the one", n)
	}
}

func TestBalancer_rulesAndItsPools(t *testing.T) {
	r := start(t, nil)
	eu, us := r.pool(pool("eu", "192.0.2.1", 50, 8)), r.pool(pool("us", "192.0.2.2", 40, -75))
	good := fields{"name": "Global.kura.test", "default_pools": []string{eu}, "fallback_pool": eu, "steering_policy": "proximity", "proxied": false}
	made := r.balancer(good)
	if made.Name != "global.kura.test" || made.TTL != 30 || !made.Enabled || made.ZoneName != zoneName || made.SessionAffinity != "none" {
		t.Errorf("created: %+v", made)
	}
	for name, test := range map[string]struct {
		more fields
		code int
	}{
		"a name that is taken":     {nil, 1003},
		"a name of another zone":   {fields{"name": "a.example.test"}, 1002},
		"no fallback":              {fields{"name": "b.kura.test", "fallback_pool": ""}, 1002},
		"no pools":                 {fields{"name": "b.kura.test", "default_pools": []string{}}, 1002},
		"a pool that there is not": {fields{"name": "b.kura.test", "default_pools": []string{eu, strings.Repeat("0", 32)}}, 1002},
		"a fallback there is not":  {fields{"name": "b.kura.test", "fallback_pool": strings.Repeat("0", 32)}, 1002},
		"a policy nobody knows":    {fields{"name": "b.kura.test", "steering_policy": "nearest"}, 1002},
	} {
		if a := r.call("POST", balancersPath, with(good, test.more)); a.Status != http.StatusBadRequest || a.code() != test.code {
			t.Errorf("%s: %d %s, want 400 and %d", name, a.Status, a.Text, test.code)
		}
	}
	path := balancersPath + "/" + made.ID
	put := as[cloudflare.Balancer](t, r.call("PUT", path, with(good, fields{"default_pools": []string{us, eu}, "ttl": 60.0})))
	if !cmp.Equal(put.DefaultPools, []string{us, eu}) || put.TTL != 60 {
		t.Errorf("PUT keeps the order of the pools: %+v", put)
	}
	patched := as[cloudflare.Balancer](t, r.call("PATCH", path, fields{"default_pools": []string{eu}, "fallback_pool": us}))
	if !cmp.Equal(patched.DefaultPools, []string{eu}) || patched.TTL != 60 {
		t.Errorf("PATCH: %+v", patched)
	}
	for _, id := range []string{eu, us} {
		if a := r.call("DELETE", poolsPath+"/"+id, nil); a.Status != http.StatusBadRequest || a.code() != 1005 {
			t.Errorf("deleting a pool in use: %d %s, want 400 and 1005", a.Status, a.Text)
		}
	}
	want := "global.kura.test  LB proximity pools=eu fallback=us ttl=60\npool eu           192.0.2.1 at 50,8\npool us           192.0.2.2 at 40,-75\n"
	if got := r.Table(); got != want {
		t.Errorf("got:\n%swant:\n%s", got, want)
	}
	as[map[string]string](t, r.call("DELETE", path, nil))
	if n := len(r.Pools()); n != 2 {
		t.Errorf("%d pools after their balancer went, want both", n)
	}
	as[map[string]string](t, r.call("DELETE", poolsPath+"/"+eu, nil))
	if a := r.call("GET", path, nil); a.Status != http.StatusNotFound || a.code() != 1001 {
		t.Errorf("GET of what is gone: %d %s", a.Status, a.Text)
	}
	if writes := r.Counters().Writes; !cmp.Equal(writes, map[string]int{"global.kura.test": 4}) {
		t.Errorf("writes %v, want one POST, PUT, PATCH and DELETE", writes)
	}
}

func TestBalancer_quotasAndSubscription(t *testing.T) {
	r := start(t, func(o *cloudflare.Options) {
		o.Zones = append(o.Zones, cloudflare.Zone{Name: "free.test", Unsubscribed: true})
		o.Zones[0].Quota = cloudflare.Quota{Pools: 1, Balancers: 1}
	})
	eu := r.pool(pool("eu", "192.0.2.1", 50, 8))
	if a := r.call("POST", poolsPath, pool("us", "192.0.2.1", 50, 8)); a.Status != 400 || a.code() != 1002 || !strings.Contains(a.Text, "the origin list length must be in range [1, 0]") {
		t.Errorf("a pool too many: %d %s", a.Status, a.Text)
	}
	body := fields{"name": "a.kura.test", "default_pools": []string{eu}, "fallback_pool": eu}
	r.balancer(body)
	if a := r.call("POST", balancersPath, with(body, fields{"name": "b.kura.test"})); a.Status != 403 || a.code() != 1002 {
		t.Errorf("a balancer too many: %d %s", a.Status, a.Text)
	}
	free := "/zones/" + cloudflare.ZoneID("free.test") + "/load_balancers"
	if a := r.call("POST", free, with(body, fields{"name": "a.free.test"})); a.Status != 403 || a.code() != 1002 || !strings.Contains(a.Text, "load balancing not enabled") {
		t.Errorf("without the subscription: %d %s", a.Status, a.Text)
	}
	if err := r.Configure("free.test", func(z *cloudflare.Zone) { z.Unsubscribed = false }); err != nil {
		t.Fatal(err)
	}
	if a := r.call("POST", free, with(body, fields{"name": "a.free.test"})); !a.Success {
		t.Errorf("with it: %s", a.Text)
	}
}

func TestBalancer_needsPermissionsOfItsOwn(t *testing.T) {
	r := start(t, func(o *cloudflare.Options) {
		o.Tokens = append(o.Tokens,
			cloudflare.Token{Value: "dns", Permissions: []cloudflare.Permission{cloudflare.ZoneRead, cloudflare.DNSEdit}},
			cloudflare.Token{Value: "reads", Permissions: []cloudflare.Permission{cloudflare.BalancersRead, cloudflare.PoolsRead}},
			cloudflare.Token{Value: "elsewhere", Accounts: []string{"another"}},
		)
	})
	for _, test := range []struct {
		token, method, path string
		may                 bool
	}{
		{"dns", "GET", poolsPath, false}, {"dns", "GET", balancersPath, false}, {"reads", "GET", poolsPath, true}, {"reads", "GET", balancersPath, true},
		{"reads", "POST", poolsPath, false}, {"reads", "POST", balancersPath, false}, {"elsewhere", "GET", poolsPath, false}, {"secret", "GET", poolsPath, true},
		{"secret", "GET", "/accounts/" + cloudflare.AccountID("none") + "/load_balancers/pools", false},
	} {
		a, err := r.try(test.token, test.method, test.path, nil)
		if err != nil || a.Success != test.may || !test.may && (a.Status != 403 || a.code() != 10000) {
			t.Errorf("%s %s with %q: %d %s %v, want done: %v, else 403 and 10000", test.method, test.path, test.token, a.Status, a.Text, err, test.may)
		}
	}
}

func TestBalancer_leadsToTheNearestPoolItHas(t *testing.T) {
	r := start(t, nil)
	err := r.Seed(cloudflare.ByHand,
		cloudflare.Record{Name: "global.kura.test", Type: "A", Content: "192.0.2.99"},
		cloudflare.Record{Name: "global.kura.test", Type: "TXT", Content: "stays"},
		cloudflare.Record{Name: "eu.kura.test", Type: "CNAME", Content: "lb.kura.test"},
		cloudflare.Record{Name: "lb.kura.test", Type: "A", Content: "192.0.2.1"},
		cloudflare.Record{Name: "lb.kura.test", Type: "AAAA", Content: "2001:db8::1"},
	)
	if err != nil {
		t.Fatal(err)
	}
	eu, us, spare := r.pool(pool("eu", "eu.kura.test", 50, 8)), r.pool(pool("us", "192.0.2.2", 40, -75)), r.pool(pool("spare", "192.0.2.3", 50, 8))
	frankfurt, virginia, tokyo := cloudflare.Place{Latitude: 50.1, Longitude: 8.7}, cloudflare.Place{Latitude: 39, Longitude: -77.5}, cloudflare.Place{Latitude: 35.7, Longitude: 139.7}
	r.SetPlaces(cloudflare.Places{Here: frankfurt, Networks: map[netip.Prefix]cloudflare.Place{
		netip.MustParsePrefix("198.51.100.0/24"): virginia, netip.MustParsePrefix("198.51.0.0/16"): frankfurt, netip.MustParsePrefix("2001:db8::/32"): tokyo,
	}})
	expect := func(what, subnet string, kind uint16, want ...string) {
		t.Helper()
		reply := r.ask("udp", "global.kura.test", kind, subnet)
		var got []string
		for _, rr := range reply.Answer {
			f := strings.Fields(rr.String())
			got = append(got, f[1]+" "+f[4])
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	expect("before", "", dns.TypeA, "300 192.0.2.99")
	made := r.balancer(fields{"name": "global.kura.test", "default_pools": []string{us, eu}, "fallback_pool": spare, "steering_policy": "proximity"})
	expect("it takes precedence over the record", "", dns.TypeA, "30 192.0.2.1")
	expect("and has the other family", "", dns.TypeAAAA, "30 2001:db8::1")
	expect("but leaves the text", "", dns.TypeTXT, `300 "stays"`)
	expect("by the client's subnet", "198.51.100.0/24", dns.TypeA, "30 192.0.2.2")
	expect("by the longest prefix that holds it", "198.51.7.0/24", dns.TypeA, "30 192.0.2.1")
	expect("in the other family", "2001:db8:1::/48", dns.TypeA, "30 192.0.2.1")
	expect("an unknown subnet is here", "203.0.113.0/24", dns.TypeA, "30 192.0.2.1")
	if reply := r.ask("udp", "global.kura.test", dns.TypeA, "198.51.100.0/24"); reply.IsEdns0() == nil || len(reply.IsEdns0().Option) != 1 {
		t.Errorf("the answer does not say for which subnet it is: %v", reply)
	}
	path := balancersPath + "/" + made.ID
	r.call("PATCH", poolsPath+"/"+eu, fields{"enabled": false})
	expect("the nearer one is disabled", "", dns.TypeA, "30 192.0.2.2")
	r.EditPool("us", func(p *cloudflare.Pool) { p.Enabled = false })
	expect("all are disabled: the fallback", "", dns.TypeA, "30 192.0.2.3")
	r.call("PATCH", poolsPath+"/"+eu, fields{"enabled": true})
	r.EditPool("us", func(p *cloudflare.Pool) { p.Enabled = true })
	r.Edit("lb.kura.test", "A", "192.0.2.11")
	expect("the origin's name has moved", "", dns.TypeA, "30 192.0.2.11")
	r.call("PATCH", path, fields{"default_pools": []string{us}})
	expect("the nearer one has left", "", dns.TypeA, "30 192.0.2.2")
	r.EditBalancer("global.kura.test", func(b *cloudflare.Balancer) { b.SteeringPolicy, b.DefaultPools = "off", []string{eu, us} })
	expect("without steering it is the first", "198.51.100.0/24", dns.TypeA, "30 192.0.2.11")
	r.SetPropagation(cloudflare.Propagation{Held: true})
	if !r.DeleteBalancer("global.kura.test") {
		t.Fatal("there is no balancer to delete")
	}
	expect("deleted, and DNS does not know", "", dns.TypeA, "30 192.0.2.11")
	r.SetPropagation(cloudflare.Propagation{})
	expect("deleted: the record is back", "", dns.TypeA, "300 192.0.2.99")
	r.balancer(fields{"name": "global.kura.test", "default_pools": []string{us}, "fallback_pool": us, "proxied": true})
	expect("proxied", "", dns.TypeA, "300 104.16.132.229")
}

func TestSeed_balancersAndPoolsOfOthers(t *testing.T) {
	r := start(t, nil)
	id := r.SeedPool("somebody", "main", cloudflare.Pool{Object: cloudflare.Object{Name: "theirs"}, Origins: []cloudflare.Origin{{Address: "192.0.2.1"}}})
	if _, err := r.SeedBalancer("somebody", cloudflare.Balancer{Object: cloudflare.Object{Name: "global.kura.test"}, DefaultPools: []string{id}, FallbackPool: id, TTL: 30}); err != nil {
		t.Fatal(err)
	}
	if reply := r.ask("udp", "global.kura.test", dns.TypeA, ""); len(reply.Answer) != 1 {
		t.Errorf("%v", reply)
	}
	if len(r.Balancers()) != 1 || len(r.Pools()) != 1 || len(r.History()) != 2 || r.History()[0].By != "somebody" {
		t.Errorf("%v %v %v", r.Balancers(), r.Pools(), r.History())
	}
	if _, err := r.SeedBalancer("somebody", cloudflare.Balancer{Object: cloudflare.Object{Name: "global.example.test"}}); err == nil {
		t.Error("a balancer in a zone that there is not")
	}
}
