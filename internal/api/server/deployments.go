package server

import (
	"context"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// NewestInput is what a list takes that is bounded by itself and answered as one page.
type NewestInput struct {
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"1000" doc:"The newest so many."`
}

type deploymentsInput struct {
	KeyPath
	NewestInput
}

func (s *Server) listDeployments(ctx context.Context, in *deploymentsInput) (page api.List[fleet.Deployment], err error) {
	if _, err := s.gather(ctx, in.key()); err != nil {
		return page, err
	}
	// The store keeps a bounded number of them: one page, newest first.
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	l, err := s.Records.Deployments(ctx, in.key(), store.PageOptions{})
	page, err = pageOf(s, l, err, func(v store.Versioned[fleet.Deployment]) fleet.Deployment { return v.Value })
	slices.Reverse(page.Items)
	page.Items = page.Items[:min(len(page.Items), in.Limit)]
	return page, err
}
