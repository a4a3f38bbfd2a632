package cloudflare_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

func TestToken_mayWhatItIsGiven(t *testing.T) {
	const other = "other.test"
	r := start(t, func(o *cloudflare.Options) { o.Zones = append(o.Zones, cloudflare.Zone{Name: other}) })
	only := func(permissions ...cloudflare.Permission) cloudflare.Token {
		return cloudflare.Token{Value: "t", Name: "t", Permissions: permissions}
	}
	records, foreign := zonePath+"/dns_records", "/zones/"+cloudflare.ZoneID(other)+"/dns_records"
	here := only(cloudflare.ZoneRead, cloudflare.DNSEdit)
	here.Zones = []string{zoneName}
	disabled := only()
	disabled.Status = "disabled"
	for name, test := range map[string]struct {
		token        cloudflare.Token
		method, path string
		status, code int
	}{
		"the zones of a token for all":  {only(cloudflare.ZoneRead), "GET", "/zones", 200, 0},
		"zones without Zone:Read":       {only(cloudflare.DNSEdit), "GET", "/zones", 403, 0},
		"a zone without Zone:Read":      {only(cloudflare.DNSEdit), "GET", zonePath, 403, 9109},
		"records with Zone:Read only":   {only(cloudflare.ZoneRead), "GET", records, 403, 10000},
		"records with DNS:Read":         {only(cloudflare.DNSRead), "GET", records, 200, 0},
		"a write with DNS:Read":         {only(cloudflare.DNSRead), "POST", records, 403, 10000},
		"a write with DNS:Edit":         {only(cloudflare.DNSEdit), "POST", records, 200, 0},
		"records of its zone":           {here, "GET", records, 200, 0},
		"records of another zone":       {here, "GET", foreign, 403, 10000},
		"another zone":                  {here, "GET", "/zones/" + cloudflare.ZoneID(other), 403, 9109},
		"a zone that there is not":      {here, "GET", "/zones/" + cloudflare.ZoneID("none.test"), 403, 9109},
		"verify":                        {only(), "GET", "/user/tokens/verify", 200, 0},
		"verify, disabled":              {disabled, "GET", "/user/tokens/verify", 200, 0},
		"disabled":                      {disabled, "GET", records, 403, 9109},
		"unknown":                       {cloudflare.Token{Value: "another"}, "GET", records, 403, 9109},
		"unknown, verify":               {cloudflare.Token{Value: "another"}, "GET", "/user/tokens/verify", 401, 1000},
		"a path that there is not":      {only(), "GET", "/nothing", 400, 7003},
		"a method that a path does not": {only(), "DELETE", "/zones", 400, 7003},
	} {
		t.Run(name, func(t *testing.T) {
			r.SetToken(test.token)
			var body any
			if test.method == "POST" {
				body = record("A", "a", "192.0.2.1")
			}
			if test.token.Value != "t" {
				r.Revoke(test.token.Value)
			}
			a, err := r.try(test.token.Value, test.method, test.path, body)
			if err != nil || a.Status != test.status || a.code() != test.code || a.Success != (test.status == 200) {
				t.Errorf("%d %s %v, want %d and %d", a.Status, a.Text, err, test.status, test.code)
			}
		})
	}
	a, err := r.try("", "GET", records, nil)
	if err != nil || a.Status != 400 || a.code() != 6003 || a.Errors[0].Chain[0].Code != 6111 {
		t.Errorf("without a token: %d %s %v, want 400, 6003 and 6111", a.Status, a.Text, err)
	}
	r.SetToken(here)
	if a, _ := r.try("t", "GET", "/zones", nil); len(as[[]any](t, a)) != 1 {
		t.Errorf("zones of a token for one: %s", a.Text)
	}
	if a, _ := r.try("t", "GET", "/zones?name="+other, nil); len(as[[]any](t, a)) != 0 {
		t.Errorf("a zone that the token is not for, by name: %s", a.Text)
	}
}

func TestLimit_isAUsersOverAllTokensInThreeForms(t *testing.T) {
	for form, want := range map[cloudflare.LimitForm][2]int{
		cloudflare.FormRetryAfter: {429, 971}, cloudflare.Form10100: {400, 10100}, cloudflare.Form10300: {403, 10300},
	} {
		t.Run(string(form), func(t *testing.T) {
			r := start(t, func(o *cloudflare.Options) {
				o.Limit = cloudflare.Limit{Calls: 3, Form: form}
				o.Tokens = append(o.Tokens, cloudflare.Token{Value: "sibling"}, cloudflare.Token{Value: "stranger", User: "another"})
			})
			get := func(token string) answer {
				a, err := r.try(token, "GET", "/zones", nil)
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			get("secret")
			r.clock.add(4 * time.Minute)
			a := get("sibling")
			if limit, policy := a.Header.Get("Ratelimit"), a.Header.Get("Ratelimit-Policy"); limit != `"default";r=1;t=60` || policy != `"default";q=3;w=300` || a.Header.Get("Retry-After") != "" {
				t.Errorf("headers %v", a.Header)
			}
			get("secret")
			for i := range 2 {
				a := get("sibling")
				if a.Status != want[0] || a.code() != want[1] {
					t.Fatalf("%d %s, want %v", a.Status, a.Text, want)
				}
				// Blocked for a whole window, which does not begin again.
				if after := a.Header.Get("Retry-After"); form == cloudflare.FormRetryAfter && after != fmt.Sprint(300-100*i) || form != cloudflare.FormRetryAfter && after != "" {
					t.Errorf("Retry-After %q", after)
				}
				r.clock.add(100 * time.Second)
			}
			if a := get("stranger"); a.Status != http.StatusOK {
				t.Errorf("another user: %d", a.Status)
			}
			r.clock.add(99 * time.Second)
			if a := get("secret"); a.Success {
				t.Error("a second before the block ends: done, want a refusal")
			}
			r.clock.add(time.Second)
			if a := get("secret"); !a.Success {
				t.Errorf("when the block has ended: %s", a.Text)
			}
			if c := r.Counters(); c.Limited != 3 || c.Total() != 8 {
				t.Errorf("counters: %v, %d beyond the budget, want 8 and 3", c, c.Limited)
			}
		})
	}
}
