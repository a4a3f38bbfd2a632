package cloudflare

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// Pool is a row of origins of an account.
type Pool struct {
	Object
	Enabled           bool     `json:"enabled"`
	MinimumOrigins    int      `json:"minimum_origins"`
	Latitude          *float64 `json:"latitude,omitempty"` // degrees
	Longitude         *float64 `json:"longitude,omitempty"`
	Monitor           string   `json:"monitor,omitempty"`
	NotificationEmail string   `json:"notification_email"`
	CheckRegions      []string `json:"check_regions"`
	Origins           []Origin `json:"origins"`
}

// Origin is one address of a pool, or the name of one.
type Origin struct {
	Name    string              `json:"name"`
	Address string              `json:"address"`
	Enabled *bool               `json:"enabled,omitempty"` // true by default
	Weight  float64             `json:"weight,omitempty"`
	Header  map[string][]string `json:"header,omitempty"`
}

func (o Origin) enabled() bool { return o.Enabled == nil || *o.Enabled }

// poolsOf returns the pools of an account by identifier.
func (e *Emulator) poolsOf(account string) map[string]*Pool {
	if e.pools[account] == nil {
		e.pools[account] = map[string]*Pool{}
	}
	return e.pools[account]
}

func (e *Emulator) listPools(c *call) (reply, *failure) {
	var all []*Pool
	pools := e.poolsOf(c.account)
	for _, id := range slices.Sorted(maps.Keys(pools)) {
		all = append(all, pools[id])
	}
	return whole(c, append([]*Pool{}, all...)), nil
}

func (e *Emulator) getPool(c *call) (reply, *failure) {
	if p := e.poolsOf(c.account)[c.PathValue("id")]; p != nil {
		return reply{result: p}, nil
	}
	return reply{}, notFound("pool")
}

func (e *Emulator) createPool(c *call) (reply, *failure) {
	most := 0
	for _, z := range e.zones {
		if z.Account == c.account {
			most = max(most, z.Quota.Pools)
		}
	}
	if c.has(QuotaExceeded) || c.has(NotSubscribed) || most > 0 && len(e.poolsOf(c.account)) >= most {
		return reply{}, withoutSubscription()
	}
	return e.writePool(c, nil)
}

func (e *Emulator) changePool(c *call) (reply, *failure) {
	before := e.poolsOf(c.account)[c.PathValue("id")]
	if before == nil {
		return reply{}, notFound("pool")
	}
	return e.writePool(c, before)
}

func (e *Emulator) writePool(c *call, before *Pool) (reply, *failure) {
	after := &Pool{Enabled: true, MinimumOrigins: 1}
	if fail := c.read(before, after); fail != nil {
		return reply{}, fail
	}
	var old *Object
	if before != nil {
		old = &before.Object
	}
	after.begin(e, "pool", old)
	if fail := e.checkPool(c.account, after); fail != nil {
		return reply{}, fail
	}
	e.setPool(c.account, c.token.Name, after)
	return reply{result: after}, nil
}

func (e *Emulator) setPool(account, by string, after *Pool) {
	before := e.poolsOf(account)[after.ID]
	e.poolsOf(account)[after.ID] = after
	e.note(Change{By: by, Kind: "pool", ID: after.ID, Name: after.Name, Before: before.String(), After: after.String()})
	e.republish(account, after.ID)
}

func (e *Emulator) deletePool(c *call) (reply, *failure) {
	id := c.PathValue("id")
	gone := e.poolsOf(c.account)[id]
	if gone == nil {
		return reply{}, notFound("pool")
	}
	for _, z := range e.zones {
		for _, b := range z.balancers {
			if z.Account == c.account && b.uses(id) {
				return reply{}, referenced()
			}
		}
	}
	delete(e.poolsOf(c.account), id)
	e.note(Change{By: c.token.Name, Kind: "pool", ID: id, Name: gone.Name, Before: gone.String()})
	return reply{result: map[string]string{"id": id}}, nil
}

var poolName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// checkPool refuses what no pool may be (API documentation of pools; of the Host header: common error codes of load
// balancing; that addresses are not twice in a pool: cloudflare-docs 33171).
func (e *Emulator) checkPool(account string, p *Pool) *failure {
	mistake := func(text string, args ...any) *failure {
		return rejected(http.StatusBadRequest, fmt.Sprintf(text, args...))
	}
	for _, other := range e.poolsOf(account) {
		if other.ID != p.ID && other.Name == p.Name {
			return taken()
		}
	}
	switch {
	case !poolName.MatchString(p.Name):
		return mistake("name may only contain alphanumeric characters, hyphens and underscores")
	case len(p.Origins) == 0:
		return mistake("the origin list length must be in range [1, 20]")
	case (p.Latitude == nil) != (p.Longitude == nil):
		return mistake("latitude and longitude must be set together")
	case p.Latitude != nil && (*p.Latitude < -90 || *p.Latitude > 90 || *p.Longitude < -180 || *p.Longitude > 180):
		return mistake("latitude must be in range [-90, 90], longitude in [-180, 180]")
	}
	seen := map[string]bool{}
	for _, o := range p.Origins {
		host, others := o.Header["Host"], len(o.Header)-1
		switch {
		case o.Address == "" || seen[o.Address]:
			return mistake("address %q must be set, once in a pool", o.Address)
		case len(o.Header) > 0 && (len(host) != 1 || others > 0):
			return mistake("an origin has one header, Host, with one value")
		case len(host) == 1 && !e.hosts(account, host[0]):
			return mistake("header value %q is not below a zone of the account", host[0])
		}
		seen[o.Address] = true
	}
	return nil
}

// hosts tells whether name is in a zone of the account.
func (e *Emulator) hosts(account, name string) bool {
	z := e.zoneOf(strings.ToLower(name))
	return z != nil && z.Account == account
}

// String tells what a pool says, without its name.
func (p *Pool) String() string {
	if p == nil {
		return ""
	}
	var said []string
	for _, o := range p.Origins {
		one := o.Address
		if host := o.Header["Host"]; len(host) > 0 {
			one += " Host=" + host[0]
		}
		if !o.enabled() {
			one += " disabled"
		}
		said = append(said, one)
	}
	if p.Latitude != nil && p.Longitude != nil {
		said = append(said, fmt.Sprintf("at %g,%g", *p.Latitude, *p.Longitude))
	}
	if !p.Enabled {
		said = append(said, "disabled")
	}
	if p.Description != "" {
		said = append(said, fmt.Sprintf("%q", p.Description))
	}
	return strings.Join(said, " ")
}
