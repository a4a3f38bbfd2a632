package server

import (
	"context"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

type orphansOutput struct{ Body api.Orphans }

// listOrphans lists containers with labels of this environment whose server is not
// declared: left by a record that was lost or abandoned. Nothing removes them.
func (s *Server) listOrphans(ctx context.Context, _ *struct{}) (*orphansOutput, error) {
	if err := s.catchUp(ctx); err != nil {
		return nil, err
	}
	// The listings first: a server that is declared meanwhile has no orphans.
	listings := s.turns.Listings()
	declared := map[fleet.ServerKey]bool{}
	for _, key := range s.view.ServerKeys() {
		declared[key] = true
	}
	sees := visible(ctx)
	out := &orphansOutput{api.Orphans{Items: []api.Orphan{}}}
	for _, name := range s.runtimes.ContainerEndpoints() {
		i := slices.IndexFunc(listings, func(l fleet.Listing) bool { return l.Endpoint == name })
		if i < 0 || listings[i].Begun.IsZero() && listings[i].Unreadable == nil {
			out.Body.Unreadable = append(out.Body.Unreadable, api.UnreadableEndpoint{Endpoint: name, Reason: fleet.ReasonNotObservedYet, Message: "it was not listed yet by the kurad that answers"})
			continue
		}
		l := listings[i]
		if u := l.Unreadable; u != nil {
			out.Body.Unreadable = append(out.Body.Unreadable, api.UnreadableEndpoint{Endpoint: name, Reason: u.Reason, Message: u.Message, Since: timeOf(u.Since)})
		}
		for _, c := range l.Containers {
			if c.Foreign != "" || declared[fleet.ServerKey{Account: c.Account, Region: c.Region}] || !sees(c.Account) {
				continue
			}
			out.Body.Items = append(out.Body.Items, api.Orphan{
				Endpoint: name, Name: c.Name, ID: c.ID, Image: c.Image, State: c.State,
				Account: c.Account, Region: c.Region, Service: c.Service, Since: timeOf(l.Since[c.ID]),
			})
		}
	}
	return out, nil
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
