package server

import (
	"context"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// EndpointPath names a declared endpoint.
type EndpointPath struct {
	Account string `path:"account" maxLength:"63"`
	Key     string `path:"key" maxLength:"63" doc:"First 16 hexadecimal digits of the SHA-256 of technology, a zero byte and url."`
}

func showCacheEndpoint(v store.Versioned[fleet.CacheEndpoint]) api.CacheEndpoint {
	return api.CacheEndpoint{Generation: v.Generation, Key: v.Value.Key(), CacheEndpoint: v.Value}
}

type listCacheEndpointsInput struct {
	PageInput
	Account    string `query:"account" maxLength:"63"`
	Technology string `query:"technology" maxLength:"63"`
}

func (s *Server) listCacheEndpoints(ctx context.Context, in *listCacheEndpointsInput) (*listOutput[api.CacheEndpoint], error) {
	if in.Account != "" {
		if err := plainName("account "+in.Account, in.Account); err != nil {
			return nil, err
		}
		if !visible(ctx)(in.Account) {
			return &listOutput[api.CacheEndpoint]{api.List[api.CacheEndpoint]{Items: []api.CacheEndpoint{}}}, nil
		}
	}
	// A page may hold less than its limit, for the store does not know technologies.
	list := func(ctx context.Context, o store.PageOptions) (store.Listing[fleet.CacheEndpoint], error) {
		l, err := s.records.CacheEndpoints(ctx, in.Account, o)
		kept := l.Items[:0]
		for _, v := range l.Items {
			if in.Technology == "" || v.Value.Technology == in.Technology {
				kept = append(kept, v)
			}
		}
		l.Items = kept
		return l, err
	}
	if in.Account == "" {
		list = seen(ctx, list, func(e fleet.CacheEndpoint) string { return e.Account })
	}
	return listAll(ctx, s, in.PageInput, list, showCacheEndpoint)
}

func (s *Server) cacheEndpoint(p EndpointPath) object[fleet.CacheEndpoint] {
	return object[fleet.CacheEndpoint]{
		what: fmt.Sprintf("cache endpoint %s/%s", p.Account, p.Key), name: p.Key,
		get: func(ctx context.Context, key string) (store.Versioned[fleet.CacheEndpoint], error) {
			if err := plainName("account "+p.Account, p.Account); err != nil {
				return store.Versioned[fleet.CacheEndpoint]{}, err
			}
			return s.records.CacheEndpoint(ctx, p.Account, key)
		},
		protected: func(fleet.CacheEndpoint) bool { return false },
		remove:    (*store.Tx).DeleteCacheEndpoint,
	}
}

func (s *Server) getCacheEndpoint(ctx context.Context, in *struct{ EndpointPath }) (*objectOutput[api.CacheEndpoint], error) {
	v, err := s.cacheEndpoint(in.EndpointPath).read(ctx)
	return &objectOutput[api.CacheEndpoint]{showCacheEndpoint(v)}, err
}

type putCacheEndpointInput struct {
	EndpointPath
	Condition
	Body body[fleet.CacheEndpoint]
}

func (s *Server) putCacheEndpoint(ctx context.Context, in *putCacheEndpointInput) (*putOutput[api.CacheEndpoint], error) {
	declared, err := in.Body.value()
	if err != nil {
		return nil, err
	}
	if err := declared.Validate(); err != nil {
		return nil, err
	}
	declared = declared.WithDefaults()
	what := "cache endpoint " + declared.String()
	var v fleet.Invalid
	sameName(&v, "/account", in.Account, declared.Account)
	if key := declared.Key(); in.Key != key {
		v.Add("/url", "this technology and url have the key %s, and the URL of the request names %s; send it to /v1/cache-endpoints/%s/%s", key, in.Key, declared.Account, key)
	}
	if err := v.Err(what); err != nil {
		return nil, err
	}
	var w api.Written[api.CacheEndpoint]
	// Alone: a host template that makes it stale cannot come meanwhile, nor one too many.
	err = s.alone(ctx, in.DryRun, func(ctx context.Context, lock *store.Lock) (err error) {
		w, err = s.declareCacheEndpoint(ctx, lock, what, declared, in.Condition)
		return err
	})
	if err != nil {
		return nil, err
	}
	return written(w, in.DryRun), nil
}

func (s *Server) declareCacheEndpoint(ctx context.Context, lock *store.Lock, what string, declared fleet.CacheEndpoint, c Condition) (w api.Written[api.CacheEndpoint], err error) {
	prev, err := present(s.records.CacheEndpoint(ctx, declared.Account, declared.Key()))
	if err != nil {
		return w, err
	}
	if err := c.check(what, prev.Generation); err != nil {
		return w, err
	}
	if prev.Exists() { // its key says that it is equal
		return api.Written[api.CacheEndpoint]{Object: showCacheEndpoint(prev)}, nil
	}
	if err := s.fits(ctx, what, declared); err != nil {
		return w, err
	}
	w = api.Written[api.CacheEndpoint]{
		Object:  showCacheEndpoint(store.Versioned[fleet.CacheEndpoint]{Value: declared, Generation: 1}),
		Created: true, Changed: true,
	}
	account, err := present(s.records.Account(ctx, declared.Account))
	if err != nil {
		return w, err
	}
	if !account.Exists() {
		lacking := fmt.Sprintf("account %q does not exist; declare it first (kura_account), or correct the id", declared.Account)
		if c.DryRun {
			w.Warnings = []api.Warning{{Code: api.WarnNeighbourUnknown, Pointer: "/account", Detail: lacking}}
			return w, nil
		}
		var v fleet.Invalid
		v.Add("/account", "%s", lacking)
		return w, v.Err(what)
	}
	if c.DryRun {
		return w, nil
	}
	tx := s.records.Begin()
	tx.Under(lock)
	tx.RequireAccount(account)
	tx.PutCacheEndpoint(prev, declared)
	_, err = tx.Commit(ctx)
	return w, err
}

// fits checks a new endpoint against what else is declared: the zones of this
// environment's host templates (H9), and how many endpoints its account has.
func (s *Server) fits(ctx context.Context, what string, declared fleet.CacheEndpoint) error {
	if err := s.catchUp(ctx); err != nil {
		return err
	}
	var templates []fleet.HostTemplate
	for _, t := range s.view.Templates() {
		templates = append(templates, t.Value)
	}
	if err := declared.CheckStale(s.env, templates); err != nil {
		return err
	}
	if n := len(s.view.CacheEndpoints(declared.Account)); n >= fleet.MaxCacheEndpoints {
		return fleet.Errorf(fleet.CodeConflict, "%s: account %q has %d declared endpoints, and no account has more; delete one that is not used any more", what, declared.Account, n)
	}
	return nil
}

type deleteCacheEndpointInput struct {
	EndpointPath
	Match
}

func (s *Server) deleteCacheEndpoint(ctx context.Context, in *deleteCacheEndpointInput) (*struct{}, error) {
	return nil, s.cacheEndpoint(in.EndpointPath).delete(ctx, s, in.Match)
}
