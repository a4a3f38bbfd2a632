package cloudflare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/cloudflare/cloudflare-go/v7/option"
	api "github.com/cloudflare/cloudflare-go/v7/zones"
	"golang.org/x/sync/singleflight"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// defaultAPI is Cloudflare's.
const defaultAPI = "https://api.cloudflare.com/client/v4"

// Client makes all calls with one token.
type Client struct {
	services
	token  source
	read   singleflight.Group // of the token: what hangs hangs once
	http   *http.Client
	budget *budget
	within time.Duration // for one call
	settle time.Duration // before a listing that changed is read again
}

// Zone is one zone, through its token's client.
type Zone struct {
	*zone
	share share
}

var _ dns.API = (*Zone)(nil)

type zone struct {
	dns.Zone
	client  *Client
	finding singleflight.Group

	mu   sync.Mutex
	is   identity          // as it was found; zero: it is to be found
	seen map[string]memory // of each kind: the last listing (list.go)
}

// identity is how Cloudflare names a zone and its account.
type identity struct{ zone, account string }

// Open returns the zones that have a token, by domain. It calls nothing.
func Open(all []dns.Zone) (map[string]*Zone, error) {
	type key struct{ api, token string }
	clients, opened := map[key]*Client{}, map[string]*Zone{}
	for _, z := range all {
		if z.Token == "" {
			continue
		}
		k := key{cmp.Or(z.API, defaultAPI), z.Token}
		if err := dns.CheckAPI(k.api); err != nil {
			return nil, fmt.Errorf("zone %s: %w", z.Domain, err)
		}
		if clients[k] == nil {
			clients[k] = newClient(k.api, source(k.token))
		}
		opened[z.Domain] = &Zone{zone: &zone{Zone: z, client: clients[k], seen: map[string]memory{}}}
	}
	return opened, nil
}

// Observing is the same zone, whose calls use the share of observation. It is for rounds of listings:
// what is read for a change uses the share of changes.
func (z *Zone) Observing() *Zone { return &Zone{zone: z.zone, share: observation} }

// Through has all calls of the zone's token made by t: of tests without sockets.
func (z *Zone) Through(t http.RoundTripper) { z.client.http.Transport = t }

func newClient(base string, token source) *Client {
	c := &Client{token: token, budget: newBudget(), within: callWithin, settle: time.Second}
	c.http = &http.Client{
		Transport: &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			IdleConnTimeout:     90 * time.Second,
			MaxConnsPerHost:     16,
			MaxIdleConnsPerHost: 4,
			ForceAttemptHTTP2:   true,
			HTTP2:               &http.HTTP2Config{SendPingTimeout: 8 * time.Second, PingTimeout: 5 * time.Second}, // one that leads nowhere is given up
		},
		// The API does not redirect; what does might be told the token.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	c.services = newServices(base, c)
	return c
}

// sent makes a call of the zone with what Cloudflare calls it. Where the answer may mean that it is
// another zone by now, its identity is forgotten: the next call finds it again.
func sent[T any](ctx context.Context, z *Zone, c call, do func(identity, context.Context, ...option.RequestOption) error) (answer[T], error) {
	is, err := z.identify(ctx)
	if err != nil {
		return answer[T]{}, err
	}
	c.zone = z.Domain
	c.do = func(ctx context.Context, with ...option.RequestOption) error { return do(is, ctx, with...) }
	a, err := ask[T](ctx, z.client, z.share, &c)
	if e, ok := errors.AsType[*dns.Error](err); ok && (e.NotFound || e.Reason == fleet.ReasonZoneForbidden) {
		z.forget(is)
	}
	return a, err
}

func (z *zone) forget(is identity) {
	z.mu.Lock()
	defer z.mu.Unlock()
	if z.is == is {
		z.is = identity{}
	}
}

// identify finds the zone by its name, once.
func (z *Zone) identify(ctx context.Context) (identity, error) {
	z.mu.Lock()
	is := z.is
	z.mu.Unlock()
	if is != (identity{}) {
		return is, nil
	}
	found := z.finding.DoChan("", func() (any, error) { // by who asks first, for all who wait
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), callWithin)
		defer cancel()
		is, err := z.find(ctx)
		z.mu.Lock()
		defer z.mu.Unlock()
		z.is = is
		return is, err
	})
	select {
	case f := <-found:
		is, _ := f.Val.(identity)
		return is, f.Err
	case <-ctx.Done():
		return identity{}, (&call{zone: z.Domain, what: "find it"}).classify(ctx.Err())
	}
}

func (z *Zone) find(ctx context.Context) (identity, error) {
	var params api.ZoneListParams
	set(&params.Name.Value, &params.Name.Present, z.Domain)
	c := call{zone: z.Domain, what: "find it", need: zoneRead}
	c.do = func(ctx context.Context, with ...option.RequestOption) error {
		_, err := z.client.zones.List(ctx, params, with...)
		return err
	}
	type found struct {
		ID      string
		Name    string
		Account struct{ ID, Name string }
	}
	a, err := ask[[]found](ctx, z.client, z.share, &c)
	if err != nil {
		return identity{}, err
	}
	var is []identity
	for _, f := range a.Result {
		named := z.Account == "" || z.Account == f.Account.ID || z.Account == f.Account.Name
		if strings.EqualFold(f.Name, z.Domain) && f.ID != "" && named {
			is = append(is, identity{f.ID, f.Account.ID})
		}
	}
	lost := &dns.Error{Class: fleet.ClassTransient, Reason: fleet.ReasonZoneForbidden, Answered: true}
	switch {
	case len(is) == 1:
		return is[0], nil
	case len(is) > 1:
		lost.Message = fmt.Sprintf("%s: several accounts have it; name one: account=<id>", &c)
	case z.Account != "":
		lost.Message = fmt.Sprintf("%s: it does not exist for its token in account %s; give the token %s for it, or name its account", &c, z.Account, zoneRead)
	default:
		lost.Message = fmt.Sprintf("%s: it does not exist for its token; give the token %s for it, or create the zone at Cloudflare", &c, zoneRead)
	}
	return identity{}, lost
}

// set sets a field of a parameter: cloudflare-go's own constructor of them is in its root package.
func set[T any](value *T, present *bool, to T) { *value, *present = to, true }
