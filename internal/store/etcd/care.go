package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/pkg/v3/featuregate"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

const (
	careInterval    = 10 * time.Minute
	lookInterval    = 10 * time.Second
	keptAtLeast     = time.Minute // that old revisions are kept, for polls and pages, but in a full store
	grownPercent    = 2           // of the quota: what is forgotten early is more than this
	defragThreshold = 64 << 20    // do not block writes for less than this
	fullPercent     = 80          // of the quota: Health says Full
	reservePercent  = 90          // of the quota: Health says Reserved
)

// Health implements Store: the fullest of the members that answer. It costs a look in
// memory; asking for alarms by themselves would be an entry of the log.
func (c *client) Health(ctx context.Context) (kv.Health, error) {
	ctx, done := c.within(ctx)
	defer done()
	endpoints := c.api.Endpoints()
	if len(endpoints) == 0 {
		endpoints = []string{""} // the embedded one has no name
	}
	var h kv.Health
	var failed error
	for _, endpoint := range endpoints {
		status, err := c.api.Status(ctx, endpoint)
		if err != nil {
			failed = err
			continue
		}
		for _, alarm := range status.Errors {
			h.Refusing = h.Refusing || strings.Contains(alarm, etcdserverpb.AlarmType_NOSPACE.String())
		}
		if status.DbSize > h.Size {
			h.Size, h.InUse, h.Quota = status.DbSize, status.DbSizeInUse, status.DbSizeQuota
		}
	}
	if h.Size == 0 {
		return h, c.translate(ctx, failed)
	}
	h.Reserved = h.Quota > 0 && h.Size >= h.Quota/100*reservePercent
	h.Full = h.Refusing || h.Quota > 0 && h.Size >= h.Quota/100*fullPercent
	return h, nil
}

// Care gives unused space back to the disk and lifts the quota's alarm where there is
// room again. The store does so by itself every ten minutes and when it starts.
func (e *Embedded) Care(ctx context.Context) error {
	h, err := e.Health(ctx)
	if err != nil {
		return err
	}
	if unused := h.Size - h.InUse; unused > h.InUse && unused >= defragThreshold || h.Full && unused > 0 {
		if err := e.etcd.Server.Backend().Defrag(); err != nil {
			return fmt.Errorf("defragment the store: %w", err)
		}
		after := e.etcd.Server.Backend().Size()
		e.log.Info("defragmented the store", "bytes_before", h.Size, "bytes_after", after)
		h.Size = after
	}
	if h.Refusing && h.Size < h.Quota/100*fullPercent {
		if _, err := e.api.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
			return fmt.Errorf("lift the quota's alarm: %w", e.translate(ctx, err))
		}
		e.log.Info("the store has room again and takes writes", "bytes", h.Size, "quota", h.Quota)
	}
	return nil
}

// growth is how the store has grown since old revisions were forgotten.
type growth struct {
	mu    sync.Mutex
	from  int64  // bytes in use at the least since then; 0: not known yet
	marks []mark // of the last minute, the oldest first
}

// mark is the revision of a moment.
type mark struct {
	at       time.Time
	revision int64
}

// Look forgets old revisions early where what was written since is more than a small part of
// the quota (G12): time alone lets those of half an hour fill it. Whoever needs one that is
// gone lists again. A full store is given its unused space back at once. The store does so by
// itself every ten seconds.
func (e *Embedded) Look(ctx context.Context, now time.Time) error {
	g := &e.growth
	g.mu.Lock()
	defer g.mu.Unlock()
	h, err := e.Health(ctx)
	if err != nil {
		return err
	}
	if g.from == 0 || h.InUse < g.from {
		g.from = h.InUse
	}
	kept := now.Add(-keptAtLeast)
	if h.Full {
		kept = now
	}
	var old mark
	for len(g.marks) > 0 && !g.marks[0].at.After(kept) {
		old, g.marks = g.marks[0], g.marks[1:]
	}
	g.marks = append(g.marks, mark{now, e.etcd.Server.KV().Rev()})
	if h.InUse-g.from > h.Quota/100*grownPercent && old.revision > e.etcd.Server.KV().FirstRev() {
		if err := e.Compact(ctx, old.revision); err != nil && !errors.Is(err, kv.ErrCompacted) {
			return fmt.Errorf("forget old revisions: %w", err)
		}
		e.log.Debug("forgot old revisions early", "bytes_in_use", h.InUse, "grown_by", h.InUse-g.from)
		g.from = 0
	} else if old.revision > 0 {
		g.marks = append([]mark{old}, g.marks...) // still the newest that is old enough
	}
	if h.Full && h.Size-h.InUse > h.Size/4 {
		return e.Care(ctx)
	}
	return nil
}

func (e *Embedded) maintain() {
	care, look := time.NewTicker(careInterval), time.NewTicker(lookInterval)
	defer care.Stop()
	defer look.Stop()
	err := e.Care(e.life)
	for {
		if err != nil && e.life.Err() == nil {
			e.log.Warn("cannot look after the store, trying again later", "error", err)
		}
		select {
		case <-care.C:
			err = e.Care(e.life)
		case now := <-look.C:
			err = e.Look(e.life, now)
		case <-e.life.Done():
			return
		}
	}
}

func setGates(cfg *embed.Config, gates string) error {
	mutable, ok := cfg.ServerFeatureGate.(featuregate.MutableFeatureGate)
	if !ok {
		return fmt.Errorf("etcd takes no feature gates any more (%s)", gates)
	}
	return mutable.Set(gates)
}
