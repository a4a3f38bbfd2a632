//go:build real

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// change is one version of an instance, as the API server told it.
type change struct {
	at     time.Time
	kind   watch.EventType
	object *unstructured.Unstructured
}

// changes are what has happened to the instances of a namespace, the oldest first: a
// watch of the test's own, which no fault is made for.
type changes struct {
	t    *testing.T
	mu   sync.Mutex
	all  []change
	news chan struct{} // closed and made anew with every change
}

// follow watches a namespace until the test ends.
func follow(t *testing.T, api dynamic.ResourceInterface) *changes {
	t.Helper()
	c := &changes{t: t, news: make(chan struct{})}
	ctx, cancel := context.WithCancel(t.Context())
	begin, err := api.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for from := begin.GetResourceVersion(); ctx.Err() == nil; {
			w, err := api.Watch(ctx, metav1.ListOptions{ResourceVersion: from})
			if err != nil { // while the type is not served
				pause(ctx, 100*time.Millisecond)
				continue
			}
			for e := range w.ResultChan() {
				if o, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Error {
					from = o.GetResourceVersion()
					c.take(change{at: time.Now(), kind: e.Type, object: o})
				} else {
					from = "" // begins with what is there now
				}
			}
		}
	})
	t.Cleanup(func() { cancel(); group.Wait() })
	return c
}

func (c *changes) take(one change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, one)
	close(c.news)
	c.news = make(chan struct{})
}

// mark is where the changes are now: what await is told of comes after it.
func (c *changes) mark() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}

// since are the changes of an instance after a mark.
func (c *changes) since(mark int, name string) []change {
	c.mu.Lock()
	defer c.mu.Unlock()
	var of []change
	for _, one := range c.all[mark:] {
		if one.object.GetName() == name {
			of = append(of, one)
		}
	}
	return of
}

// await waits for a change of an instance after a mark to be as ok says.
func (c *changes) await(mark int, name, what string, ok func(change) bool) change {
	c.t.Helper()
	return c.awaitFor(patience, mark, name, what, ok)
}

func (c *changes) awaitFor(most time.Duration, mark int, name, what string, ok func(change) bool) change {
	c.t.Helper()
	late := time.NewTimer(most)
	defer late.Stop()
	for {
		c.mu.Lock()
		news := c.news
		c.mu.Unlock()
		seen := c.since(mark, name)
		if i := slices.IndexFunc(seen, ok); i >= 0 {
			return seen[i]
		}
		select {
		case <-news:
		case <-late.C:
			c.t.Fatalf("%s: %s: not within %s; seen:\n%s", name, what, most, told(seen))
		}
	}
}

// told says what the changes are.
func told(list []change) string {
	var b strings.Builder
	for _, one := range list {
		o := one.object
		fmt.Fprintf(&b, "  %s %s %s, version %s, generation %d, spec %v, status %v\n", one.at.Format("15:04:05.000"), one.kind, o.GetUID(), o.GetResourceVersion(), o.GetGeneration(), o.Object["spec"], o.Object["status"])
	}
	return b.String()
}
