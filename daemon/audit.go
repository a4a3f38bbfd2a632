package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
)

// auditFile is the name of the audit log in the data directory.
const auditFile = "audit.log"

func auditCommand() *cobra.Command {
	c := &cobra.Command{Use: "audit", Short: "Check the audit log"}
	c.AddCommand(auditVerifyCommand())
	return c
}

func auditVerifyCommand() *cobra.Command {
	var dataDir string
	c := &cobra.Command{
		Use:   "verify [FILE...]",
		Short: "Check that no line of the audit log was changed, taken out or added",
		Long: "Check the chain of the audit log, over all its files: each line names the hash of the one before it.\n" +
			"The first line that is wrong is named, and the command fails. Lines cut off at the end cannot be\n" +
			"seen: keep the hash of the last line elsewhere, and compare.",
		Example: "  kurad audit verify --data-dir /var/lib/kurad\n  kurad audit verify /backup/audit.log*",
		RunE: func(cmd *cobra.Command, files []string) error {
			if len(files) == 0 {
				path := filepath.Join(dataDir, auditFile)
				var err error
				if files, err = audit.Files(path); err != nil {
					return fmt.Errorf("find the audit log: %w", err)
				}
				if len(files) == 0 {
					return fmt.Errorf("there is no audit log at %s; name its files, or the data directory with --data-dir", path)
				}
			}
			report, err := audit.Verify(files...)
			if fault, ok := errors.AsType[*audit.Fault](err); ok {
				return fmt.Errorf("the audit log is not whole: %w", fault)
			}
			if err != nil {
				return fmt.Errorf("read the audit log: %w", err)
			}
			out := cmd.OutOrStdout()
			fmt.Fprintf(out, "%d lines in %d files are whole\n", report.Lines, len(files))
			if report.Lines > 0 {
				fmt.Fprintf(out, "first  %d  %s\nlast   %d  %s  %s\n", report.First, report.From.Format(time.RFC3339), report.Last, report.To.Format(time.RFC3339), report.Hash)
			}
			if report.First > 1 {
				fmt.Fprintf(out, "lines 1 to %d are in files that are not here\n", report.First-1)
			}
			if report.Half {
				fmt.Fprintln(out, "half a line follows: kurad writes it just now, or was killed meanwhile; its next start says so in the log")
			}
			return nil
		},
	}
	c.Flags().StringVar(&dataDir, "data-dir", defaultDataDir(), "data directory of the daemon (KURA_DATA_DIR)")
	return c
}
