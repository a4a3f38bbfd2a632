package server

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

func (s *Server) listTokens(ctx context.Context, in *NewestInput) (api.List[api.TokenInfo], error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	all, err := s.Tokens.List(ctx) // a bounded number: one page
	return api.List[api.TokenInfo]{Items: all[:min(len(all), in.Limit)]}, err
}

// writeTimeout bounds a write of a token as a whole.
const writeTimeout = 30 * time.Second

// issuedToken is the one answer that holds a secret.
type issuedToken struct {
	api.TokenInfo
	Token string `json:"token"`
}

func (s *Server) listAnchors(ctx context.Context, _ *struct{}) (api.List[api.AuditAnchor], error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	anchors, err := s.Records.Anchors(ctx) // a bounded number: one page
	out := api.List[api.AuditAnchor]{Items: []api.AuditAnchor{}}
	for _, log := range slices.Sorted(maps.Keys(anchors)) {
		a := anchors[log]
		out.Items = append(out.Items, api.AuditAnchor{Log: log, AuditAnchor: a.Value, WrittenAt: a.UpdatedAt})
	}
	return out, err
}

type createTokenInput struct{ Body[api.TokenRequest] }

func (s *Server) createToken(ctx context.Context, in *createTokenInput) (out issuedToken, err error) {
	r, err := in.value()
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	made, secret, err := s.Tokens.Create(ctx, caller(ctx).Name, r)
	return issuedToken{made, secret.Reveal()}, err
}

func (s *Server) revokeToken(ctx context.Context, in *struct{ IDPath }) (*struct{}, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return nil, s.Tokens.Revoke(ctx, in.ID)
}
