package server

import (
	"cmp"
	"context"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// listEndpoints derives what clients of an account use: the published url of each of
// its servers that is not being destroyed and whose name is ours, those that answer
// first. There is no mirror of this to keep in step.
func (s *Server) listEndpoints(ctx context.Context, in *struct{ IDPath }) (*listOutput[api.Endpoint], error) {
	if _, err := s.account(in.ID).read(ctx); err != nil {
		return nil, err
	}
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	list, _ := s.view.Servers(func(k fleet.ServerKey) bool { return k.Account == in.ID })
	out := &listOutput[api.Endpoint]{api.List[api.Endpoint]{Items: []api.Endpoint{}}}
	for _, g := range list {
		if g.Intent.Deleting != nil || g.Status == nil || g.Status.PublishedURL == "" || is(g.Status, fleet.ConditionDNSOwned, fleet.False) {
			continue
		}
		out.Body.Items = append(out.Body.Items, api.Endpoint{
			URL: g.Status.PublishedURL, Technology: api.TechnologyKura, Region: g.Intent.Region,
			Ready: is(g.Status, fleet.ConditionEndpointReady, fleet.True),
		})
	}
	slices.SortStableFunc(out.Body.Items, func(a, b api.Endpoint) int {
		return cmp.Or(readyFirst(a)-readyFirst(b), cmp.Compare(a.Region, b.Region))
	})
	return out, nil
}

func readyFirst(e api.Endpoint) int {
	if e.Ready {
		return 0
	}
	return 1
}

func is(status *fleet.Status, t fleet.ConditionType, want fleet.ConditionStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c fleet.Condition) bool { return c.Type == t && c.Status == want })
}

type eventsInput struct {
	Account string `query:"account" maxLength:"63"`
	Region  string `query:"region" maxLength:"63"`
	Limit   int    `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"The newest so many."`
}

func (s *Server) listEvents(ctx context.Context, in *eventsInput) (*listOutput[fleet.Event], error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var kept []fleet.Event
	keep := func(l store.Listing[fleet.Event]) {
		for _, v := range l.Items {
			if e := v.Value; (in.Account == "" || e.Account == in.Account) && (in.Region == "" || e.Region == in.Region) {
				kept = append(kept, e)
			}
		}
		slices.SortStableFunc(kept, func(a, b fleet.Event) int { return b.At.Compare(a.At) })
		kept = kept[:min(len(kept), in.Limit)]
	}
	if in.Account != "" && in.Region != "" {
		if err := plainName("server "+in.Account+"/"+in.Region, in.Account, in.Region); err != nil {
			return nil, err
		}
		l, err := s.records.Events(ctx, fleet.ServerKey{Account: in.Account, Region: in.Region})
		if err != nil {
			return nil, err
		}
		slices.Reverse(l.Items) // those of one moment stay newest first
		keep(l)
	} else {
		for o := (store.PageOptions{Limit: api.MaxPage}); ; {
			l, err := s.records.AllEvents(ctx, o)
			if err != nil {
				return nil, err
			}
			keep(l)
			if o.Revision, o.After = l.Revision, l.After; l.After == "" {
				break
			}
		}
	}
	if kept == nil {
		kept = []fleet.Event{}
	}
	return &listOutput[fleet.Event]{api.List[fleet.Event]{Items: kept}}, nil
}

func (s *Server) listTokens(ctx context.Context, in *NewestInput) (*listOutput[api.TokenInfo], error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	all, err := s.tokens.List(ctx) // a bounded number: one page
	return &listOutput[api.TokenInfo]{api.List[api.TokenInfo]{Items: all[:min(len(all), in.Limit)]}}, err
}

// issuedToken is the one answer that holds a secret.
type issuedToken struct {
	api.TokenInfo
	Token string `json:"token"`
}

type createTokenInput struct{ Body body[api.TokenRequest] }

func (s *Server) createToken(ctx context.Context, in *createTokenInput) (*objectOutput[issuedToken], error) {
	r, err := in.Body.value()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	made, secret, err := s.tokens.Create(ctx, caller(ctx).Name, r)
	return &objectOutput[issuedToken]{issuedToken{made, secret.Reveal()}}, err
}

func (s *Server) revokeToken(ctx context.Context, in *struct{ IDPath }) (*struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return nil, s.tokens.Revoke(ctx, in.ID)
}
