package server

import (
	"context"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// NamePath names an object by name.
type NamePath struct {
	Name string `path:"name" maxLength:"63"`
}

// showTemplate adds what follows from a pattern here. One that another environment has
// made collide since it was stored has no example.
func (s *Server) showTemplate(v store.Versioned[fleet.HostTemplate]) api.HostTemplate {
	return api.HostTemplate{
		Generation: v.Generation, HostTemplate: v.Value, EnvSuffix: s.env.Suffix,
		Zone: fleet.Zone(v.Value.Pattern), Example: s.env.ExampleHost(v.Value.Pattern),
	}
}

func (s *Server) listTemplates(ctx context.Context, in *PageInput) (*listOutput[api.HostTemplate], error) {
	return listAll(ctx, s, *in, s.records.Templates, s.showTemplate)
}

func (s *Server) template(name string) object[fleet.HostTemplate] {
	return object[fleet.HostTemplate]{
		what: fmt.Sprintf("host template %q", name), name: name, get: s.records.Template,
		protected: func(fleet.HostTemplate) bool { return false },
		remove:    (*store.Tx).DeleteTemplate,
		next:      "delete that region first, or let it name another template",
	}
}

func (s *Server) getTemplate(ctx context.Context, in *struct{ NamePath }) (*objectOutput[api.HostTemplate], error) {
	v, err := s.template(in.Name).read(ctx)
	return &objectOutput[api.HostTemplate]{s.showTemplate(v)}, err
}

type putTemplateInput struct {
	NamePath
	Condition
	Body body[fleet.HostTemplate]
}

func (s *Server) putTemplate(ctx context.Context, in *putTemplateInput) (*putOutput[api.HostTemplate], error) {
	declared, err := in.Body.value()
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("host template %q", in.Name)
	var v fleet.Invalid
	sameName(&v, "/name", in.Name, declared.Name)
	if err := v.Err(what); err != nil {
		return nil, err
	}
	if err := declared.Validate(s.env); err != nil {
		return nil, err
	}
	var w api.Written[api.HostTemplate]
	err = s.alone(ctx, in.DryRun, func(ctx context.Context, lock *store.Lock) (err error) {
		w, err = s.declareTemplate(ctx, lock, what, declared, in.Condition)
		return err
	})
	if err != nil {
		return nil, err
	}
	return written(w, in.DryRun), nil
}

func (s *Server) declareTemplate(ctx context.Context, lock *store.Lock, what string, declared fleet.HostTemplate, c Condition) (w api.Written[api.HostTemplate], err error) {
	prev, err := present(s.records.Template(ctx, declared.Name))
	if err != nil {
		return w, err
	}
	if err := c.check(what, prev.Generation); err != nil {
		return w, err
	}
	if prev.Exists() && equal(prev.Value, declared) {
		return api.Written[api.HostTemplate]{Object: s.showTemplate(prev)}, nil
	}
	next := store.Versioned[fleet.HostTemplate]{Value: declared, Generation: prev.Generation + 1}
	w = api.Written[api.HostTemplate]{Object: s.showTemplate(next), Created: !prev.Exists(), Changed: true}
	if prev.Exists() {
		if w.Warnings, err = s.prepare(ctx, lock, proposal{
			pointer: "/pattern",
			advice:  "choose another pattern, or declare a new template and move regions to it one by one",
			apply: func(g *fleet.Gathered) bool {
				_, uses := g.Templates[declared.Name]
				g.Templates[declared.Name] = declared
				return uses
			},
		}, c.DryRun); err != nil {
			return w, err
		}
	}
	if c.DryRun {
		return w, nil
	}
	tx := s.records.Begin()
	tx.Under(lock)
	tx.PutTemplate(prev, declared)
	_, err = tx.Commit(ctx)
	return w, err
}

type deleteTemplateInput struct {
	NamePath
	Match
}

func (s *Server) deleteTemplate(ctx context.Context, in *deleteTemplateInput) (*struct{}, error) {
	return nil, s.template(in.Name).delete(ctx, s, in.Match)
}
