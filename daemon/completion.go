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
	servers := listed(func(c *api.Client, ctx context.Context) ([]fleet.ServerView, error) {
		return c.ListServers(ctx, api.ServerFilter{})
	}, serverWord)
	words := strings.Fields(c.Use)
	for _, word := range words[1:] {
		switch strings.ToLower(strings.Trim(word, "[].")) {
		case "account/region":
			c.ValidArgsFunction = names(servers, strings.HasSuffix(word, "..."))
		case "id":
			c.ValidArgsFunction = names(listed((*api.Client).ListTokens, tokenWord), false)
		}
	}
	for flag, values := range map[string]func(context.Context, *api.Client) ([]string, error){
		"account": listed((*api.Client).ListAccounts, func(a api.Account) string { return a.ID }),
		"region":  listed((*api.Client).ListRegions, func(r api.Region) string { return r.Name }),
		"output":  fixed("table", "json"), "scope": fixed(string(fleet.ScopeRead), string(fleet.ScopeWrite), string(fleet.ScopeAdmin)),
		"log-level": fixed("trace", "debug", "info", "warn", "error"), "log-format": fixed("text", "json"),
		"environment": fixed("production", "staging", "canary"),
	} {
		if c.Flags().Lookup(flag) != nil {
			_ = c.RegisterFlagCompletionFunc(flag, names(values, true)) // fails only for a flag that is not there
		}
	}
	for _, sub := range c.Commands() {
		complete(sub)
	}
}

// names asks for words of one kind, unless one was given already and one is all there can be.
func names(ask func(context.Context, *api.Client) ([]string, error), several bool) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !several {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		text := func(flag string) string {
			value, _ := cmd.Flags().GetString(flag) // "" where the command has no such flag
			return value
		}
		t := target{endpoint: text("endpoint"), tokenFile: text("token-file"), caFile: text("ca-certificate"), dataDir: cmp.Or(text("data-dir"), defaultDataDir())}
		c, err := t.impatient()
		if err != nil {
			c = nil // fixed words need no daemon
		}
		ctx, cancel := context.WithTimeout(context.Background(), completionTime)
		defer cancel()
		words, _ := ask(ctx, c)
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

func fixed(words ...string) func(context.Context, *api.Client) ([]string, error) {
	return func(context.Context, *api.Client) ([]string, error) { return words, nil }
}

// listed asks for the words of what is listed; "" is none.
func listed[T any](list func(*api.Client, context.Context) ([]T, error), word func(T) string) func(context.Context, *api.Client) ([]string, error) {
	return func(ctx context.Context, c *api.Client) (words []string, err error) {
		if c == nil {
			return nil, nil
		}
		all, err := list(c, ctx)
		for _, v := range all {
			if w := word(v); w != "" {
				words = append(words, w)
			}
		}
		return words, err
	}
}

func serverWord(s fleet.ServerView) string { return s.Account + "/" + s.Region + "\t" + saidOf(s) }

func tokenWord(t api.TokenInfo) string {
	if t.RevokedAt != nil {
		return ""
	}
	return t.ID + "\t" + t.Name
}
