package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

const (
	// anchorEvery is how often the anchors of the audit logs are stored, at most.
	anchorEvery = time.Second
	// anchorWithin bounds storing them at the end.
	anchorWithin = 2 * time.Second
)

// anchorName names an audit log in the store. Where several kurads share the store, each
// has its own.
func anchorName(path, dataDir string, shared bool) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	if shared {
		host, _ := os.Hostname()
		return host + ":" + path
	}
	// The store is in the data directory, which may move.
	if abs, err := filepath.Abs(dataDir); err == nil {
		if rel, err := filepath.Rel(abs, path); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return path
}

// anchors keep the end of the audit logs in the store (G10).
type anchors struct {
	records *store.Records
	trail   *audit.Trail
	logs    []*anchored
	log     hclog.Logger
}

// anchored is a log with its anchor as it is stored.
type anchored struct {
	*audit.Log
	name string
	at   store.Versioned[fleet.AuditAnchor]
}

// openAnchors compares the logs with their anchors, by their names in the store, before
// anything is written to them.
func openAnchors(ctx context.Context, records *store.Records, trail *audit.Trail, changes, denied string, log hclog.Logger) (*anchors, error) {
	stored, err := records.Anchors(ctx)
	if err != nil {
		return nil, err
	}
	a := &anchors{records: records, trail: trail, log: log}
	for _, l := range []*anchored{
		{Log: trail.Changes, name: changes},
		{Log: trail.Denied, name: denied},
	} {
		l.at = stored[l.name]
		if err := l.Compare(l.at.Value); err != nil {
			return nil, fmt.Errorf("compare the audit log with its anchor: %w", err)
		}
		a.logs = append(a.logs, l)
	}
	return a, a.store(ctx)
}

// store stores where the logs end, where that has changed, and then removes the files that
// the anchors leave out: so a log is never behind its anchor.
func (a *anchors) store(ctx context.Context) error {
	var errs []error
	for _, l := range a.logs {
		errs = append(errs, func() error {
			mark, err := l.Mark()
			if err != nil || mark == l.at.Value {
				return err
			}
			if l.at, err = a.records.PutAnchor(ctx, l.name, l.at, mark); err != nil {
				if stored, rerr := a.records.Anchors(ctx); rerr == nil { // it may be there by now
					l.at = stored[l.name]
				}
				return fmt.Errorf("store the anchor of the audit log: %w", err)
			}
			return l.Prune(mark.First)
		}())
	}
	return errors.Join(errs...)
}

// run stores the anchors until ctx ends, and tells what was denied meanwhile.
func (a *anchors) run(ctx context.Context) {
	ticker := time.NewTicker(anchorEvery)
	defer ticker.Stop()
	said := false
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		a.trail.Flush()
		err := a.store(ctx)
		if err != nil && !said && ctx.Err() == nil {
			a.log.Warn("the end of the audit log could not be stored; tried again each second", "error", err)
		}
		said = err != nil
	}
}

// close ends the logs, and stores where.
func (a *anchors) close() error {
	err := a.trail.Close()
	ctx, cancel := context.WithTimeout(context.Background(), anchorWithin)
	defer cancel()
	return errors.Join(err, a.store(ctx))
}
