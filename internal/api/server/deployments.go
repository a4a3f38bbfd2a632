package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// closeDeployment ends a deployment in a transaction if it is open, and returns it as it
// then is. Its comparison keeps a turn that writes it meanwhile from being lost.
func closeDeployment(tx *store.Tx, v store.Versioned[fleet.Deployment], status fleet.DeploymentStatus, message string, now time.Time) fleet.Deployment {
	d := v.Value
	if !v.Exists() || !d.Status.Open() {
		return d
	}
	d.Status, d.Message, d.FinishedAt = status, message, &now
	tx.PutDeployment(v, d)
	return d
}

// NewestInput is what a list takes that is bounded by itself and answered as one page.
type NewestInput struct {
	Limit int `query:"limit" minimum:"1" maximum:"1000" default:"1000" doc:"The newest so many."`
}

type deploymentsInput struct {
	KeyPath
	NewestInput
}

func (s *Server) listDeployments(ctx context.Context, in *deploymentsInput) (*listOutput[fleet.Deployment], error) {
	if _, err := s.gather(ctx, in.key()); err != nil {
		return nil, err
	}
	// The store keeps a bounded number of them: one page, newest first.
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	l, err := s.records.Deployments(ctx, in.key(), store.PageOptions{})
	page, err := pageOf(s, l, err, func(v store.Versioned[fleet.Deployment]) fleet.Deployment { return v.Value })
	if err != nil {
		return nil, err
	}
	slices.Reverse(page.Items)
	page.Items = page.Items[:min(len(page.Items), in.Limit)]
	return &listOutput[fleet.Deployment]{page}, nil
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
	if err := plainName("server "+key.String(), key.Account, key.Region); err != nil {
		return nil, err
	}
	out := &deploymentOutput{Status: http.StatusCreated}
	err := s.beside(ctx, false, func(ctx context.Context, lock *store.Lock) (err error) {
		out.Body, out.Status, err = s.redeployOnce(ctx, lock, key, in.Key, in.Match)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// nextMark is the restart mark of deployment seq. One that was found on a container after
// the record was lost may be of the same number.
func nextMark(seq int64, latest *fleet.Deployment) string {
	mark := fmt.Sprintf("redeploy-%d", seq)
	if latest != nil && latest.RestartMark == mark {
		return mark + "-again"
	}
	return mark
}

func (s *Server) redeployOnce(ctx context.Context, lock *store.Lock, key fleet.ServerKey, idempotency string, m Match) (fleet.Deployment, int, error) {
	g, err := s.records.Gather(ctx, key)
	if err != nil {
		return fleet.Deployment{}, 0, err
	}
	past, err := s.records.Deployments(ctx, key, store.PageOptions{})
	if err != nil {
		return fleet.Deployment{}, 0, err
	}
	for _, d := range past.Items {
		if d.Value.IdempotencyKey == idempotency {
			return d.Value, http.StatusOK, nil
		}
	}
	if g.Intent.Deleting != nil {
		return fleet.Deployment{}, 0, fleet.Errorf(fleet.CodeConflict, "server %s is being destroyed; it cannot be redeployed", key)
	}
	if err := m.check("server "+key.String(), g.Intent.Generation); err != nil {
		return fleet.Deployment{}, 0, err
	}
	if awaitsApply(g) {
		return fleet.Deployment{}, 0, unapplied(key, g.Status)
	}
	now, next := s.now().UTC(), g.Intent
	next.Generation, next.Deployment = next.Generation+1, next.Deployment+1
	d := fleet.Deployment{
		Account: key.Account, Region: key.Region, Seq: next.Deployment, Cause: fleet.DeploymentCauseRedeploy, ImageTag: next.ImageTag,
		Generation: next.Generation, RestartMark: nextMark(next.Deployment, g.Latest), IdempotencyKey: idempotency,
		Status: fleet.DeploymentPending, CreatedAt: now,
	}
	g.Intent, g.Latest = next, &d
	d.ManifestRevision = s.desired(g).Revision
	tx := s.records.Begin()
	prev, err := s.records.Intent(ctx, key)
	if err != nil {
		return d, 0, err
	}
	if prev.Revision != g.IntentRevision {
		return d, 0, &kv.ConflictError{What: "server " + key.String()}
	}
	latest, err := present(s.records.Deployment(ctx, key, prev.Value.Deployment))
	if err != nil {
		return d, 0, err
	}
	tx.Under(lock)
	tx.PutIntent(prev, next)
	closeDeployment(tx, latest, fleet.DeploymentSuperseded, fmt.Sprintf("deployment %d, a redeploy, took its place", d.Seq), now)
	tx.PutDeployment(store.Versioned[fleet.Deployment]{}, d)
	_, err = tx.Commit(ctx)
	return d, http.StatusCreated, err
}
