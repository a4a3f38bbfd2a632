package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// auditFile is the name of the audit log in the data directory.
const auditFile = "audit.log"

func auditCommand() *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "Check the audit log"}
	c.AddCommand(auditVerifyCommand())
	return c
}

func auditVerifyCommand() *cobra.Command {
	var (
		t        target
		auditLog string
		after    uint64
		from     storeOptions
	)
	c := &cobra.Command{
		Use:   "verify [FILE...]",
		Short: "Check that no line of the audit log was changed, taken out, added or cut off",
		Long: "Check the chain of the audit log, over all its files: each line names the hash of the one before it, and the\n" +
			"store holds the hash of one near its end. The first line that is wrong is named, and the command fails.\n" +
			"The anchor is asked of the running daemon (with an admin token), or read from the store of a stopped one.\n" +
			"Of files that are named, the chain alone is checked: lines cut off at their end cannot be seen.",
		Example: "  kurad audit verify --data-dir /var/lib/kurad\n  kurad audit verify /backup/audit.log*",
		RunE: func(cmd *cobra.Command, files []string) error {
			if len(files) > 0 {
				return verifyAudit(cmd.OutOrStdout(), fleet.AuditAnchor{}, after, files)
			}
			path := cmp.Or(auditLog, filepath.Join(t.dataDir, auditFile))
			if files, err := audit.Files(path); err != nil {
				return fmt.Errorf("find the audit log: %w", err)
			} else if _, err := os.Stat(filepath.Join(t.dataDir, environmentFile)); err != nil && len(files) == 0 {
				return fmt.Errorf("there is no audit log at %s; name its files, or the data directory with --data-dir", path)
			}
			for _, path := range []string{path, audit.DeniedPath(path)} {
				if err := verifyAnchored(cmd, path, after, &t, &from); err != nil {
					return err
				}
			}
			return nil
		},
	}
	t.flags(c)
	c.Flags().StringVar(&auditLog, "audit-log", "", "file of the audit log; by default <data-dir>/audit.log")
	c.Flags().Uint64Var(&after, "after", 0, "number of a line: what is wrong up to it is known, and the lines behind it are checked")
	from.flags(c.Flags())
	return c
}

// verifyAnchored checks a log against its anchor, which is read first: the log is never
// behind it. Where it seems to be, kurad may just have closed a file: it is read again.
func verifyAnchored(cmd *cobra.Command, path string, after uint64, t *target, from *storeOptions) error {
	var last fleet.AuditAnchor
	for {
		known, err := auditAnchors(cmd.Context(), t, from)
		if err != nil {
			return fmt.Errorf("read where the audit log ended: %w; without it nobody sees that lines were cut off: start kurad, give its --store-endpoints, or name the files", err)
		}
		files, err := audit.Files(path)
		if err != nil {
			return fmt.Errorf("find the audit log: %w", err)
		}
		anchor, anchored := known[anchorName(path, t.dataDir, from.shared())]
		fmt.Fprintf(cmd.OutOrStdout(), "%s\n", path)
		if !anchored {
			fmt.Fprintln(cmd.OutOrStdout(), "the store does not know this log: lines cut off at its end cannot be seen")
		}
		err = verifyAudit(cmd.OutOrStdout(), anchor, after, files)
		if err == nil || anchor == last {
			return err
		}
		last = anchor
	}
}

