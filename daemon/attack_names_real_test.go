//go:build real

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A token that is limited to its own accounts asks for another's handle and host without a
// pause, while their owner renames the account, destroys its server and deletes it.
func TestAttack_H5_H10_aLimitedTokenTakesNobodysName(t *testing.T) {
	t.Parallel()
	k := startKurad(t)
	k.declare(region("eu-names"), "umbra", "team-a-1")
	k.putTemplate("bare", "{account_handle}{env_suffix}.kura.test")
	k.putRegion(region("bare-names", func(r *fleet.Region) { r.Hosts.Public = "bare" }))
	k.putAccount(fleet.Account{ID: "team-a-2", Handle: "umbra-eu-names"}) // its host in bare-names is umbra's in eu-names
	own := fleet.ServerKey{Account: "umbra", Region: "eu-names"}
	k.put(own, "v1")
	k.converged(own, "v1")

	made, err := k.client.CreateToken(t.Context(), api.TokenRequest{Name: "sly", Scope: fleet.ScopeWrite, AccountPrefix: "team-a-"})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(made.Token.Reveal()), 0o600); err != nil {
		t.Fatal(err)
	}
	sly, err := (&target{dataDir: k.dir, tokenFile: file}).client()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var attack sync.WaitGroup
	tries := make([]int, 2)
	for i, ask := range []func() error{
		func() error {
			_, err := sly.PutAccount(ctx, fleet.Account{ID: "team-a-1", Handle: "umbra"}, api.PutOptions{})
			return err
		},
		func() error {
			_, err := sly.PutServer(ctx, fleet.Server{Account: "team-a-2", Region: "bare-names", ImageTag: "v1"}, api.PutOptions{})
			return err
		},
	} {
		attack.Go(func() {
			for ctx.Err() == nil {
				switch err := ask(); {
				case ctx.Err() != nil:
				case fleet.CodeOf(err) != fleet.CodeConflict:
					t.Errorf("the attacker's call %d was answered %v", tries[i], err)
					return
				case strings.Contains(err.Error(), "umbra/"):
					t.Errorf("the attacker was told whose it is: %v", err)
				}
				tries[i]++
			}
		})
	}
	k.putAccount(fleet.Account{ID: "umbra", Handle: "shade"})
	k.putAccount(fleet.Account{ID: "umbra"}) // back, as if nothing were
	k.converged(own, "v1")
	k.delete(own)
	k.gone(own)
	if err := k.client.DeleteAccount(t.Context(), "umbra"); err != nil {
		t.Error(err)
	}
	stop()
	attack.Wait()
	k.kill() // and nothing of it is forgotten
	k.start()
	for _, handle := range []string{"umbra", "shade"} {
		if _, err := k.client.PutAccount(t.Context(), fleet.Account{ID: "team-a-1", Handle: handle}, api.PutOptions{}); fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "gave it up") {
			t.Errorf("handle %s after a restart: %v", handle, err)
		}
	}
	k.putAccount(fleet.Account{ID: "umbra"}) // its owner comes back
	k.put(own, "v1")
	if v := k.converged(own, "v1"); v.Hosts.Public != "umbra-eu-names-staging.kura.test" {
		t.Errorf("it came back as %s", v.Hosts.Public)
	}
	if tries[0] == 0 || tries[1] == 0 {
		t.Errorf("the attacker asked %v times", tries)
	}
	t.Logf("the attacker asked %d times for the handle and %d times for the host", tries[0], tries[1])
}
