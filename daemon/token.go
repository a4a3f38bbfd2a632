package main

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
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
		fmt.Fprintf(cmd.ErrOrStderr(), "token %s (%s), scope %s; it is shown this once\n", made.ID, made.Name, reach(made.TokenInfo))
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
		out := newTable()
		out.AppendHeader(table.Row{"Id", "Name", "Scope", "State", "Made"})
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
			out.AppendRow(table.Row{k.ID, k.Name, reach(k), state, age(k.CreatedAt) + " ago"})
		}
		render(cmd.OutOrStdout(), out)
		return nil
	})
}

// reach says what a token may do.
func reach(t api.TokenInfo) string {
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
