package kubernetes

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A kurad that leads again must not act on what it saw when it led before.
func TestG2_aWatchThatBeginsAgainKnowsNothingOfTheLastOne(t *testing.T) {
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	p := newNamespaceCache(func() time.Time { return at })
	told := 0
	tell := func(name string) {
		if name == "" {
			told++
		}
	}
	for range 2 {
		p.notify(tell)
		if seen := p.snapshotOf("kura-acme-eu"); seen.object != nil || !seen.begun.IsZero() {
			t.Errorf("before its first list it shows %+v of %s", seen.object, seen.begun)
		}
		p.listBegins()
		if err := p.Replace([]any{&object{ObjectMeta: metav1.ObjectMeta{Name: "kura-acme-eu", ResourceVersion: "5"}}}, "7"); err != nil {
			t.Fatal(err)
		}
		if seen := p.snapshotOf("kura-acme-eu"); seen.object == nil || !seen.begun.Equal(at) {
			t.Errorf("after its first list it shows %+v of %s", seen.object, seen.begun)
		}
		p.notify(nil)
	}
	if told != 2 {
		t.Errorf("all servers were told %d times, want once for each first list", told)
	}
}
