package main

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// completionTime is how long a shell waits for the daemon's names.
const completionTime = time.Second

// complete teaches every command what can follow: names come from the running daemon, and
// where it does not answer there are none.
func complete(c *cobra.Command) {
	servers := func(c *api.Client, ctx context.Context) ([]fleet.ServerView, error) {
		return c.ListServers(ctx, api.ServerFilter{})
	}
	for _, word := range strings.Fields(c.Use)[1:] {
		switch strings.ToLower(strings.Trim(word, "[].")) {
		case "account/region":
			c.ValidArgsFunction = names(servers, serverWord, strings.HasSuffix(word, "..."))
		case "id":
			c.ValidArgsFunction = names((*api.Client).ListTokens, tokenWord, false)
		}
	}
	words := func(of ...cobra.Completion) cobra.CompletionFunc {
		return cobra.FixedCompletions(of, cobra.ShellCompDirectiveNoFileComp)
	}
	for flag, values := range map[string]cobra.CompletionFunc{
		"account":     names((*api.Client).ListAccounts, func(a api.Account) string { return a.ID }, true),
		"region":      names((*api.Client).ListRegions, func(r api.Region) string { return r.Name }, true),
		"kind":        words(kinds()...),
		"output":      words("table", "json"),
		"scope":       words(string(fleet.ScopeRead), string(fleet.ScopeWrite), string(fleet.ScopeAdmin)),
		"log-level":   words("trace", "debug", "info", "warn", "error"),
		"log-format":  words("text", "json"),
		"environment": words("production", "staging", "canary"),
	} {
		if c.Flags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, values) // fails only for a flag that is not there
		}
	}
	for _, sub := range c.Commands() {
		complete(sub)
	}
}

// names completes by the words of what the daemon lists ("" is none), unless one was given
// already and one is all there can be.
func names[T any](list func(*api.Client, context.Context) ([]T, error), word func(T) string, several bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		flag := func(name string) string {
			value, _ := cmd.Flags().GetString(name) // "" where the command has no such flag
			return value
		}
		t := target{endpoint: flag("endpoint"), tokenFile: flag("token-file"), caFile: flag("ca-certificate"), dataDir: cmp.Or(flag("data-dir"), defaultDataDir())}
		var words []cobra.Completion
		if c, err := t.impatient(); err == nil && (len(args) == 0 || several) {
			ctx, cancel := context.WithTimeout(context.Background(), completionTime)
			defer cancel()
			all, _ := list(c, ctx)
			for _, v := range all {
				if w := word(v); w != "" {
					words = append(words, w)
				}
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func serverWord(s fleet.ServerView) string { return s.Account + "/" + s.Region + "\t" + verdictText(s) }

func tokenWord(t api.TokenInfo) string {
	if t.RevokedAt != nil {
		return ""
	}
	return t.ID + "\t" + t.Name
}
