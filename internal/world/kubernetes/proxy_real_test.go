//go:build real

package kubernetes_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

func TestProxy_breaksCallsAndWatchesAndCountsThem(t *testing.T) {
	s, ctx := kubernetes.Start(t, kubernetes.Options{}), t.Context()
	p, err := s.StartProxy()
	done(t, err)
	defer p.Close()
	client, err := dynamic.NewForConfig(p.REST(kubernetes.Kurad))
	done(t, err)
	through, behind := client.Resource(kubernetes.Instances).Namespace(kubernetes.Namespace), instances(t, s, kubernetes.Admin)
	apply := func(ctx context.Context, name string) error {
		_, err := through.Apply(ctx, name, instance(name, nil), metav1.ApplyOptions{FieldManager: "test"})
		return err
	}
	exists := func(name string) bool {
		_, err := behind.Get(ctx, name, metav1.GetOptions{})
		return err == nil
	}
	writes := func(c kubernetes.Call) bool { return c.Write() }

	// What is asked is known by its verb.
	done(t, apply(ctx, "a"))
	list, err := through.List(ctx, metav1.ListOptions{})
	done(t, err)
	done(t, through.Delete(ctx, "a", metav1.DeleteOptions{}))
	if _, err := through.Get(ctx, "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get of what was deleted: %v", err)
	}
	type seen struct {
		Verb, Name string
		Apply      bool
		Status     int
	}
	var got []seen
	for _, c := range p.Calls() {
		got = append(got, seen{c.Verb, c.Name, c.Apply, c.Status})
	}
	want := []seen{{"patch", "a", true, 201}, {"list", "", false, 200}, {"delete", "a", false, 200}, {"get", "a", false, 404}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}

	// Only writes are refused.
	p.Set(kubernetes.Fault{Status: 401, When: writes})
	if err := apply(ctx, "a"); !apierrors.IsUnauthorized(err) || exists("a") {
		t.Errorf("a refused write: %v", err)
	}
	if _, err := through.List(ctx, metav1.ListOptions{}); err != nil {
		t.Errorf("a read while writes are refused: %v", err)
	}
	// A lost answer has its effect.
	p.Set(kubernetes.Fault{After: true})
	if err := apply(ctx, "lost"); err == nil || !exists("lost") {
		t.Errorf("an apply whose answer is lost: %v, exists %t", err, exists("lost"))
	}
	// A held call goes on when the fault is over.
	p.Set(kubernetes.Fault{Hold: true})
	held := make(chan error, 1)
	go func() { held <- apply(ctx, "held") }()
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	if err := apply(short, "given-up"); err == nil || exists("held") {
		t.Errorf("a held call: %v, exists %t", err, exists("held"))
	}
	p.Heal()
	if err := <-held; err != nil || !exists("held") {
		t.Errorf("a held call after the fault: %v", err)
	}

	// Watches.
	w, err := through.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	done(t, err)
	for _, want := range []watch.EventType{watch.Deleted, watch.Added, watch.Added} { // a, lost, held
		if e := <-w.ResultChan(); e.Type != want {
			t.Errorf("event %s, want %s", e.Type, want)
		}
	}
	p.HoldWatches()
	if _, err := behind.Create(ctx, instance("later", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case e := <-w.ResultChan():
		t.Errorf("a held watch brings %v", e)
	case <-time.After(200 * time.Millisecond):
	}
	p.Heal()
	if e := <-w.ResultChan(); e.Type != watch.Added || e.Object.(*unstructured.Unstructured).GetName() != "later" {
		t.Errorf("the watch goes on with %v", e)
	}
	if n := p.CutWatches(); n != 1 {
		t.Errorf("%d watches were open, want 1", n)
	}
	if e, open := <-w.ResultChan(); open && e.Type != watch.Error {
		t.Errorf("a cut watch brings %v", e)
	}
}
