package main

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/reconcile"
)

// empty is a zone without records, that takes everything.
type empty struct {
	dns.API
	mu      sync.Mutex
	lists   int
	batches []int
}

func (e *empty) List(context.Context, dns.Parts) (dns.Listing, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.lists++
	return dns.Listing{}, nil
}

func (e *empty) Apply(_ context.Context, b dns.Batch) error {
	<-time.After(time.Second) // the bubble's
	e.mu.Lock()
	defer e.mu.Unlock()
	e.batches = append(e.batches, b.Len())
	return nil
}

// D7: what 500 servers publish within a second is few batches, of each zone for itself; and a zone
// that nobody can write says so.
func TestD7_tasksOfAZoneAreOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zones, err := dns.ParseZones([]string{"kura.test,cloudflare=/token", "inner.kura.test,cloudflare=/token", "read.test"})
		if err != nil {
			t.Fatal(err)
		}
		outer, inner := &empty{}, &empty{}
		env := fleet.Environment{Name: "staging", Suffix: "-staging"}
		x := zoneExecutors(zones, map[string]*dns.Writer{"kura.test": dns.NewWriter(zones[0], env, outer), "inner.kura.test": dns.NewWriter(zones[1], env, inner)})[fleet.ExecutorRecords]
		run := func(host string) fleet.Outcome {
			e := fleet.Effect{Kind: fleet.TaskPublish, Name: host, DNS: fleet.DNSChange{Owner: "o", Resource: "kura-staging/eu/a", Type: "A", Content: "192.0.2.1"}}
			within, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if room := x.Room(fleet.Region{}, fleet.Task{Effect: e}); room.Slots < 500 || !strings.HasSuffix(host, room.Name) && room.Name != "no zone" {
				t.Errorf("the room of %s is %+v", host, room)
			}
			return x.Execute(within, reconcile.Call{Task: fleet.Task{Effect: e}})
		}
		for _, host := range []string{"a.read.test", "a.nowhere.test"} {
			if o := run(host); o.Class != fleet.ClassTransient || o.Reason != fleet.ReasonZoneForbidden || !strings.Contains(o.Message, "--zone") {
				t.Errorf("%s is answered %+v", host, o)
			}
		}
		var tasks sync.WaitGroup
		for i := range 500 {
			host := string(rune('a'+i%26)) + strings.Repeat("x", i/26) + ".kura.test"
			tasks.Go(func() { run(host) })
			if i%10 == 0 && i < 50 {
				tasks.Go(func() { run(strings.Replace(host, ".", ".inner.", 1)) })
			}
			<-time.After(2 * time.Millisecond) // the bubble's
		}
		tasks.Wait()
		if len(outer.batches) > 6 || len(inner.batches) != 1 || inner.batches[0] != 10 || inner.lists != 2 {
			t.Errorf("batches of %v and %v operations, %d listings of the inner zone", outer.batches, inner.batches, inner.lists)
		}
	})
}
