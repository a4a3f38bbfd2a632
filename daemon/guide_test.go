package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

// Every command of the guide is run, in its order, in a zone in which production has a host of
// staging's and staging has one from before it had a suffix. What tofu plans and applies is asked
// of the API as the provider does.
func TestD6_theGuideOfHostsDoesWhatItSays(t *testing.T) {
	guide, err := os.ReadFile("../templates/guides/hosts.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(guide), "kura.example.dev", "kura.test")
	var commands []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for line := range strings.Lines(block[1]) {
			if line = strings.TrimSpace(line); line != "" {
				commands = append(commands, line)
			}
		}
	}
	pattern := regexp.MustCompile(`pattern = "(.*)"`).FindStringSubmatch(text)
	if pattern == nil {
		t.Fatal("the guide has no pattern")
	}

	const host, stale, theirs = "acme-eu-staging.kura.test", "old-eu.kura.test", "acme-eu.kura.test"
	p, cf := inZone(t, func(cf *cloudflare.Emulator) {
		seedHost(t, cf, "kura-production", "kura-production/eu/acme", host)
		seedHost(t, cf, "kura-production", "kura-production/eu/acme", theirs)
		seedHost(t, cf, "kura-staging", "ingress/kura/kura-acme-eu", stale)
	})
	put := func(pattern string, dry bool) string {
		t.Helper()
		out, err := p.client.PutHostTemplate(t.Context(), fleet.HostTemplate{Name: "public", Pattern: pattern}, api.PutOptions{DryRun: dry})
		if err != nil {
			t.Fatal(err)
		}
		var said []string
		for _, w := range out.Warnings {
			said = append(said, w.Detail)
		}
		return strings.Join(said, "\n")
	}
	put("{account_handle}-of-{cluster_id}{env_suffix}.kura.test", false) // as the fleet was
	audited(t, p.client, stale, fleet.FindingStale)
	steps := []struct {
		command string
		code    int
		says    []string
	}{
		{"kurad dns audit", exitFindings, []string{stale, "unwanted-stale"}},
		{"kurad dns audit --kind unwanted-stale", exitFindings, []string{stale}},
		{"tofu plan", 0, []string{"server acme/eu moves from acme-of-eu-staging.kura.test to " + host, host + ` belongs to "kura-production" of environment "production"`}},
		{"tofu apply", 0, nil},
		{"kurad status", 0, []string{"acme/eu"}},
		{"kurad dns prune --zone kura.test", exitError, []string{stale, "ingress/kura/kura-acme-eu"}},
		{"kurad dns prune --zone kura.test --yes", 0, []string{"deleted: " + stale + "\n"}},
		{"kurad dns audit", exitFindings, []string{host, "wanted-foreign", "kura-production"}},
		{"kurad dns take " + host + " --from kura-production", exitError, []string{"owner=kura-staging"}},
		{"kurad dns take " + host + " --from kura-production --yes", 0, []string{"taken: host " + host}},
	}
	for i, step := range steps {
		if i >= len(commands) || commands[i] != step.command {
			t.Fatalf("the guide's commands are %q, want as number %d %q", commands, i+1, step.command)
		}
		var out string
		var err error
		if args := strings.Fields(step.command); args[0] == "kurad" {
			out, _, err = kuradCommand(t, args[1:]...)
		} else {
			out = put(pattern[1], args[1] == "plan")
		}
		if exitCode(err) != step.code {
			t.Errorf("%s ends with %d: %v", step.command, exitCode(err), err)
		}
		for _, says := range step.says {
			if !strings.Contains(out, says) {
				t.Errorf("%s does not say %q:\n%s", step.command, says, out)
			}
		}
		if strings.HasPrefix(step.command, "kurad dns audit") && strings.Contains(out, " "+theirs+" ") {
			t.Errorf("%s lists what is production's alone:\n%s", step.command, out)
		}
	}
	if len(commands) != len(steps) {
		t.Errorf("the guide has further commands: %q", commands[len(steps):])
	}
	for _, name := range []string{theirs, "a-" + theirs} {
		if len(cf.Records(name, "")) != 1 {
			t.Errorf("production's %s was touched", name)
		}
	}
}
