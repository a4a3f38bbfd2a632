package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

func tokenRecoverCommand() *cobra.Command {
	var (
		environment, dataDir, auditLog string
		from                           storeOptions
	)
	c := &cobra.Command{
		Use:   "recover",
		Short: "Write another admin token to the data directory of a stopped daemon",
		Long: "Write another admin token to <data-dir>/token, where every token that could make one is lost. The daemon\n" +
			"must be stopped: the command opens its store. The audit log says that it was done. Revoke the lost token\n" +
			"afterwards (kurad token list, kurad token revoke).",
		Example: "  systemctl stop kurad\n  kurad token recover --environment production --data-dir /var/lib/kurad",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if environment == "" {
				return errors.New("no environment is given: set --environment to that of the daemon")
			}
			if _, err := os.Stat(dataDir); err != nil {
				return fmt.Errorf("find the data directory: %w; name it with --data-dir", err)
			}
			if err := checkDataDir(dataDir, environment); err != nil {
				return err
			}
			log, err := audit.Open(audit.Config{Path: cmp.Or(auditLog, filepath.Join(dataDir, auditFile))})
			if err != nil {
				return fmt.Errorf("%w (is the daemon stopped?)", err)
			}
			defer func() { err = errors.Join(err, log.Close()) }()
			s, err := from.open(cmd.Context(), dataDir, environment, hclog.NewNullLogger())
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, s.Close()) }()
			records := store.NewRecords(s, environment)
			there, err := records.Tokens(cmd.Context(), store.PageOptions{Limit: 1})
			if err != nil {
				return err
			}
			if len(there.Items)+len(there.Problems) == 0 {
				return fmt.Errorf("the store has no token of environment %q, so there is none to recover: correct --environment, or start kurad, which makes the first one", environment)
			}
			if err := records.Prepare(cmd.Context()); err != nil {
				return fmt.Errorf("prepare the store: %w", err)
			}
			path, err := server.NewTokens(records, time.Now).Recover(cmd.Context(), dataDir, func(made fleet.Token) error {
				return log.Write(audit.Entry{Time: made.CreatedAt, Event: audit.EventCommand, TokenID: made.ID, TokenName: made.Name, Scope: string(made.Scope), Reason: "kurad token recover makes an admin token"}, true)
			})
			if err != nil {
				return fmt.Errorf("recover the token: %w", err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "a new admin token is in %s; start kurad again\n", path)
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&environment, "environment", os.Getenv("KURA_ENVIRONMENT"), "environment of the daemon (KURA_ENVIRONMENT)")
	f.StringVar(&dataDir, "data-dir", defaultDataDir(), "data directory of the daemon (KURA_DATA_DIR)")
	f.StringVar(&auditLog, "audit-log", "", "file of the audit log; by default <data-dir>/audit.log")
	from.flags(f)
	return c
}
