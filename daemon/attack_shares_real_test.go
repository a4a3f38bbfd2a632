//go:build real

package main

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// 512 long polls of one token, and as many lists as it likes: others wait and list on.
func TestAttack_G8_theLongPollsAndListsOfOneTokenAreItsOwnMatter(t *testing.T) {
	k := newBareKurad(t, "staging", t.TempDir())
	k.start()
	reader := k.token(api.TokenRequest{Name: "reader", Scope: fleet.ScopeRead})
	admin := k.token(api.TokenRequest{Name: "admin", Scope: fleet.ScopeAdmin})
	first, err := k.client.WaitServers(t.Context(), "", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	h := k.beside(admin)
	ctx, end := context.WithCancel(t.Context())
	var polls sync.WaitGroup
	defer func() { end(); polls.Wait() }()
	client := &http.Client{Transport: &http.Transport{}}
	refused := make(chan int, 600)
	for range 600 {
		polls.Go(func() {
			status, _, err := k.send(ctx, client, "GET", "/v1/servers?wait=60s&after="+first.Cursor, "", reader)
			if err == nil {
				refused <- status
			}
		})
	}
	if status := <-refused; status != http.StatusTooManyRequests {
		t.Errorf("a poll over the share is answered %d, want 429", status)
	}
	h.calls(100)
	waited, err := k.client.WaitServers(t.Context(), "", first.Cursor, 100*time.Millisecond)
	if err != nil || waited.Full {
		t.Errorf("an admin's poll: %+v, %v", waited, err)
	}
	h.noticed("600 long polls of a read token")
}
