package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

func tokenCommand() *cobra.Command {
	c := &cobra.Command{Use: "token", Short: "Make, list and revoke API tokens"}
	c.AddCommand(tokenCreateCommand(), tokenListCommand(), tokenRevokeCommand(), tokenRecoverCommand())
	return c
}

func tokenCreateCommand() *cobra.Command {
	var (
		scope   string
		prefix  string
		expires time.Duration
	)
	c := asks(&cobra.Command{
		Use:   "create NAME",
		Short: "Make a token and print it, this once",
		Long: "Make a token and print it, this once. With --account-prefix it may read the version, host templates and\n" +
			"regions, and use its scope on the accounts whose id begins with the prefix, with their servers, endpoints,\n" +
			"events and deployments; lists show it those alone.",
		Example: "  kurad token create terraform --scope write --expires 2160h\n  kurad token create ci --scope write --account-prefix team-a-",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *api.Client, args []string) error {
		made, err := c.CreateToken(cmd.Context(), api.TokenRequest{
			Name: args[0], Scope: fleet.Scope(scope), AccountPrefix: prefix, ExpiresIn: fleet.Duration(expires),
		})
		if err != nil {
			return err
		}
		// The token alone goes to standard output, so that it can be piped.
		fmt.Fprintf(cmd.ErrOrStderr(), "token %s (%s), scope %s; it is shown this once\n", made.ID, made.Name, scopeText(made.TokenInfo))
		fmt.Fprintln(cmd.OutOrStdout(), made.Token.Reveal())
		return nil
	})
	c.Flags().StringVar(&scope, "scope", string(fleet.ScopeRead), "read, write or admin")
	c.Flags().StringVar(&prefix, "account-prefix", "", "limit the token to accounts whose id begins with this, for example team-a-")
	c.Flags().DurationVar(&expires, "expires", 0, "life time, for example 720h; none: until revoked")
	return c
}

func tokenListCommand() *cobra.Command {
	return asks(&cobra.Command{
		Use:   "list",
		Short: "List tokens, without their secrets",
		Args:  cobra.NoArgs,
	}, func(cmd *cobra.Command, c *api.Client, _ []string) error {
		tokens, err := c.ListTokens(cmd.Context())
		if err != nil {
			return err
		}
		out := newTable(cmd.OutOrStdout(), "Id", "Name", "Scope", "State", "Made")
		for _, k := range tokens {
			state := "valid"
			switch {
			case k.RevokedAt != nil:
				state = "revoked " + age(*k.RevokedAt) + " ago"
			case k.ExpiresAt != nil && !k.ExpiresAt.After(time.Now()):
				state = "expired " + age(*k.ExpiresAt) + " ago"
			case k.ExpiresAt != nil:
				state = "until " + k.ExpiresAt.Format(time.RFC3339)
			}
			out.AppendRow(table.Row{k.ID, k.Name, scopeText(k), state, age(k.CreatedAt) + " ago"})
		}
		out.Render()
		return nil
	})
}

// scopeText says what a token may do.
func scopeText(t api.TokenInfo) string {
	if t.AccountPrefix == "" {
		return string(t.Scope)
	}
	return string(t.Scope) + " " + t.AccountPrefix + "*"
}

func tokenRevokeCommand() *cobra.Command {
	return asks(&cobra.Command{
		Use:   "revoke ID",
		Short: "End a token",
		Args:  cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *api.Client, args []string) error {
		if err := c.RevokeToken(cmd.Context(), args[0]); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "token %s is revoked\n", args[0])
		return nil
	})
}

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
