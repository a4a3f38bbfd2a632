package server

import (
	"context"
	"net/http"
	"strings"
	"unicode"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/declare"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

type putServerInput struct {
	KeyPath
	Condition
	Again bool `query:"again" doc:"Whoever asks saw that the declared version does not serve: one that came to nothing gets another deployment, unless it has healed. A try that is under way is waited for, 15 s at most."`
	Body[fleet.Server]
}

func (in putServerInput) request(ctx context.Context, what string) (declare.Request, error) {
	r, err := in.Condition.request(ctx, what)
	r.Again = in.Again
	return r, err
}

func (s *Server) putServer(ctx context.Context, in *putServerInput) (*putOutput[fleet.ServerView], error) {
	return put(ctx, *in, "server "+in.key().String(), func(v *fleet.Invalid, declared fleet.Server) {
		sameName(v, "/account", in.Account, declared.Account)
		sameName(v, "/region", in.Region, declared.Region)
	}, s.Declare.Server, s.show)
}

type adoptInput struct {
	KeyPath
	DryRun bool `query:"dry_run" doc:"Say what would be taken over and how it differs, write nothing."`
	Body[api.AdoptRequest]
}

func (s *Server) adopt(ctx context.Context, in *adoptInput) (*putOutput[fleet.ServerView], error) {
	named, err := in.value()
	if err != nil {
		return nil, err
	}
	req := declare.Request{By: caller(ctx), DryRun: in.DryRun}
	r, err := s.Declare.Adopt(ctx, req, in.key(), declare.Adoption{ImageTag: named.ImageTag, Containers: named.Containers})
	if err != nil {
		return nil, err
	}
	return written(r, req.DryRun, s.show), nil
}

type deleteServerInput struct {
	KeyPath
	Match
}

func (s *Server) deleteServer(ctx context.Context, in *deleteServerInput) (view fleet.ServerView, err error) {
	req, err := in.request(ctx, "server "+in.key().String())
	if err != nil {
		return view, err
	}
	if _, err := s.gather(ctx, in.key()); err != nil {
		return view, err
	}
	g, err := s.Declare.Destroy(ctx, req, in.key())
	if err != nil {
		return view, err
	}
	return s.show(g), nil
}

type redeployInput struct {
	KeyPath
	Match
	Key string `header:"Idempotency-Key" maxLength:"128" doc:"Required. The same key answers with the same deployment for as long as that is among those kept."`
}

type deploymentOutput struct {
	Status int
	Body   fleet.Deployment
}

func (s *Server) redeploy(ctx context.Context, in *redeployInput) (*deploymentOutput, error) {
	key := in.key()
	if in.Key == "" || strings.ContainsFunc(in.Key, func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsGraphic(r) }) {
		return nil, fleet.Errorf(fleet.CodeInvalid, "redeploy server %s: the header Idempotency-Key is required, 1 to 128 printable characters, new for every redeploy that is meant", key)
	}
	req, err := in.request(ctx, "server "+key.String())
	if err != nil {
		return nil, err
	}
	if err := plainName("server "+key.String(), key.Account, key.Region); err != nil {
		return nil, err
	}
	r, err := s.Declare.Redeploy(ctx, req, key, in.Key)
	if err != nil {
		return nil, err
	}
	out := &deploymentOutput{Status: http.StatusOK, Body: r.Object}
	if r.Created {
		out.Status = http.StatusCreated
	}
	return out, nil
}
