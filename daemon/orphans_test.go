package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestOrphans_printsThemAndWhatCannotBeRead(t *testing.T) {
	since := time.Now().Add(-3 * time.Minute)
	orphan := api.Orphan{
		Endpoint: "eu-1", Name: "kura-acme-eu-cache-staging", ID: strings.Repeat("a", 64), Image: "localhost/kura:v1",
		State: fleet.ContainerRunning, Account: "acme", Region: "eu", Service: "cache", Since: &since,
	}
	away := api.UnreadableEndpoint{Endpoint: "eu-2", Reason: fleet.ReasonEndpointUnreachable, Message: "connection refused", Since: &since}
	instance := api.Orphan{
		Cluster: "prod", Namespace: "kura", Name: "kura-acme-eu", ID: "0fa1", Image: "localhost/kura:v1", Phase: "Ready",
		Account: "acme", Region: "eu", Since: &since, Deletes: true,
	}
	hidden := api.UnreadableEndpoint{Cluster: "prod", Namespace: "kura", Reason: fleet.ReasonRuntimeRefused, Message: "Unauthorized", Since: &since}
	for says, o := range map[string]api.Orphans{
		"prod/kura":    {Items: []api.Orphan{instance}},
		"deleted soon": {Items: []api.Orphan{instance}},
		"namespace kura of cluster prod cannot be read for 3m00s (RuntimeRefused): Unauthorized": {Unreadable: []api.UnreadableEndpoint{hidden}},
		"no orphans":    {},
		"aaaaaaaaaaaa ": {Items: []api.Orphan{orphan}},
		"endpoint eu-2 cannot be read for 3m00s (RuntimeUnreachable): connection refused": {Unreadable: []api.UnreadableEndpoint{away}},
	} {
		var b bytes.Buffer
		printOrphans(&b, o)
		if !strings.Contains(b.String(), says) || strings.Contains(b.String(), "no orphans") != (says == "no orphans") {
			t.Errorf("printed, want it to say %q:\n%s", says, b.String())
		}
	}
}

func TestAdopt_asksForWhatItNeeds(t *testing.T) {
	for says, args := range map[string][]string{
		"accepts 1 arg(s)":                     {"--image-tag", "v1"},
		"<account>/<region>":                   {"acme", "--image-tag", "v1", "--container", "cache=x"},
		"cache must be formatted as key=value": {"acme/eu", "--image-tag", "v1", "--container", "cache"},
	} {
		c := command()
		c.SetArgs(append([]string{"adopt", "--data-dir", t.TempDir()}, args...))
		c.SetOut(&bytes.Buffer{})
		c.SetErr(&bytes.Buffer{})
		if err := c.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("kurad adopt %s: %v, want it to say %q", strings.Join(args, " "), err, says)
		}
	}
}
