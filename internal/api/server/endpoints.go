package server

import (
	"cmp"
	"context"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// DeclaredProbes is what the API asks of the probes of declared endpoints.
type DeclaredProbes interface {
	// Answers reports whether a declared url of an account answered the last probe;
	// known is false where none has ended yet.
	Answers(account, url string) (ready, known bool)
}

// unprobed knows of no probe.
type unprobed struct{}

func (unprobed) Answers(string, string) (ready, known bool) { return false, false }

// resolved is an endpoint with its place among the others.
type resolved struct {
	api.Endpoint
	failed bool // when it was asked last
}

// Ranks of endpoints: what answers comes first, and what nobody has asked yet may well
// answer.
const (
	rankReady = iota
	rankUnknown
	rankFailed
)

// listEndpoints says what clients of an account use: the published url of each of its
// servers that is not being destroyed and whose name is ours, and the endpoints that
// were declared, those that answer first. There is no mirror of this to keep in step:
// two owners of one url are two endpoints, and the end of one leaves the other's (L19).
func (s *Server) listEndpoints(ctx context.Context, in *struct{ IDPath }) (out api.List[api.Endpoint], err error) {
	if _, err := s.accounts().read(ctx, in.names()); err != nil {
		return out, err
	}
	if err := s.catchUp(ctx); err != nil {
		return out, err
	}
	all := append(s.derivedEndpoints(in.ID), s.declaredEndpoints(in.ID)...)
	slices.SortStableFunc(all, func(a, b resolved) int { return cmp.Compare(a.rank(), b.rank()) })
	out.Items = []api.Endpoint{}
	for _, e := range all {
		out.Items = append(out.Items, e.Endpoint)
	}
	return out, nil
}

// derivedEndpoints are those of an account's servers, by region.
func (s *Server) derivedEndpoints(account string) []resolved {
	var all []resolved
	list, _ := s.View.Servers(func(k fleet.ServerKey) bool { return k.Account == account })
	for _, g := range list {
		if g.Intent.Deleting != nil || g.Status == nil || g.Status.PublishedURL == "" || g.Status.Withheld != "" {
			continue
		}
		all = append(all, resolved{
			api.Endpoint{URL: g.Status.PublishedURL, Technology: fleet.TechnologyKura, Region: g.Intent.Region, Ready: is(g.Status, fleet.ConditionEndpointReady, fleet.True)},
			is(g.Status, fleet.ConditionEndpointReady, fleet.False),
		})
	}
	return all
}

// declaredEndpoints are those that users declared of an account, by technology and url.
func (s *Server) declaredEndpoints(account string) []resolved {
	var all []resolved
	for _, e := range s.View.CacheEndpoints(account) {
		ready, known := s.Declared.Answers(account, e.URL)
		all = append(all, resolved{api.Endpoint{URL: e.URL, Technology: e.Technology, Ready: ready}, known && !ready})
	}
	return all
}

func (e resolved) rank() int {
	switch {
	case e.Ready:
		return rankReady
	case e.failed:
		return rankFailed
	}
	return rankUnknown
}

func is(status *fleet.Status, t fleet.ConditionType, want fleet.ConditionStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c fleet.Condition) bool { return c.Type == t && c.Status == want })
}
