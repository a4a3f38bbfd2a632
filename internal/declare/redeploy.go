package declare

import (
	"context"
	"fmt"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// Redeploy makes a new deployment of the present image (P12). The same key of the caller's
// answers with the same deployment.
func (d *Declarer) Redeploy(ctx context.Context, req Request, key fleet.ServerKey, idempotency string) (out Result[fleet.Deployment], err error) {
	err = d.beside(ctx, false, func(ctx context.Context, lock *store.Lock) (err error) {
		out, err = d.redeploy(ctx, lock, req, key, idempotency)
		return err
	})
	return out, err
}

func (d *Declarer) redeploy(ctx context.Context, lock *store.Lock, req Request, key fleet.ServerKey, idempotency string) (out Result[fleet.Deployment], err error) {
	g, err := d.records.Gather(ctx, key)
	if err != nil {
		return out, err
	}
	past, err := d.records.Deployments(ctx, key, store.PageOptions{})
	if err != nil {
		return out, err
	}
	for _, p := range past.Items {
		if p.Value.IdempotencyKey == idempotency {
			out.Object = p.Value
			return out, nil
		}
	}
	if g.Intent.Deleting != nil {
		return out, fleet.Errorf(fleet.CodeConflict, "server %s is being destroyed; it cannot be redeployed", key)
	}
	if err := req.check("server "+key.String(), g.Intent.Generation); err != nil {
		return out, err
	}
	if awaitsApply(g) {
		return out, unapplied(key, g.Status)
	}
	n, err := d.neighbours(ctx, key)
	if err != nil {
		return out, err
	}
	stored, err := d.storeServer(ctx, lock, req, change{declared: g.Intent.Server, near: n, prev: g, again: true, key: idempotency})
	if err == nil {
		out = Result[fleet.Deployment]{Object: *stored.Object.Latest, Created: true, Changed: true}
	}
	return out, err
}

// intentOf returns a server's declaration as a write replaces it.
func intentOf(g fleet.Gathered) store.Versioned[fleet.Intent] {
	return store.Versioned[fleet.Intent]{Value: g.Intent, Revision: g.IntentRevision, CreatedAt: g.Intent.CreatedAt, Declared: g.Declared}
}

// latestOf returns a server's latest deployment as a write replaces it, zero where there is
// none.
func latestOf(g fleet.Gathered) (v store.Versioned[fleet.Deployment]) {
	if g.Latest != nil {
		v = store.Versioned[fleet.Deployment]{Value: *g.Latest, Revision: g.LatestRevision, CreatedAt: g.Latest.CreatedAt}
	}
	return v
}

// nextMark is the restart mark of deployment seq. What runs may bear that of an equal number,
// from before its record was lost.
func nextMark(seq int64, now time.Time) string { return fmt.Sprintf("redeploy-%d-%d", seq, now.Unix()) }

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