// auditAnchors reads the anchors from the running daemon, or from the store of a stopped one.
func auditAnchors(ctx context.Context, t *target, from *storeOptions) (known map[string]fleet.AuditAnchor, err error) {
	known = map[string]fleet.AuditAnchor{}
	client, err := t.impatient()
	if err == nil {
		var list []api.AuditAnchor
		if list, err = client.AuditAnchors(ctx); err == nil {
			for _, a := range list {
				known[a.Log] = a.AuditAnchor
			}
			return known, nil
		}
	}
	environment, rerr := os.ReadFile(filepath.Join(t.dataDir, environmentFile))
	if rerr != nil {
		return nil, errors.Join(err, rerr)
	}
	if _, serr := os.Stat(filepath.Join(t.dataDir, "store")); serr != nil && !from.shared() {
		return nil, errors.Join(err, serr)
	}
	s, oerr := from.open(ctx, t.dataDir, strings.TrimSpace(string(environment)), hclog.NewNullLogger())
	if oerr != nil {
		return nil, errors.Join(err, oerr)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	stored, err := store.NewRecords(s, strings.TrimSpace(string(environment))).Anchors(ctx)
	for log, a := range stored {
		known[log] = a.Value
	}
	return known, err
}

func verifyAudit(out io.Writer, anchor fleet.AuditAnchor, after uint64, files []string) error {
	report, err := audit.Verify(anchor, after, files...)
	if fault, ok := errors.AsType[*audit.Fault](err); ok {
		return fmt.Errorf("the audit log is not whole: %w", fault)
	}
	if err != nil {
		return fmt.Errorf("read the audit log: %w", err)
	}
	fmt.Fprintf(out, "%d lines in %d files are whole\n", report.Lines, len(files))
	if report.Lines > 0 {
		fmt.Fprintf(out, "first  %d  %s\nlast   %d  %s  %s\n", report.First, report.From.Format(time.RFC3339), report.Last, report.To.Format(time.RFC3339), report.Hash)
	}
	switch {
	case after > 0:
		fmt.Fprintf(out, "lines up to %d were left out\n", after)
	case report.First > 1:
		fmt.Fprintf(out, "lines 1 to %d are in files that are not here\n", report.First-1)
	}
	if report.Half {
		fmt.Fprintln(out, "half a line follows: kurad writes it just now, or was killed meanwhile; its next start says so in the log")
	}
	return nil
}

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
	*audit.Trail
	log     hclog.Logger
	records *store.Records // nil until the logs were compared with their anchors
	logs    []*anchored
}

// anchored is a log with its anchor as it is stored.
type anchored struct {
	*audit.Log
	name string
	at   store.Versioned[fleet.AuditAnchor]
}

// compare compares the logs with their anchors, by their names in the store, before
// anything is written to them.
func (a *anchors) compare(ctx context.Context, records *store.Records, changes, denied string) error {
	stored, err := records.Anchors(ctx)
	if err != nil {
		return err
	}
	for _, l := range []*anchored{{Log: a.Changes, name: changes}, {Log: a.Denied, name: denied}} {
		l.at = stored[l.name]
		if err := l.Compare(l.at.Value); err != nil {
			return fmt.Errorf("compare the audit log with its anchor: %w", err)
		}
		a.logs = append(a.logs, l)
	}
	a.records = records
	return a.store(ctx)
}

// store stores where the logs end, where that has changed, and then removes the files that
// the anchors leave out: so a log is never behind its anchor.
func (a *anchors) store(ctx context.Context) (err error) {
	for _, l := range a.logs {
		err = errors.Join(err, a.storeOne(ctx, l))
	}
	return err
}

func (a *anchors) storeOne(ctx context.Context, l *anchored) error {
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
}

// run stores the anchors until ctx ends, and tells what was denied meanwhile.
func (a *anchors) run(ctx context.Context) {
	said := false
	for kv.Pause(ctx, anchorEvery) {
		a.Flush()
		err := a.store(ctx)
		if err != nil && !said && ctx.Err() == nil {
			a.log.Warn("the end of the audit log could not be stored; tried again each second", "error", err)
		}
		said = err != nil
	}
}

// close ends the logs, and stores where.
func (a *anchors) close() error {
	err := a.Trail.Close()
	ctx, cancel := context.WithTimeout(context.Background(), anchorWithin)
	defer cancel()
	return errors.Join(err, a.store(ctx))
}
