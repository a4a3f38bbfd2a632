//go:build real

package main

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// 512 long polls of one token, and as many lists as it likes: others wait and list on.
func TestAttack_G8_theLongPollsAndListsOfOneTokenAreItsOwnMatter(t *testing.T) {
	k := newBareKurad(t, "staging", t.TempDir(), "--container-endpoint", "mute=unix://"+silentEngine(t)+",ports=23000-23009")
	k.start()
	k.declareMute("acme", "umbra")
	for _, a := range []string{"acme", "umbra"} {
		if _, err := k.client.PutServer(t.Context(), fleet.Server{Account: a, Region: "mute", ImageTag: "v1"}, api.PutOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	reader := k.token(api.TokenRequest{Name: "reader", Scope: fleet.ScopeRead})
	admin := k.token(api.TokenRequest{Name: "admin", Scope: fleet.ScopeAdmin})
	first, err := k.client.WaitServers(t.Context(), "", "", 0)
	if err != nil {
		t.Fatal(err)
	}
	_, page := k.raw("GET", "/v1/servers?limit=1", "")
	var begun api.List[fleet.ServerView]
	if err := json.Unmarshal([]byte(page), &begun); err != nil || begun.Next == "" {
		t.Fatalf("one page has all: %s, %v", page, err)
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
	for range 200 {
		if status, answer, err := k.send(ctx, client, "GET", "/v1/servers?limit=1", "", reader); err != nil || status != http.StatusOK {
			t.Fatalf("a list: %d %s, %v", status, answer, err)
		}
	}
	if status, answer := k.raw("GET", "/v1/servers?limit=1&page="+begun.Next, ""); status != http.StatusOK {
		t.Errorf("the next page of a list that an admin began: %d %s", status, answer)
	}
	waited, err := k.client.WaitServers(t.Context(), "", first.Cursor, 100*time.Millisecond)
	if err != nil || waited.Full {
		t.Errorf("an admin's poll: %+v, %v", waited, err)
	}
	h.noticed("600 long polls and 200 lists of a read token")
}
