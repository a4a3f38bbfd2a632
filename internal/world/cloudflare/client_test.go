package cloudflare_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/cloudflare/cloudflare-go/v7/dns"
	"github.com/cloudflare/cloudflare-go/v7/load_balancers"
	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/user"
	"github.com/cloudflare/cloudflare-go/v7/zones"

	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

// set sets a field of a parameter. Its constructor is in cloudflare-go's root package, which costs minutes to compile.
func set[T any](value *T, present *bool, to T) { *value, *present = to, true }

func options(r *rig) []option.RequestOption {
	return []option.RequestOption{option.WithBaseURL(r.URL()), option.WithAPIToken("secret"), option.WithMaxRetries(0)}
}

func TestClient_ofCloudflareReadsZonesTokensAndPages(t *testing.T) {
	r := start(t, func(o *cloudflare.Options) {
		for i := range 30 {
			o.Zones = append(o.Zones, cloudflare.Zone{Name: fmt.Sprintf("z%d.test", i), Account: "other", Plan: cloudflare.PlanEnterprise})
		}
	})
	verified, err := user.NewTokenService(options(r)...).Verify(t.Context())
	if err != nil || verified.Status != user.TokenVerifyResponseStatusActive || verified.ID == "" {
		t.Errorf("verify: %+v %v", verified, err)
	}
	n, pager := 0, zones.NewZoneService(options(r)...).ListAutoPaging(t.Context(), zones.ZoneListParams{})
	for pager.Next() {
		if z := pager.Current(); z.Name == "z7.test" && (z.Account.ID != cloudflare.AccountID("other") || z.ID != cloudflare.ZoneID("z7.test") || z.Status != zones.ZoneStatusActive) {
			t.Errorf("zone: %+v", z)
		}
		n++
	}
	if pager.Err() != nil || n != 31 {
		t.Errorf("%d zones, %v, want 31 on two pages", n, pager.Err())
	}
	var byName zones.ZoneListParams
	set(&byName.Name.Value, &byName.Name.Present, zoneName)
	if page, err := zones.NewZoneService(options(r)...).List(t.Context(), byName); err != nil || len(page.Result) != 1 || page.Result[0].ID != cloudflare.ZoneID(zoneName) {
		t.Errorf("by name: %+v %v", page, err)
	}

	for i := range 250 {
		if err := r.Seed("x", cloudflare.Record{Name: fmt.Sprintf("h%d.kura.test", i), Type: "A", Content: "192.0.2.1"}); err != nil {
			t.Fatal(err)
		}
	}
	r.ResetCounters()
	var list dns.RecordListParams
	set(&list.ZoneID.Value, &list.ZoneID.Present, cloudflare.ZoneID(zoneName))
	records := dns.NewRecordService(options(r)...).ListAutoPaging(t.Context(), list)
	seen := map[string]bool{}
	for records.Next() {
		seen[records.Current().Name] = true
	}
	if calls := r.Counters().Calls["GET records"]; records.Err() != nil || len(seen) != 250 || calls != 4 {
		t.Errorf("%d records in %d calls, %v, want 250 in 4, as the client goes on to the first empty page", len(seen), calls, records.Err())
	}
	// It looks at the status only: who uses it has to look at more, or reads an error as an empty zone (D5).
	r.Break(cloudflare.Fault{Kind: cloudflare.Unsuccessful, Times: 1})
	if page, err := dns.NewRecordService(options(r)...).List(t.Context(), list); err != nil || len(page.Result) != 0 {
		t.Errorf("200 without success: %+v %v, want the empty page that cloudflare-go takes it for", page, err)
	}
	set(&list.PerPage.Value, &list.PerPage.Present, 5000)
	set(&list.Name.Value.Exact.Value, &list.Name.Value.Exact.Present, "h7.kura.test")
	list.Name.Present = true
	if page, err := dns.NewRecordService(options(r)...).List(t.Context(), list); err != nil || len(page.Result) != 1 || page.Result[0].Name != "h7.kura.test" {
		t.Errorf("by name: %+v %v", page, err)
	}
}

