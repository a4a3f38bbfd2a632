package server

import (
	"github.com/danielgtaylor/huma/v2"
)

// OpenAPI returns the document as huma holds it, to check answers against it.
func (s *Server) OpenAPI() *huma.OpenAPI { return s.api.OpenAPI() }

// How many connections there may be.
const Newcomers = newcomers

var ShareOfConnections = shareOfConnections.each
