package store

import (
	"context"
	"encoding/json"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const (
	// countStep is what the size of an object is rounded up to: for its keys, and kurad's memory
	// of it. What is a little larger counts alike.
	countStep = 4 << 10
	// besideServer is what a server counts for besides: its status, 50 events and 50 deployments,
	// and its reservations.
	besideServer = 64 << 10
	// quotaUnsaid is the quota of a store that does not say it: etcd's own.
	quotaUnsaid = 2 << 30
)

// Counts is for how many bytes of the store's quota an object counts, and for whom (G8).
type Counts struct {
	By    string // id of the token; "": nobody
	Bytes int64
}

// Stored is what one token declared of what is stored.
type Stored struct {
	Objects int
	Bytes   int64 // that they count for
}

// Stored returns what a token declared, as the view has it.
func (v *View) Stored(token string) Stored {
	v.mu.RLock()
	defer v.mu.RUnlock()
	return v.state.stored[token]
}

// Quota returns how many bytes the store may take; 0: that could not be asked for yet.
func (r *Records) Quota(ctx context.Context) int64 { return r.fullness(ctx).quota.Load() }

// DeclaredBy makes what the transaction puts from now on declared by a token. Without it the
// transaction is kurad's own, and what it puts counts for whom it did.
func (tx *Tx) DeclaredBy(token string) { tx.by = token }

// Counts says for what the object counted that the transaction puts, and for what it is to.
func (tx *Tx) Counts() (before, after Counts) { return tx.counts[0], tx.counts[1] }

// declare writes an object that callers declare.
func declare[T any](tx *Tx, key string, prev Versioned[T], v T, generation int64) {
	tx.grow(!prev.Exists())
	declared := prev.Declared
	if tx.by != "" {
		if declared.By == "" && prev.Exists() {
			prev.Declared.Bytes = sizeOf(prev.Value)
		}
		declared = fleet.Declared{By: tx.by, Bytes: sizeOf(v)}
		tx.counts = [2]Counts{countsOf(kindOf(key), &prev), countsOf(kindOf(key), &Versioned[T]{Revision: 1, Declared: declared})}
	}
	tx.write(key, prev.Revision, func() ([]byte, error) { return seal(v, declared, generation, prev.CreatedAt, tx.now) })
}

// sizeOf is how much somebody declares, in bytes.
func sizeOf(v any) int64 {
	if intent, ok := v.(fleet.Intent); ok {
		v = intent.Server
	}
	b, _ := json.Marshal(v) // who seals it says why it cannot be written
	return int64(len(b))
}

func countsOf[T any](kind Kind, v *Versioned[T]) Counts {
	if v == nil || !v.Exists() {
		return Counts{}
	}
	c := Counts{v.Declared.By, (v.Declared.Bytes + countStep - 1) / countStep * countStep}
	if kind == KindIntent {
		c.Bytes += besideServer
	}
	return c
}

// counts returns for what counts what the state has in a place.
func (s *state) counts(p place) Counts {
	switch p.kind {
	case KindAccount:
		return countsOf(p.kind, s.accounts[p.name])
	case KindTemplate:
		return countsOf(p.kind, s.templates[p.name])
	case KindRegion:
		return countsOf(p.kind, s.regions[p.name])
	case KindEndpoint:
		return countsOf(p.kind, s.endpoints[accountOf(p)][p.name])
	case KindIntent:
		if v := s.servers[p.server]; v != nil {
			return countsOf(p.kind, v.intent)
		}
	case KindSchema, KindStatus, KindTry, KindClaims, KindDeployment, KindEvent, KindToken, KindReservation, KindReference, KindLock, KindLeader, KindAnchor, KindCluster, KindOrphan:
	}
	return Counts{}
}

// recount adds (1) or takes away (-1) what counts for a token.
func (s *state) recount(c Counts, sign int) {
	if c.By == "" {
		return
	}
	of := s.stored[c.By]
	of.Objects, of.Bytes = of.Objects+sign, of.Bytes+int64(sign)*c.Bytes
	if s.stored[c.By] = of; of.Objects == 0 {
		delete(s.stored, c.By)
	}
}
