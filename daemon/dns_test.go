package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestD6_theAuditReadsWellAndEndsWithACodeForScripts(t *testing.T) {
	at := time.Now().Add(-42 * time.Second)
	shadowed := fleet.Finding{
		Zone: "kura.test", Host: "acme-eu.kura.test", Kind: fleet.FindingForeign, Owners: []string{"production"}, Environment: "production", Account: "acme", Region: "eu",
		Contents: []string{"A 192.0.2.1", "A 192.0.2.2"}, Why: "owner production has it, and its records lead elsewhere",
	}
	fine := map[fleet.FindingKind]int{fleet.FindingOurs: 3}
	listed := []fleet.AuditedZone{{Zone: "kura.test", Listed: &at}}
	for name, c := range map[string]struct {
		audit api.DNSAudit
		code  int
		says  []string
	}{
		"without zones": {api.DNSAudit{}, 0, []string{"this kurad was given no DNS zone"}},
		"clean":         {api.DNSAudit{Zones: listed, Counts: fine}, 0, []string{"zone kura.test: listed 42s ago\n", "3 wanted-ours\n"}},
		"a shadow": {api.DNSAudit{Zones: listed, Counts: map[fleet.FindingKind]int{fleet.FindingOurs: 3, fleet.FindingForeign: 1}, Items: []fleet.Finding{shadowed}}, exitFindings,
			[]string{" HOST ", "acme-eu.kura.test", "wanted-foreign", "production", "acme/eu", "A 192.0.2.2", "3 wanted-ours, 1 wanted-foreign\n"}},
		"a zone that does not answer": {api.DNSAudit{Zones: []fleet.AuditedZone{{Zone: "kura.test", Listed: &at, Reason: fleet.ReasonRateLimited, Message: "429", Since: &at}}, Counts: fine}, exitFindings,
			[]string{"zone kura.test cannot be listed for 42s (RateLimited): 429; what it has now is not known\n", "zones not listed: 1\n"}},
	} {
		answering(t, map[string]any{"/v1/dns/audit": c.audit})
		got, _, err := kuradCommand(t, "dns", "audit")
		if exitCode(err) != c.code {
			t.Errorf("%s: ends with %d, want %d: %v", name, exitCode(err), c.code, err)
		}
		for _, says := range c.says {
			if !strings.Contains(got, says) {
				t.Errorf("%s: it does not say %q:\n%s", name, says, got)
			}
		}
		out, _, err := kuradCommand(t, "dns", "audit", "-o", "json")
		var again api.DNSAudit
		if exitCode(err) != c.code || json.Unmarshal([]byte(out), &again) != nil || len(again.Items) != len(c.audit.Items) {
			t.Errorf("%s as json: %d %s", name, exitCode(err), out)
		}
	}
	refused(t, []string{"dns", "audit", "--kind", "odd"}, `"odd"`, "wanted-foreign")
	refused(t, []string{"dns", "audit", "--output", "xml"}, "xml")
	for _, k := range fleet.FindingKinds() { // each has a place in the summary
		if got := dnsSummary(api.DNSAudit{Counts: map[fleet.FindingKind]int{k: 7}}); !strings.Contains(got, "7 "+string(k)) {
			t.Errorf("%s: %q", k, got)
		}
	}
}

func TestD6_aPruneIsShownBeforeItIsDone(t *testing.T) {
	stale := fleet.Finding{Zone: "kura.test", Host: "acme-eu.kura.test", Kind: fleet.FindingStale, Owners: []string{"staging"}, Contents: []string{"A 192.0.2.1"}, Why: "it carries no suffix", Prunable: true}
	pruned := fleet.Pruned{Items: []fleet.Finding{stale}, Kept: []fleet.KeptHost{{Host: "b.kura.test", Why: "server acme/eu wants it now"}}}
	answering(t, map[string]any{"/v1/dns/prune": pruned})
	got, _, err := kuradCommand(t, "dns", "prune")
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(err.Error(), "--yes") || !strings.Contains(got, "acme-eu.kura.test") || strings.Contains(got, "deleted:") {
		t.Errorf("%v\n%s", err, got)
	}
	if got := ok(t, "dns", "prune", "--yes"); !strings.Contains(got, "deleted: acme-eu.kura.test\nleft alone: b.kura.test: server acme/eu wants it now\n") {
		t.Errorf("it prints:\n%s", got)
	}
	answering(t, map[string]any{"/v1/dns/prune": fleet.Pruned{}})
	if got := ok(t, "dns", "prune", "--yes"); got != "there is nothing to delete\n" {
		t.Errorf("it prints %q", got)
	}
	answering(t, map[string]any{"/v1/dns/prune": fleet.Pruned{Unreadable: []fleet.AuditedZone{{Zone: "kura.test", Reason: fleet.ReasonZoneForbidden, Message: "403"}}}})
	got, _, err = kuradCommand(t, "dns", "prune", "--yes")
	if exitCode(err) != exitFindings || !strings.Contains(got, "zone kura.test cannot be listed (ZoneForbidden): 403") {
		t.Errorf("%v\n%s", err, got)
	}
}

func TestD4_aTakeShowsBothSidesFirst(t *testing.T) {
	v := fleet.Taken{
		Zone: "kura.test", Host: "acme-eu.kura.test", From: "production", To: "staging", Account: "acme", Region: "eu", Changed: true,
		Before: []fleet.DNSRecord{{Name: "a-acme-eu.kura.test", Type: "TXT", Content: "external-dns/owner=production\x1b"}},
		After:  []fleet.DNSRecord{{Name: "a-acme-eu.kura.test", Type: "TXT", Content: "external-dns/owner=staging"}},
	}
	answering(t, map[string]any{"/v1/dns/take": v})
	args := []string{"dns", "take", "Acme-eu.kura.test.", "--from", "production"}
	got, _, err := kuradCommand(t, args...)
	if err == nil || !strings.Contains(err.Error(), "nothing was changed") || !strings.Contains(got, "owner=production") || strings.Contains(got, "\x1b") || !strings.Contains(got, "becomes") || !strings.Contains(got, "owner=staging") {
		t.Errorf("%v\n%s", err, got)
	}
	if got := ok(t, append(args, "--yes")...); !strings.Contains(got, "taken: host acme-eu.kura.test is owner staging's now, for server acme/eu\n") {
		t.Errorf("it prints:\n%s", got)
	}
	v.Changed = false
	answering(t, map[string]any{"/v1/dns/take": v})
	if got := ok(t, args...); !strings.Contains(got, "is owner staging's already: nothing is changed") {
		t.Errorf("it prints:\n%s", got)
	}
	refused(t, []string{"dns", "take", "acme-eu.kura.test"}, `"from"`)
	refused(t, []string{"dns", "take", "--from", "x"}, "accepts 1 arg(s)")
}

func TestD6_aLongPruneIsSeveralCalls(t *testing.T) {
	var list []fleet.Finding
	for i := range api.MaxPage + 1 {
		list = append(list, fleet.Finding{Zone: "kura.test", Host: strings.Repeat("a", 1+i%60) + strings.Repeat("b", i/60) + ".kura.test"})
	}
	answering(t, map[string]any{"/v1/dns/prune": fleet.Pruned{Items: list}})
	var b bytes.Buffer
	b.WriteString(ok(t, "dns", "prune", "--yes"))
	if n := strings.Count(b.String(), "deleted: "); n != 2*len(list) { // each call is answered alike
		t.Errorf("%d hosts deleted, want two calls' %d", n, 2*len(list))
	}
}