func TestClient_ofCloudflareWritesRecordsAndReadsErrors(t *testing.T) {
	r := start(t, nil)
	service := dns.NewRecordService(options(r)...)
	zone := cloudflare.ZoneID(zoneName)
	a := func(name string) (p dns.ARecordParam) {
		set(&p.Name.Value, &p.Name.Present, name)
		set(&p.Type.Value, &p.Type.Present, dns.ARecordTypeA)
		set(&p.Content.Value, &p.Content.Present, "192.0.2.1")
		set(&p.TTL.Value, &p.TTL.Present, dns.TTL(60))
		set(&p.Proxied.Value, &p.Proxied.Present, false)
		return p
	}
	create := dns.RecordNewParams{Body: a("acme.kura.test")}
	set(&create.ZoneID.Value, &create.ZoneID.Present, zone)
	made, err := service.New(t.Context(), create)
	if err != nil || made.Name != "acme.kura.test" || made.TTL != 60 || made.Type != dns.RecordResponseTypeA || made.Content != "192.0.2.1" || made.Proxied {
		t.Fatalf("created: %+v %v", made, err)
	}
	_, err = service.New(t.Context(), create)
	var refused *dns.Error
	if !errors.As(err, &refused) || refused.StatusCode != http.StatusBadRequest || len(refused.Errors) != 1 || refused.Errors[0].Code != 81058 {
		t.Errorf("again: %v, want its error with 400 and 81058", err)
	}

	var batch dns.RecordBatchParams
	set(&batch.ZoneID.Value, &batch.ZoneID.Present, zone)
	var gone dns.RecordBatchParamsDelete
	set(&gone.ID.Value, &gone.ID.Present, made.ID)
	set(&batch.Deletes.Value, &batch.Deletes.Present, []dns.RecordBatchParamsDelete{gone})
	var text dns.TXTRecordParam
	set(&text.Name.Value, &text.Name.Present, "a-acme.kura.test")
	set(&text.Type.Value, &text.Type.Present, dns.TXTRecordTypeTXT)
	set(&text.Content.Value, &text.Content.Present, `"heritage=external-dns,external-dns/owner=x"`)
	set(&text.TTL.Value, &text.TTL.Present, dns.TTL1)
	set(&batch.Posts.Value, &batch.Posts.Present, []dns.RecordBatchParamsPostUnion{a("acme.kura.test"), text})
	done, err := service.Batch(t.Context(), batch)
	if err != nil || len(done.Posts) != 2 || len(done.Deletes) != 1 || done.Posts[1].Content != text.Content.Value || done.Posts[0].ID == made.ID {
		t.Errorf("batch: %+v %v", done, err)
	}

	var edit dns.RecordEditParams
	set(&edit.ZoneID.Value, &edit.ZoneID.Present, zone)
	change := a("acme.kura.test")
	set(&change.Content.Value, &change.Content.Present, "192.0.2.7")
	edit.Body = change
	if edited, err := service.Edit(t.Context(), done.Posts[0].ID, edit); err != nil || edited.Content != "192.0.2.7" {
		t.Errorf("edit: %+v %v", edited, err)
	}
	var remove dns.RecordDeleteParams
	set(&remove.ZoneID.Value, &remove.ZoneID.Present, zone)
	if removed, err := service.Delete(t.Context(), done.Posts[0].ID, remove); err != nil || removed.ID != done.Posts[0].ID {
		t.Errorf("delete: %+v %v", removed, err)
	}
	if _, err := service.Delete(t.Context(), done.Posts[0].ID, remove); !errors.As(err, &refused) || refused.StatusCode != http.StatusNotFound || refused.Errors[0].Code != 81044 {
		t.Errorf("delete again: %v", err)
	}

	for _, fault := range []cloudflare.Fault{{Kind: cloudflare.HTML}, {Kind: cloudflare.Unavailable}} {
		r.Break(fault)
		if _, err := service.New(t.Context(), create); !errors.As(err, &refused) || refused.StatusCode < 500 {
			t.Errorf("%s: %v, want its error", fault.Kind, err)
		}
		r.Heal()
	}
	r.SetLimit(cloudflare.Limit{Calls: 1})
	if _, err := service.New(t.Context(), create); !errors.As(err, &refused) || refused.StatusCode != http.StatusTooManyRequests || refused.Response.Header.Get("Retry-After") == "" {
		t.Errorf("rate limit: %v, want 429 with Retry-After", err)
	}
}

