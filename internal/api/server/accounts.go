package server

import (
	"context"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// IDPath names an object by id. It is exported for huma, which passes over what is not.
type IDPath struct {
	ID string `path:"id" maxLength:"63"`
}

func showAccount(v store.Versioned[fleet.Account]) api.Account {
	return api.Account{Generation: v.Generation, Account: v.Value}
}

func (s *Server) listAccounts(ctx context.Context, in *PageInput) (*listOutput[api.Account], error) {
	return listAll(ctx, s, *in, seen(ctx, s.records.Accounts, func(a fleet.Account) string { return a.ID }), showAccount)
}

func (s *Server) account(id string) object[fleet.Account] {
	return object[fleet.Account]{
		what: fmt.Sprintf("account %q", id), name: id, get: s.records.Account,
		protected: func(a fleet.Account) bool { return a.DeletionProtection },
		mayGo:     s.mayDelete,
		remove: func(tx *store.Tx, v store.Versioned[fleet.Account]) {
			tx.DeleteAccount(v)
			for _, name := range v.Value.Names() {
				tx.KeepHandle(v.Value.ID, name, s.now().UTC().Add(s.aliases))
			}
		},
		next: "destroy its servers first and wait until they are gone, and delete its cache endpoints",
	}
}

func (s *Server) getAccount(ctx context.Context, in *struct{ IDPath }) (*objectOutput[api.Account], error) {
	v, err := s.account(in.ID).read(ctx)
	return &objectOutput[api.Account]{showAccount(v)}, err
}

type putAccountInput struct {
	IDPath
	Condition
	Body body[fleet.Account]
}

func (s *Server) putAccount(ctx context.Context, in *putAccountInput) (*putOutput[api.Account], error) {
	declared, err := in.Body.value()
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("account %q", in.ID)
	var v fleet.Invalid
	sameName(&v, "/id", in.ID, declared.ID)
	if err := v.Err(what); err != nil {
		return nil, err
	}
	if err := declared.Validate(); err != nil {
		return nil, err
	}
	var w api.Written[api.Account]
	err = s.alone(ctx, in.DryRun, func(ctx context.Context, lock *store.Lock) (err error) {
		w, err = s.declareAccount(ctx, lock, what, declared, in.Condition)
		return err
	})
	if err != nil {
		return nil, err
	}
	return written(w, in.DryRun), nil
}

func (s *Server) declareAccount(ctx context.Context, lock *store.Lock, what string, declared fleet.Account, c Condition) (w api.Written[api.Account], err error) {
	prev, err := present(s.records.Account(ctx, declared.ID))
	if err != nil {
		return w, err
	}
	if err := c.check(what, prev.Generation); err != nil {
		return w, err
	}
	if prev.Exists() && equal(prev.Value, declared) {
		return api.Written[api.Account]{Object: showAccount(prev)}, nil
	}
	w = api.Written[api.Account]{Object: api.Account{Generation: prev.Generation + 1, Account: declared}, Created: !prev.Exists(), Changed: true}
	given, err := s.namesFree(ctx, what, prev.Value, declared)
	if err != nil {
		return w, err
	}
	if prev.Exists() && prev.Value.PublicHandle() != declared.PublicHandle() {
		if w.Warnings, err = s.prepare(ctx, lock, proposal{
			pointer: "/handle",
			advice:  "choose another handle",
			keep:    func(k fleet.ServerKey) bool { return k.Account == declared.ID },
			apply:   func(g *fleet.Gathered) bool { g.Account = &declared; return true },
		}, c.DryRun); err != nil {
			return w, err
		}
	}
	if c.DryRun {
		return w, nil
	}
	tx := s.records.Begin()
	tx.Under(lock)
	tx.PutAccount(prev, declared)
	for _, name := range declared.Names() {
		tx.ForgetHandle(name)
	}
	for _, name := range given {
		tx.KeepHandle(declared.ID, name, s.now().UTC().Add(s.aliases))
	}
	_, err = tx.Commit(ctx)
	return w, err
}

type deleteAccountInput struct {
	IDPath
	Match
}

func (s *Server) deleteAccount(ctx context.Context, in *deleteAccountInput) (*struct{}, error) {
	return nil, s.account(in.ID).delete(ctx, s, in.Match)
}
