package store

import (
	"context"
	"fmt"
	"strings"
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

// Health implements Store: the fullest of the members that answer. It costs a look in
// memory; asking for alarms by themselves would be an entry of the log.
func (c *client) Health(ctx context.Context) (Health, error) {
	ctx, done := c.within(ctx)
	defer done()
	endpoints := c.api.Endpoints()
	if len(endpoints) == 0 {
		endpoints = []string{""} // the embedded one has no name
	}
	var h Health
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
