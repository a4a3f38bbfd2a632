package server

import (
	"sync/atomic"

	"github.com/danielgtaylor/huma/v2"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// OpenAPI returns the document as huma holds it, to check answers against it.
func (s *Server) OpenAPI() *huma.OpenAPI { return s.api.OpenAPI() }

// How many connections there may be.
const Newcomers = newcomers

var ShareOfConnections = shareOfConnections.each

// CountRenders counts from now on how often a server is rendered; nobody may use s yet.
func CountRenders(s *Server) *atomic.Int64 {
	var n atomic.Int64
	render := s.render
	s.render = func(e fleet.Environment, a fleet.Account, r fleet.Region, ts map[string]fleet.HostTemplate, in fleet.Intent, d fleet.Deployment, st *fleet.Status) (fleet.Desired, error) {
		n.Add(1)
		return render(e, a, r, ts, in, d, st)
	}
	return &n
}
