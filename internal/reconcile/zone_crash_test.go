package reconcile_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	emulator "github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

// crossing is what lies between kurads and Cloudflare: with the write of a number the kurad that
// made it dies, before it hears of the effect.
type crossing struct {
	next   http.RoundTripper
	at     int64
	writes atomic.Int64
	kurad  atomic.Pointer[kurad]
}

func (c *crossing) RoundTrip(r *http.Request) (*http.Response, error) {
	k := c.kurad.Load()
	if k.dead.Load() {
		return nil, errDead
	}
	answer, err := c.next.RoundTrip(r)
	if err == nil && r.Method != http.MethodGet && c.writes.Add(1) == c.at {
		k.dead.Store(true)
		return nil, errors.Join(errDead, answer.Body.Close())
	}
	return answer, err
}

// G1, D0, S5: killed after any of its writes to a zone, in a server's whole life with a move of its url
// and a way back, kurad goes on where it was. Nothing of another owner is ever touched, and nothing is left.
func TestG1_killedAfterEachWriteToAZoneItGoesOn(t *testing.T) {
	at := int64(1)
	for more := true; more; at += killedEvery {
		virtual(t, func(w *world) {
			c, o := w.cloud()
			o.alias = 10 * time.Minute
			w.must(c.SeedExternalDNS("production", "ingress/kura/acme", emulator.TXTBoth,
				emulator.Record{Name: "acme-eu.kura.test", Type: "A", Content: "203.0.113.7"}, emulator.Record{Name: "ada.kura.test", Type: "A", Content: "203.0.113.8"}))
			theirs := c.Table()
			between := &crossing{next: c.Client().Transport, at: at}
			c.api.Through(between)
			hosts := o.hosts
			o.hosts = func(k *kurad) *dns.Watch { between.kurad.Store(k); return hosts(k) }
			k := w.start(o)
			defer func() { k.stop() }()
			until := func(what string, holds func() bool) {
				w.until(what, time.Hour, func() bool {
					if k.dead.Load() {
						k.kill()
						k = w.start(o)
					}
					return holds()
				})
			}
			leads := func(public, global string) bool {
				table := c.Table()
				return w.converged("acme", "v1") && len(c.Records(public, "A")) == 1 && len(c.Records("a-"+public, "TXT")) == 1 &&
					strings.Count(table, " LB ") == 1 && strings.Contains(table, global) && w.status("acme").PublishedURL != "" &&
					strings.Contains(w.status("acme").PublishedURL, public)
			}
			w.declare("acme", "v1")
			until("it is published", func() bool { return leads(oldHost, "acme-staging.kura.test") })
			w.claim(w.beside(), "acme", oldHost)
			w.rename("acme", "ada", newHost)
			until("it moves", func() bool { return strings.Contains(w.status("acme").PublishedURL, newHost) })
			w.rename("acme", "acme", oldHost)
			until("it is back", func() bool {
				return leads(oldHost, "acme-staging.kura.test") && len(c.Records(newHost, "")) == 0
			})
			w.destroy("acme")
			until("nothing is left", func() bool { return w.gone("acme") && c.Table() == theirs })
			for _, change := range c.History() {
				if change.By == "kurad" && (strings.HasSuffix(change.Name, "acme-eu.kura.test") || strings.HasSuffix(change.Name, "ada.kura.test")) {
					t.Errorf("it touched what is production's: %s", change)
				}
			}
			if more = between.writes.Load() >= at; t.Failed() {
				t.Fatalf("killed after write %d of %d", at, between.writes.Load())
			}
		})
	}
	if at < 12 { // publish, join, publish and lead to the new host, and back, leave, withdraw
		t.Errorf("a life has less than %d writes to a zone", at)
	}
}
