package store

import (
	"context"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// releaseAtOnce is how many reservations one transaction of a removal gives back, so
// that the removal of a server with very many stays within MaxOps.
const releaseAtOnce = 64

// CommitTurn stores what one turn of a server decided, as a whole: the status, the
// latest deployment and the events, or the end of the server. It is refused with a
// conflict, and changes nothing, unless the intent, the status and the deployment
// still are the ones that the turn was computed from (P17).
func (r *Records) CommitTurn(ctx context.Context, w fleet.TurnWrite) error {
	if w.Remove {
		return r.removeServer(ctx, w)
	}
	tx := r.Begin()
	tx.grow(w.Status.Status != fleet.StatusDestroying && w.Status.Status != fleet.StatusDestroyed)
	if w.Port == nil {
		tx.compare(kv.Unchanged(intentKey(w.Key), w.IntentRevision))
	} else {
		intent, err := expect[fleet.Intent](ctx, r, intentKey(w.Key), w.IntentRevision)
		if err != nil {
			return err
		}
		tx.PutIntent(intent, intent.Value.MovedPort(*w.Port))
		tx.Claim(w.Key, ReservePort(w.Port.Endpoint, w.Port.To))
		tx.Release(w.Key, ReservePort(w.Port.Endpoint, w.Port.From))
	}
	status, err := expect[fleet.Status](ctx, r, statusKey(w.Key), w.StatusRevision)
	if err != nil {
		return err
	}
	put(tx, statusKey(w.Key), status, w.Status)
	if w.Latest != nil {
		latest, err := expect[fleet.Deployment](ctx, r, deploymentKey(w.Key, w.Latest.Seq), w.LatestRevision)
		if err != nil {
			return err
		}
		tx.PutDeployment(latest, *w.Latest)
	}
	tx.AddEvent(w.Events...)
	if len(w.Freed) > 0 {
		// A renamed account may be about to need a host again, which its write has seen held.
		tx.compare(kv.Unchanged(lockKey, w.UnlockedAt))
		for _, host := range w.Freed {
			tx.Release(w.Key, ReserveHost(host))
		}
	}
	_, err = tx.Commit(ctx)
	return err
}

// CommitTry stores the claim of a try beside the status that it goes on from (G12), under
// the same comparisons as a turn, and returns its revision.
func (r *Records) CommitTry(ctx context.Context, w fleet.TryWrite) (int64, error) {
	tx := r.Begin()
	tx.compare(kv.Unchanged(intentKey(w.Key), w.IntentRevision))
	tx.compare(kv.Unchanged(statusKey(w.Key), w.Try.Status))
	put(tx, tryKey(w.Key), Versioned[fleet.Try]{Revision: w.TryRevision}, w.Try)
	return tx.Commit(ctx)
}

// expect returns the record that a write is about to replace, for its creation time and
// count; a conflict where it is not the one that the writer knew.
func expect[T any](ctx context.Context, r *Records, key string, revision int64) (Versioned[T], error) {
	v, err := fetch[T](ctx, r, key)
	if err == nil && v.Revision != revision {
		err = &kv.ConflictError{Key: r.prefix + key, What: describe(key)}
	}
	return v, err
}

// removeServer ends a server: everything that it has goes, but its events (P18), and its
// hosts stay its account's (H10). All but the last transaction only give reservations back, so a crash in between leaves a
// server that is removed again.
func (r *Records) removeServer(ctx context.Context, w fleet.TurnWrite) error {
	for {
		claims, err := r.Claims(ctx, w.Key)
		if err != nil {
			return err
		}
		held := claims.Value.Held
		last := len(held) <= releaseAtOnce
		held = held[:min(len(held), releaseAtOnce)]

		tx := r.Begin()
		tx.compare(kv.Unchanged(intentKey(w.Key), w.IntentRevision))
		tx.compare(kv.Unchanged(statusKey(w.Key), w.StatusRevision))
		tx.compare(kv.Unchanged(claimsKey(w.Key), claims.Revision))
		if w.Latest != nil {
			tx.compare(kv.Unchanged(deploymentKey(w.Key, w.Latest.Seq), w.LatestRevision))
		}
		if !w.KeptUntil.IsZero() {
			for _, res := range held {
				if _, host := res.Host(); host {
					tx.GiveUp(w.Key, w.KeptUntil, res)
				}
			}
		}
		tx.Release(w.Key, held...)
		if last {
			tx.then = append(tx.then, kv.Delete(intentKey(w.Key)), kv.Delete(statusKey(w.Key)), kv.Delete(tryKey(w.Key)),
				kv.Delete(accountRef(w.Key)), kv.DeletePrefix(deploymentFolder(w.Key)))
			tx.AddEvent(w.Events...)
			tx.departs = &w.Key
		}
		if _, err := tx.Commit(ctx); err != nil || last {
			return err
		}
	}
}
