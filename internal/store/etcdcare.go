package store

import (
	"context"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/pkg/v3/featuregate"
	"go.etcd.io/etcd/server/v3/embed"
)

const (
	careInterval    = 10 * time.Minute
	defragThreshold = 64 << 20 // do not block writes for less than this
	fullPercent     = 80       // of the quota: Health says Full
)

// Health says how the store is doing.
type Health struct {
	Size  int64 // of the file, which the quota limits
	InUse int64 // of it
	Quota int64
	// Full is set from 80 % of the quota on, and while writes are refused.
	Full bool
	// Refusing is set while the quota's alarm refuses writes.
	Refusing bool
}

// Health returns how the store is doing.
func (e *Embedded) Health(ctx context.Context) (Health, error) {
	alarms, err := e.client.AlarmList(ctx)
	if err != nil {
		return Health{}, e.translate(ctx, err)
	}
	backend := e.etcd.Server.Backend()
	h := Health{Size: backend.Size(), InUse: backend.SizeInUse(), Quota: e.quota}
	for _, a := range alarms.Alarms {
		h.Refusing = h.Refusing || a.Alarm == etcdserverpb.AlarmType_NOSPACE
	}
	h.Full = h.Refusing || h.Size >= h.Quota/100*fullPercent
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
		if _, err := e.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
			return fmt.Errorf("lift the quota's alarm: %w", e.translate(ctx, err))
		}
		e.log.Info("the store has room again and takes writes", "bytes", h.Size, "quota", h.Quota)
	}
	return nil
}

func (e *Embedded) maintain() {
	ticker := time.NewTicker(careInterval)
	defer ticker.Stop()
	for {
		if err := e.Care(e.life); err != nil && e.life.Err() == nil {
			e.log.Warn("cannot look after the store, trying again later", "error", err, "interval", careInterval)
		}
		select {
		case <-ticker.C:
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
