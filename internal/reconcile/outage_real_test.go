//go:build real

package reconcile_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/etcd"
)

// A registry outage as it is on disk, in real time: the embedded store stays small, and is
// written little. KURA_TEST_OUTAGE_FOR and KURA_TEST_OUTAGE_OF say how long, and of how many
// servers.
func TestG12_aRegistryOutageOnDiskStaysSmall(t *testing.T) {
	length, err := time.ParseDuration(cmp.Or(os.Getenv("KURA_TEST_OUTAGE_FOR"), "15s"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(cmp.Or(os.Getenv("KURA_TEST_OUTAGE_OF"), "200"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := etcd.OpenEmbedded(etcd.Options{Dir: filepath.Join(t.TempDir(), "store")})
	if err != nil {
		t.Fatal(err)
	}
	w := newWorldOn(t, s)
	w.really = true
	defer w.close()
	w.region("eu", func(r *fleet.Region) { r.MaxUnsettled = 100 })
	d := &down{registry: "localhost", varies: true}
	w.refuseBy(d)
	for i := range n {
		w.declare(fmt.Sprintf("s%04d", i), "v1")
	}
	w.must(w.view.CatchUp(t.Context()))
	size := func() int64 {
		h, err := s.Health(t.Context())
		w.must(err)
		if h.Size > 200<<20 {
			t.Errorf("the store has %d MiB, %d in use", h.Size>>20, h.InUse>>20)
		}
		return h.Size
	}
	t.Logf("%d servers declared: %d KiB", n, size()>>10)
	began, writes := time.Now(), w.below.writes.Load()
	k := w.start(options{})
	defer k.stop()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	told := func() (all bool) { // that it waits for a place, or more
		list, _ := w.view.Servers(nil)
		return !slices.ContainsFunc(list, func(g fleet.Gathered) bool { return g.Status == nil })
	}
	for !told() { // the deadline of the test ends it
		<-tick.C
	}
	from := time.Now().Add(30 * time.Second) // until then what their endpoints answered first is news of each
	for d.all() < n {
		<-tick.C
	}
	t.Logf("all were tried once after %s: %d writes, %d KiB", time.Since(began).Round(time.Second), w.below.writes.Load()-writes, size()>>10)
	for end := time.Now().Add(length); time.Now().Before(end); {
		minute, writes := time.Now(), w.below.writes.Load()
		for time.Since(minute) < min(time.Minute, length) {
			<-tick.C
			size()
		}
		rate := float64(w.below.writes.Load()-writes) / time.Since(minute).Seconds()
		t.Logf("%s: %.1f writes a second, %d KiB", time.Since(began).Round(time.Second), rate, size()>>10)
	}
	t.Logf("%d writes in the worst second", w.below.worst(from))
	if worst := w.below.worst(from); worst > mostWrites {
		t.Errorf("%d writes in a second", worst)
	}
	d.set("")
	healed := time.Now()
	for w.count("v1") < n {
		<-tick.C
	}
	t.Logf("all run %s after the registry is back: %d KiB", time.Since(healed).Round(time.Second), size()>>10)
}
