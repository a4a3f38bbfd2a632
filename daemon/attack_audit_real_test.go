//go:build real

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A read token asks for what it may not, as fast as it can, so that the lines of an admin
// be rotated away; then somebody cuts them off while kurad is killed.
// TestAttack_G10_deniedCallsTakeNoChangeAway (internal/api/audit) does it 400,000 times.
func TestAttack_G10_theAuditLogKeepsWhatAnAdminDid(t *testing.T) {
	t.Parallel()
	k := newBareKurad(t, "staging", t.TempDir())
	k.start()
	made, err := k.client.CreateToken(t.Context(), api.TokenRequest{Name: "evil", Scope: fleet.ScopeRead})
	if err != nil {
		t.Fatal(err)
	}
	honest := k.beside(k.token(api.TokenRequest{Name: "honest", Scope: fleet.ScopeWrite}))
	const attackers, calls = 8, 1000
	var all sync.WaitGroup
	for range attackers {
		all.Go(func() {
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			for i := range calls {
				if status, answer, err := k.send(t.Context(), client, "PUT", fmt.Sprintf("/v1/accounts/a%d", i), "{}", made.Token.Reveal()); err != nil || status != http.StatusForbidden && status != http.StatusTooManyRequests {
					t.Errorf("a denied call: %d %s, %v", status, answer, err)
					return
				}
			}
		})
	}
	all.Wait()
	honest.calls(50)
	honest.noticed(fmt.Sprintf("%d denied calls", attackers*calls))

	path := filepath.Join(k.dir, auditFile)
	text := func(path string) []byte {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if changes := text(path); bytes.Contains(changes, []byte(`"status":403`)) || !bytes.Contains(changes, []byte(`"method":"POST","path":"/v1/tokens"`)) {
		t.Errorf("the log of changes:\n%.3000s", changes)
	}
	denied := text(audit.DeniedPath(path))
	if n := bytes.Count(denied, []byte(made.ID)); n < 1 || n > 30 {
		t.Errorf("%d lines of %d denied calls", n, attackers*calls)
	}
	if said, err := k.run("audit", "verify", "--data-dir", k.dir); err != nil {
		t.Errorf("while it runs: %v\n%s", err, said)
	}
	k.kill()
	whole := k.command("audit", "verify", "--data-dir", k.dir) // a crash is no reason to cry
	if !strings.Contains(whole, "are whole") {
		t.Errorf("after a crash: %s", whole)
	}
	lines := bytes.SplitAfter(text(path), []byte("\n"))
	if err := os.WriteFile(path, bytes.Join(lines[:1], nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if said := k.refused("audit", "verify", "--data-dir", k.dir); !strings.Contains(said, "lines 2 to") || !strings.Contains(said, "are gone: the end was cut off") {
		t.Errorf("cut off: %s", said)
	}
	k.start()
	if said := k.refused("audit", "verify", "--data-dir", k.dir); !strings.Contains(said, "kurad found the log tampered with") {
		t.Errorf("after the next start: %s", said)
	}
	if said := k.log.tail(1000); !strings.Contains(said, "THE AUDIT LOG WAS TAMPERED WITH") {
		t.Errorf("kurad does not say it:\n%s", said)
	}
}
