//go:build real

package kubernetes_test

import (
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	world "github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

func signOfLife(r *rig) {
	doc := r.doc("a", 1, nil)
	r.applied(doc, "")
	r.edit("a", "kura-controller", `{"status":{"phase":"Pending"}}`, "status")
	r.until("the phase is seen", func() bool { return r.see(doc).Phase == "Pending" })
	r.changes.take()
	for i := range 10 {
		r.edit("a", "kura-controller", `{"status":{"lastReconciledAt":"2026-11-21T10:00:0`+string(rune('0'+i))+`Z"}}`, "status")
		r.edit("a", "cert-manager", `{"metadata":{"annotations":{"other.dev/beat":"`+string(rune('0'+i))+`"}}}`)
	}
	r.edit("a", "kura-controller", `{"status":{"phase":"Ready","observedImage":"cache:v1","readyReplicas":2,"publicURL":"https://a.example.dev","message":"fine"}}`, "status")
	r.until("the image is seen", func() bool { return r.see(doc).ObservedImage == "cache:v1" })
	if got := r.changes.take(); len(got) != 1 || got[0] != "a" {
		r.Errorf("told %v, want one change", got)
	}
	if s := r.see(doc); s.Phase != "Ready" || s.ReadyReplicas != 2 || s.PublicURL != "https://a.example.dev" || s.Message != "fine" {
		r.Errorf("seen: %+v", s)
	}
}

func granted(r *rig) {
	doc := r.doc("a", 1, nil)
	r.applied(doc, "")
	must(r.T, r.server.Revoke(r.Context(), r.namespace))
	r.proxy.CutWatches()
	r.until("it cannot be read", func() bool { f := r.observe(doc).Unreadable; return f != nil && f.Count > 1 })
	o := r.observe(doc)
	if o.Unreadable.Reason != fleet.ReasonRuntimeRefused || o.Resource == nil || o.Begun.After(o.Unreadable.Since) {
		r.Errorf("without rights: %+v, %+v", o, o.Unreadable)
	}
	holds(r.T, o.Unreadable.Message, "forbidden", r.namespace, `cluster "test"`, "Role")
	if err := r.cluster.Refresh(r.Context(), r.namespace, "a"); fleet.CodeOf(err) != fleet.CodeUnavailable {
		r.Errorf("a direct read: %v", err)
	}
	if _, err := r.cluster.Read(r.Context(), key, doc, nil); fleet.CodeOf(err) != fleet.CodeUnavailable {
		r.Errorf("a read for the API: %v", err)
	}
	r.changes.take()
	must(r.T, r.server.Grant(r.Context(), r.namespace))
	r.readable()
	r.until("it was told", func() bool { return count(r.changes.take(), "") > 0 })
}

func counted(r *rig) {
	doc := r.doc("a", 1, nil)
	r.applied(doc, "")
	reading := func(c world.Call) bool { return c.Verb == "list" || c.Verb == "watch" }
	r.until("the watch is there", func() bool { return r.proxy.Watches() > 0 })
	r.changes.take()
	r.proxy.Set(world.Fault{Status: http.StatusServiceUnavailable, When: reading})
	r.proxy.CutWatches()
	r.until("three failures are counted", func() bool { f := r.observe(doc).Unreadable; return f != nil && f.Count >= 3 })
	if o := r.observe(doc); o.Unreadable.Reason != fleet.ReasonRuntimeError || o.Resource == nil {
		r.Errorf("seen: %+v", o)
	}
	if n := count(r.changes.take(), ""); n != 1 {
		r.Errorf("told %d times that reading fails, want once", n)
	}
	// A read of it alone answers all the same.
	must(r.T, r.cluster.Refresh(r.Context(), r.namespace, "a"))
	if o := r.observe(doc); !o.Direct || o.Unreadable != nil {
		r.Errorf("after a direct read: %+v", o)
	}
	r.proxy.Heal()
	r.readable()
}

func halfOpen(r *rig) {
	doc := r.doc("a", 1, nil)
	r.applied(doc, "")
	began := time.Now()
	must(r.T, r.proxy.Wire.Set("half-open", 0))
	r.until("the watch is known to be dead", func() bool { return r.observe(doc).Begun.Before(time.Now().Add(-200 * time.Millisecond)) })
	if d := r.stopwatch.Since(began); d > 30*time.Second {
		r.Errorf("noticed after %s", d)
	}
	must(r.T, r.proxy.Wire.Set("", 0))
	r.edit("a", "kubectl-edit", `{"spec":{"replicas":7}}`)
	r.until("what happened meanwhile is seen", func() bool { return len(r.see(doc).Differs) == 1 })
	if o := r.observe(doc); o.Unreadable != nil {
		r.until("it is readable", func() bool { return r.observe(doc).Unreadable == nil })
	}
}

func unanswered(r *rig) {
	doc := r.doc("a", 1, nil)
	r.applied(doc, "")
	r.until("the watch is there", func() bool { return r.proxy.Watches() > 0 })
	r.proxy.Set(world.Fault{Hold: true, When: func(c world.Call) bool { return c.Verb == "watch" }})
	r.proxy.CutWatches()
	r.until("it is unreadable", func() bool {
		f := r.observe(doc).Unreadable
		return f != nil && f.Reason == fleet.ReasonEndpointUnreachable
	})
	holds(r.T, r.observe(doc).Unreadable.Message, "the watch was not answered within 10s")
	r.proxy.Heal()
	r.readable()
}

func cut(r *rig) {
	for _, name := range []string{"a", "b", "c"} {
		r.applied(r.doc(name, 1, nil), "")
	}
	r.until("the watch is there", func() bool { return r.proxy.Watches() > 0 })
	r.proxy.HoldWatches()
	r.proxy.Set(world.Fault{Hold: true, When: func(c world.Call) bool { return c.Verb == "watch" || c.Verb == "list" }})
	r.proxy.CutWatches()
	r.changes.take()
	r.edit("a", "kubectl-edit", `{"spec":{"replicas":7}}`)
	must(r.T, r.as(world.Admin).Delete(r.Context(), "b", metav1.DeleteOptions{}))
	r.proxy.Heal()
	r.until("what happened is seen", func() bool {
		a := r.see(r.doc("a", 1, nil))
		return r.see(r.doc("b", 1, nil)) == nil && a != nil && len(a.Differs) == 1
	})
	got := r.changes.take()
	if count(got, "a") != 1 || count(got, "b") != 1 || count(got, "c") != 0 {
		r.Errorf("told %v, want a and b once", got)
	}
	if r.observe(r.doc("c", 1, nil)).Unreadable != nil {
		r.Error("a watch that was cut and opened again is a failure")
	}
}

// backlog holds back the events of the watch that follows after others were turned away, which
// client-go opens from the last list: nothing may seem to be known of the time in between
// until it is.
func backlog(r *rig) {
	doc := r.doc("a", 1, nil)
	r.applied(doc, "")
	r.until("the watch is there", func() bool { return r.proxy.Watches() > 0 })
	r.proxy.Set(world.Fault{Status: http.StatusTooManyRequests, When: func(c world.Call) bool { return c.Verb == "watch" }})
	r.proxy.CutWatches()
	r.until("watches are turned away", func() bool { f := r.observe(doc).Unreadable; return f != nil && f.Count >= 2 })
	r.edit("a", "kubectl-edit", `{"spec":{"replicas":7}}`)
	edited := time.Now()
	r.proxy.Heal()
	r.proxy.HoldWatches()
	var o fleet.InstanceObservation
	r.until("something newer than the edit is known", func() bool { o = r.observe(doc); return o.Begun.After(edited) })
	equalPaths(r.T, "differences", o.Resource.Differs, "spec.replicas")
	if d := r.stopwatch.Since(edited); d > 20*time.Second {
		r.Errorf("known %s after the edit", d)
	}
	r.proxy.Heal()
}

func compacted(r *rig) {
	doc := r.doc("a", 1, nil)
	r.applied(doc, "")
	gone := apierrors.NewResourceExpired("too old resource version (injected)").ErrStatus
	r.proxy.Set(world.Fault{Status: http.StatusGone, Answer: &gone, When: func(c world.Call) bool { return c.Verb == "watch" }})
	r.proxy.Forget()
	r.proxy.CutWatches()
	r.edit("a", "kubectl-edit", `{"spec":{"replicas":7}}`)
	r.until("it is listed again", func() bool { return r.proxy.Count(func(c world.Call) bool { return c.Verb == "list" }) > 0 })
	r.until("the list is seen", func() bool { return len(r.see(doc).Differs) == 1 })
	if f := r.observe(doc).Unreadable; f != nil {
		r.Errorf("a version that is too old counts as a failure: %+v", f)
	}
	r.proxy.Heal()
	r.readable()
}

func pages(r *rig) {
	const many = 510
	r.end()
	client := r.as(world.Other)
	o := r.foreign("i-0", "somebody", nil, nil, r.doc("i-0", 1, nil).Spec)
	for i := 1; i < many; i++ {
		next := o.DeepCopy()
		next.Object["metadata"] = map[string]any{"name": fmt.Sprint("i-", i)}
		_, err := client.Create(r.Context(), next, metav1.CreateOptions{})
		must(r.T, err)
	}
	r.cluster = open(r.T, r.proxy.REST(world.Kurad), "test")
	r.proxy.Forget()
	r.watch()
	r.until("all are listed", func() bool { return len(r.cluster.Listing(r.namespace).Instances) == many })
	if n := r.proxy.Count(func(c world.Call) bool { return c.Verb == "list" }); n != 2 {
		r.Errorf("%d pages were asked for, want 2", n)
	}
}

func namespaces(r *rig) {
	other := *r
	other.namespace, other.changes = r.namespace+"-2", &changes{}
	must(r.T, r.server.CreateNamespace(r.Context(), other.namespace))
	must(r.T, r.server.Grant(r.Context(), other.namespace))
	other.watch()
	other.readable()
	r.changes.take()
	other.changes.take()
	other.applied(other.doc("a", 1, nil), "")
	other.until("it was told", func() bool { return count(other.changes.take(), "a") > 0 })
	if got := r.changes.take(); len(got) > 0 || r.see(r.doc("a", 1, nil)) != nil {
		r.Errorf("the other namespace was told %v", got)
	}
	if n := len(other.cluster.Listing(other.namespace).Instances); n != 1 {
		r.Errorf("%d instances listed, want 1", n)
	}
	if n := len(r.cluster.Listing(r.namespace).Instances); n != 0 {
		r.Errorf("%d instances listed in the other namespace, want 0", n)
	}
}

func direct(r *rig) {
	doc := r.doc("a", 1, nil)
	r.proxy.HoldWatches()
	r.foreign("a", "somebody", doc.Labels, nil, doc.Spec)
	began := time.Now()
	must(r.T, r.cluster.Refresh(r.Context(), r.namespace, "a"))
	o := r.observe(doc)
	if o.Resource == nil || !o.Direct || o.Begun.Before(began) {
		r.Errorf("with a lagging watch: %+v", o)
	}
	must(r.T, r.as(world.Admin).Delete(r.Context(), "a", metav1.DeleteOptions{}))
	must(r.T, r.cluster.Refresh(r.Context(), r.namespace, "a"))
	if o := r.observe(doc); o.Resource != nil || !o.Direct {
		r.Errorf("after it was deleted: %+v", o)
	}
	r.proxy.Heal()
	r.foreign("b", "somebody", doc.Labels, nil, doc.Spec)
	r.until("the watch has caught up", func() bool { return r.see(r.doc("b", 1, nil)) != nil })
	if r.see(doc) != nil {
		r.Error("what is gone came back")
	}
	if seen, err := r.cluster.Read(r.Context(), key, doc, nil); seen != nil || err != nil {
		r.Errorf("a read of what is gone: %+v, %v", seen, err)
	}
}
