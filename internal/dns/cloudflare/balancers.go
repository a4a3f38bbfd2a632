package cloudflare

import (
	"context"
	"fmt"
	"time"

	"github.com/cloudflare/cloudflare-go/v7/load_balancers"
	"github.com/cloudflare/cloudflare-go/v7/option"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// balancer is a load balancer as the API writes it.
type balancer struct {
	ID          string    `json:"id,omitempty"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Pools       []string  `json:"default_pools"`
	Fallback    string    `json:"fallback_pool"`
	TTL         float64   `json:"ttl,omitempty"` // seconds; none where it is proxied
	Steering    string    `json:"steering_policy"`
	Proxied     bool      `json:"proxied"`
	Enabled     *bool     `json:"enabled,omitempty"` // true by default
	Modified    time.Time `json:"modified_on,omitzero"`
}

// pool is a pool as the API writes it.
type pool struct {
	ID          string    `json:"id,omitempty"`
	Name        string    `json:"name"`
	Description string    `json:"description"`
	Origins     []origin  `json:"origins"`
	Latitude    *float64  `json:"latitude"` // degrees
	Longitude   *float64  `json:"longitude"`
	Enabled     *bool     `json:"enabled,omitempty"` // true by default
	Modified    time.Time `json:"modified_on,omitzero"`
}

type origin struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Enabled *bool  `json:"enabled,omitempty"` // true by default
	Header  struct {
		Host []string `json:"Host,omitempty"`
	} `json:"header,omitzero"`
}

func (z *Zone) listBalancers(ctx context.Context, l *dns.Listing) error {
	balancers, err := list(ctx, z, z.balancers())
	if err != nil {
		return err
	}
	pools, err := list(ctx, z, z.pools())
	if err != nil {
		return err
	}
	for _, b := range balancers {
		l.Balancers = append(l.Balancers, b.read())
	}
	for _, p := range pools {
		l.Pools = append(l.Pools, p.read())
	}
	return nil
}

// balancers and pools have no pages in cloudflare-go (SinglePage); where an answer says that there
// are more, they are read all the same.
func (z *Zone) balancers() kind[balancer] {
	return kind[balancer]{
		name: "load balancers", need: balancersEdit,
		list: func(is identity, ctx context.Context, with ...option.RequestOption) error {
			var params load_balancers.LoadBalancerListParams
			set(&params.ZoneID.Value, &params.ZoneID.Present, is.zone)
			_, err := z.client.balancers.List(ctx, params, with...)
			return err
		},
		get: func(id string) func(identity, context.Context, ...option.RequestOption) error {
			return func(is identity, ctx context.Context, with ...option.RequestOption) error {
				var params load_balancers.LoadBalancerGetParams
				set(&params.ZoneID.Value, &params.ZoneID.Present, is.zone)
				_, err := z.client.balancers.Get(ctx, id, params, with...)
				return err
			}
		},
		is: func(b balancer) (string, time.Time) { return b.ID, b.Modified },
	}
}

func (z *Zone) pools() kind[pool] {
	return kind[pool]{
		name: "pools", need: poolsEdit,
		list: func(is identity, ctx context.Context, with ...option.RequestOption) error {
			var params load_balancers.PoolListParams
			set(&params.AccountID.Value, &params.AccountID.Present, is.account)
			_, err := z.client.pools.List(ctx, params, with...)
			return err
		},
		get: func(id string) func(identity, context.Context, ...option.RequestOption) error {
			return func(is identity, ctx context.Context, with ...option.RequestOption) error {
				var params load_balancers.PoolGetParams
				set(&params.AccountID.Value, &params.AccountID.Present, is.account)
				_, err := z.client.pools.Get(ctx, id, params, with...)
				return err
			}
		},
		is: func(p pool) (string, time.Time) { return p.ID, p.Modified },
	}
}

// PutBalancer writes the whole load balancer: what it says of steering by others is gone after it.
func (z *Zone) PutBalancer(ctx context.Context, b dns.Balancer) (dns.Balancer, error) {
	body := balancer{
		Name: b.Name, Description: b.Description, Pools: b.Pools, Fallback: b.Fallback, TTL: float64(b.TTL),
		Steering: b.Steering, Proxied: b.Proxied, Enabled: &b.Enabled,
	}
	is, err := change[balancer](ctx, z, put("load balancer", b.Name, b.ID, balancersEdit), body, func(is identity, ctx context.Context, with ...option.RequestOption) error {
		if b.ID == "" {
			var params load_balancers.LoadBalancerNewParams
			set(&params.ZoneID.Value, &params.ZoneID.Present, is.zone)
			_, err := z.client.balancers.New(ctx, params, with...)
			return err
		}
		var params load_balancers.LoadBalancerUpdateParams
		set(&params.ZoneID.Value, &params.ZoneID.Present, is.zone)
		_, err := z.client.balancers.Update(ctx, b.ID, params, with...)
		return err
	})
	if err == nil && is.ID == "" {
		err = z.unsaid("load balancer", b.Name)
	}
	return is.read(), err
}

// DeleteBalancer leaves its pools where they are.
func (z *Zone) DeleteBalancer(ctx context.Context, id string) error {
	_, err := sent[struct{}](ctx, z, call{what: "delete load balancer " + id, need: balancersEdit, write: true}, func(is identity, ctx context.Context, with ...option.RequestOption) error {
		var params load_balancers.LoadBalancerDeleteParams
		set(&params.ZoneID.Value, &params.ZoneID.Present, is.zone)
		_, err := z.client.balancers.Delete(ctx, id, params, with...)
		return err
	})
	return err
}

// PutPool writes the whole pool.
func (z *Zone) PutPool(ctx context.Context, p dns.Pool) (dns.Pool, error) {
	body := pool{Name: p.Name, Description: p.Description, Latitude: &p.Latitude, Longitude: &p.Longitude, Enabled: &p.Enabled}
	for _, o := range p.Origins {
		one := origin{Name: o.Address, Address: o.Address, Enabled: &o.Enabled}
		if o.Host != "" {
			one.Header.Host = []string{o.Host}
		}
		body.Origins = append(body.Origins, one)
	}
	is, err := change[pool](ctx, z, put("pool", p.Name, p.ID, poolsEdit), body, func(is identity, ctx context.Context, with ...option.RequestOption) error {
		if p.ID == "" {
			var params load_balancers.PoolNewParams
			set(&params.AccountID.Value, &params.AccountID.Present, is.account)
			_, err := z.client.pools.New(ctx, params, with...)
			return err
		}
		var params load_balancers.PoolUpdateParams
		set(&params.AccountID.Value, &params.AccountID.Present, is.account)
		_, err := z.client.pools.Update(ctx, p.ID, params, with...)
		return err
	})
	if err == nil && is.ID == "" {
		err = z.unsaid("pool", p.Name)
	}
	return is.read(), err
}

// DeletePool deletes a pool that no load balancer has: one that is in use is a conflict.
func (z *Zone) DeletePool(ctx context.Context, id string) error {
	_, err := sent[struct{}](ctx, z, call{what: "delete pool " + id, need: poolsEdit, write: true}, func(is identity, ctx context.Context, with ...option.RequestOption) error {
		var params load_balancers.PoolDeleteParams
		set(&params.AccountID.Value, &params.AccountID.Present, is.account)
		_, err := z.client.pools.Delete(ctx, id, params, with...)
		return err
	})
	return err
}

func put(kind, name, id, need string) call {
	if id == "" {
		return call{what: "create " + kind + " " + name, need: need}
	}
	return call{what: "change " + kind + " " + name, need: need}
}

// unsaid is the error of an answer that says success and not of what.
func (z *Zone) unsaid(kind, name string) error {
	return &dns.Error{
		Class: fleet.ClassTransient, Reason: fleet.ReasonZoneUnreachable,
		Message: fmt.Sprintf("zone %s: write %s %s: the answer does not say what it is now", z.Domain, kind, name),
	}
}

func (b balancer) read() dns.Balancer {
	return dns.Balancer{
		ID: b.ID, Name: hostOf(b.Name), Description: b.Description, Pools: b.Pools, Fallback: b.Fallback, TTL: int(b.TTL),
		Steering: b.Steering, Proxied: b.Proxied, Enabled: b.Enabled == nil || *b.Enabled,
	}
}

func (p pool) read() dns.Pool {
	out := dns.Pool{ID: p.ID, Name: p.Name, Description: p.Description, Enabled: p.Enabled == nil || *p.Enabled}
	if p.Latitude != nil && p.Longitude != nil {
		out.Latitude, out.Longitude = *p.Latitude, *p.Longitude
	}
	for _, o := range p.Origins {
		one := dns.Origin{Address: hostOf(o.Address), Enabled: o.Enabled == nil || *o.Enabled}
		if len(o.Header.Host) > 0 {
			one.Host = hostOf(o.Header.Host[0])
		}
		out.Origins = append(out.Origins, one)
	}
	return out
}
