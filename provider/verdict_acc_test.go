//go:build real

package provider

import (
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// The table of what Read puts into image_tag, row by row, as a plan prints it.
func TestAccVerdict_thePlanTellsTheTruthRowByRow(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	key := fleet.ServerKey{Account: "acme", Region: "eu"}
	c.write(k.config(serverHCL("1")))
	c.apply()
	c.write(k.config(serverHCL("2")))
	c.apply()
	paused := fleet.Hold{Kind: fleet.HoldPaused, Message: "the region is paused"}
	serving1 := func(b becomes) becomes {
		return func(g fleet.Gathered, s *fleet.Status, d *fleet.Deployment) {
			s.ServingImageTag = "1"
			b(g, s, d)
		}
	}
	none := func(b becomes) becomes {
		return func(g fleet.Gathered, s *fleet.Status, d *fleet.Deployment) {
			s.ServingImageTag, s.PublishedURL = "", ""
			b(g, s, d)
		}
	}
	for _, row := range []struct {
		name    string
		as      becomes
		changes bool
		want    []string // in the plan's text
		not     string
	}{
		{"converged", active, false, []string{"No changes"}, "Warning"},
		{"progressing", serving1(progressing), false, []string{"No changes"}, "Warning"},
		{"held", serving1(verdict(fleet.VerdictHeld, fleet.ReasonPaused, "", "1", paused)), false, []string{"No changes", `Region "eu": changes are held (Paused)`, "the region is paused"}, ""},
		{"failed, another version serves", serving1(failed(fleet.ReasonImagePullFailed, "no such image")), true,
			[]string{`~ image_tag = "1" -> "2"`, "Server acme/eu: version 2 failed (ImagePullFailed)", "No such image.", "Version 1 is still published", "1 to change"}, "must be replaced"},
		{"failed, nothing has served", none(failed(fleet.ReasonCrashLoop, "cache ended 3 times")), true,
			[]string{`+ image_tag = "2"`, "version 2 failed (CrashLoop)", "1 to change"}, "must be replaced"},
		{"stalled", serving1(stalled), true, []string{`~ image_tag = "1" -> "2"`, "does not get ready (HTTPNotReady)", "GET /up answers 503"}, ""},
		{"drifted in a region that only observes", verdict(fleet.VerdictDrifted, fleet.ReasonDrifted, "", "1"), true, []string{`~ image_tag = "1" -> "2"`}, "Warning"},
		{"absent in a region that only observes", verdict(fleet.VerdictAbsent, fleet.ReasonAbsent, "", ""), true, []string{`+ image_tag = "2"`}, "Warning"},
		{"unobserved", verdict(fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable, "connect: connection refused", "1"), false,
			[]string{"No changes", `Region "eu" cannot be seen (RuntimeUnreachable)`, "Connect: connection refused.", "is 3m0s old"}, ""},
		{"converged again", active, false, []string{"No changes"}, "Warning"},
	} {
		t.Run(row.name, func(t *testing.T) {
			k.stands(key, row.as)
			text, changes := c.plan()
			if changes != row.changes {
				t.Errorf("the plan has changes: %v, want %v", changes, row.changes)
			}
			for _, w := range row.want {
				if !strings.Contains(text, w) {
					t.Errorf("%q is missing in: %s", w, text)
				}
			}
			if row.not != "" && strings.Contains(text, row.not) {
				t.Errorf("%q is in: %s", row.not, text)
			}
		})
	}

	t.Run("the intent was changed by somebody else", func(t *testing.T) {
		k.stands(key, nil)
		if _, err := k.api.PutServer(t.Context(), fleet.Server{Account: "acme", Region: "eu", ImageTag: "3-broken"}, api.PutOptions{}); err != nil {
			t.Fatal(err)
		}
		text, changes := c.plan()
		if !changes || !strings.Contains(text, `~ image_tag = "3-broken" -> "2"`) {
			t.Errorf("changes %v: %s", changes, text)
		}
		c.apply()
		if v := k.server("acme", "eu"); v.Intent.ImageTag != "2" || v.Verdict != fleet.VerdictConverged {
			t.Errorf("the daemon's record is %s, %s", v.Intent.ImageTag, v.Verdict)
		}
	})

	t.Run("destroying, asked for by somebody else", func(t *testing.T) {
		k.mu.Lock()
		k.lingers[key] = true
		k.mu.Unlock()
		if _, err := k.api.DeleteServer(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		text, changes := c.plan()
		if changes || !strings.Contains(text, "Server acme/eu is being destroyed") {
			t.Errorf("changes %v: %s", changes, text)
		}
		k.mu.Lock()
		k.lingers[key] = false
		k.mu.Unlock()
		if err := k.turn(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		text, changes = c.plan()
		if !changes || !strings.Contains(text, "kura_server.acme will be created") {
			t.Errorf("gone, changes %v: %s", changes, text)
		}
	})
}

// One region that cannot be seen is one warning, however many servers it has.
func TestAccVerdict_oneWarningPerRegionAndCause(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	second := "resource \"kura_account\" \"bravo\" {\n  id = \"bravo\"\n}\nresource \"kura_server\" \"bravo\" {\n  account = kura_account.bravo.id\n  region = kura_region.eu.name\n  image_tag = \"1\"\n}\n"
	c.write(k.config(serverHCL("1"), second))
	c.apply()
	for _, account := range []string{"acme", "bravo"} {
		k.stands(fleet.ServerKey{Account: account, Region: "eu"}, verdict(fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable, "connection refused", "1"))
	}
	text, changes := c.plan()
	if n := strings.Count(text, "cannot be seen"); changes || n != 1 {
		t.Errorf("changes %v, %d warnings, want one: %s", changes, n, text)
	}
}