func TestClient_ofCloudflareBalances(t *testing.T) {
	r := start(t, nil)
	pools, balancers := load_balancers.NewPoolService(options(r)...), load_balancers.NewLoadBalancerService(options(r)...)
	account, zone := cloudflare.AccountID("main"), cloudflare.ZoneID(zoneName)
	var ids []string
	for _, name := range []string{"us", "eu"} {
		var origin load_balancers.OriginParam
		set(&origin.Name.Value, &origin.Name.Present, name)
		set(&origin.Address.Value, &origin.Address.Present, name+".kura.test")
		set(&origin.Enabled.Value, &origin.Enabled.Present, true)
		set(&origin.Header.Value.Host.Value, &origin.Header.Value.Host.Present, []load_balancers.HostParam{name + ".kura.test"})
		origin.Header.Present = true
		var pool load_balancers.PoolNewParams
		set(&pool.AccountID.Value, &pool.AccountID.Present, account)
		set(&pool.Name.Value, &pool.Name.Present, name)
		set(&pool.Latitude.Value, &pool.Latitude.Present, 50.1)
		set(&pool.Longitude.Value, &pool.Longitude.Present, -8.7)
		set(&pool.Description.Value, &pool.Description.Present, "of a test")
		set(&pool.Origins.Value, &pool.Origins.Present, []load_balancers.OriginParam{origin})
		made, err := pools.New(t.Context(), pool)
		if err != nil || made.Name != name || made.Latitude != 50.1 || made.Longitude != -8.7 || !made.Enabled || made.Origins[0].Header.Host[0] != name+".kura.test" || made.Description != "of a test" {
			t.Fatalf("pool: %+v %v", made, err)
		}
		ids = append(ids, made.ID)
	}
	var list load_balancers.PoolListParams
	set(&list.AccountID.Value, &list.AccountID.Present, account)
	n, pager := 0, pools.ListAutoPaging(t.Context(), list)
	for pager.Next() {
		n++
	}
	if pager.Err() != nil || n != 2 || r.Counters().Calls["GET pools"] != 1 {
		t.Errorf("%d pools, %v, in %v", n, pager.Err(), r.Counters())
	}

	var balancer load_balancers.LoadBalancerNewParams
	set(&balancer.ZoneID.Value, &balancer.ZoneID.Present, zone)
	set(&balancer.Name.Value, &balancer.Name.Present, "global.kura.test")
	set(&balancer.DefaultPools.Value, &balancer.DefaultPools.Present, ids)
	set(&balancer.FallbackPool.Value, &balancer.FallbackPool.Present, ids[0])
	set(&balancer.SteeringPolicy.Value, &balancer.SteeringPolicy.Present, load_balancers.SteeringPolicyProximity)
	set(&balancer.Proxied.Value, &balancer.Proxied.Present, false)
	set(&balancer.TTL.Value, &balancer.TTL.Present, 30)
	made, err := balancers.New(t.Context(), balancer)
	if err != nil || made.Name != "global.kura.test" || made.TTL != 30 || made.Proxied || made.SteeringPolicy != load_balancers.SteeringPolicyProximity || len(made.DefaultPools) != 2 {
		t.Fatalf("balancer: %+v %v", made, err)
	}
	var drop load_balancers.PoolDeleteParams
	set(&drop.AccountID.Value, &drop.AccountID.Present, account)
	var refused *load_balancers.Error
	if _, err := pools.Delete(t.Context(), ids[1], drop); !errors.As(err, &refused) || refused.Errors[0].Code != 1005 {
		t.Errorf("deleting a pool in use: %v", err)
	}
	var update load_balancers.LoadBalancerUpdateParams
	set(&update.ZoneID.Value, &update.ZoneID.Present, zone)
	set(&update.Name.Value, &update.Name.Present, "global.kura.test")
	set(&update.DefaultPools.Value, &update.DefaultPools.Present, ids[:1])
	set(&update.FallbackPool.Value, &update.FallbackPool.Present, ids[0])
	if updated, err := balancers.Update(t.Context(), made.ID, update); err != nil || len(updated.DefaultPools) != 1 || updated.SteeringPolicy != "" {
		t.Errorf("update: %+v %v", updated, err)
	}
	if _, err := pools.Delete(t.Context(), ids[1], drop); err != nil {
		t.Errorf("deleting a pool that left: %v", err)
	}
	var remove load_balancers.LoadBalancerDeleteParams
	set(&remove.ZoneID.Value, &remove.ZoneID.Present, zone)
	if removed, err := balancers.Delete(t.Context(), made.ID, remove); err != nil || removed.ID != made.ID {
		t.Errorf("delete: %+v %v", removed, err)
	}
	if r.Table() != "pool us  us.kura.test Host=us.kura.test at 50.1,-8.7 \"of a test\"\n" {
		t.Errorf("left:\n%s", r.Table())
	}
}

// Cancelled calls end with their context's error: nothing of the emulator is in the way.
func TestClient_ofCloudflareGoesAway(t *testing.T) {
	r := start(t, nil)
	r.Break(cloudflare.Fault{Kind: cloudflare.Hang})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := user.NewTokenService(options(r)...).Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
