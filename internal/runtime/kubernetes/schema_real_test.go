//go:build real

package kubernetes_test

import (
	"slices"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	world "github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

func TestK3_whatAnOldSchemaLacksIsLeftOutAndToldUntilItIsUpgraded(t *testing.T) {
	s := world.Start(t, world.Options{Without: world.NewerFields})
	r := start(t, s, world.Namespace)
	spec := map[string]any{
		"clientHostAliases": []any{"old.example.dev"}, "mesh": map[string]any{"peer": "x"},
		"tolerations": []any{map[string]any{"key": "dedicated", "anything": true}}, "storageSize": "50Gi",
	}
	doc := r.doc("a", 1, spec)
	r.proxy.Forget()
	seen := r.applied(doc, "")
	want := []string{"spec.clientHostAliases", "spec.mesh"}
	if !slices.Equal(seen.Dropped, want) || len(seen.Differs) > 0 || seen.Revision != "r1" {
		t.Errorf("with the old schema: %+v, want %v dropped", seen, want)
	}
	if n := r.proxy.Count(writes); n != 1 {
		t.Errorf("%d writes, want 1: the schema is known before", n)
	}

	// The definition is upgraded under it.
	r.changes.take()
	began := time.Now()
	must(t, s.InstallCRD(t.Context()))
	r.until("the new schema is known", func() bool { return len(r.see(doc).Dropped) == 0 })
	t.Logf("known %s after the upgrade began", time.Since(began))
	equalPaths(t, "differences", r.see(doc).Differs, want...)
	if count(r.changes.take(), "") == 0 {
		t.Error("a new schema was not told")
	}
	seen = r.applied(doc, seen.UID)
	if len(seen.Differs)+len(seen.Dropped) > 0 {
		t.Errorf("after the upgrade: %+v", seen)
	}

	// It goes back to the old one, and the fields with it.
	must(t, s.InstallCRD(t.Context(), world.NewerFields...))
	r.until("the old schema is known", func() bool { return slices.Equal(r.see(doc).Dropped, want) })
	r.ok(r.apply(r.doc("a", 2, spec), seen.UID))

	// The type goes: its objects do, and then nothing is known of any.
	must(t, s.RemoveCRD(t.Context()))
	r.until("the type is not served", func() bool { f := r.observe(doc).Unreadable; return f != nil && f.Reason == fleet.ReasonTypeNotServed })
	holds(t, r.observe(doc).Unreadable.Message, "kurainstances.kura.tuist.dev", "CustomResourceDefinition")
	if err := r.cluster.Refresh(t.Context(), r.namespace, "a"); fleet.CodeOf(err) != fleet.CodeUnavailable {
		t.Errorf("a direct read without the type: %v", err)
	}
	if o := r.observe(doc); o.Direct || o.Unreadable == nil {
		t.Errorf("after it: %+v", o)
	}
	if seen, err := r.cluster.Read(t.Context(), key, doc, nil); seen != nil || fleet.CodeOf(err) != fleet.CodeUnavailable {
		t.Errorf("a read for the API without the type: %+v, %v", seen, err)
	}
	const uid = "11111111-2222-3333-4444-555555555555"
	r.is(r.answered(fleet.Task{ID: "t", Effect: fleet.Effect{Kind: fleet.TaskApply, Name: doc.Name, UID: uid, Digest: doc.Revision}}, doc), fleet.ClassTransient, fleet.ReasonTypeNotServed, true, "CustomResourceDefinition")
	r.is(r.answered(fleet.Task{ID: "t", Effect: fleet.Effect{Kind: fleet.TaskDelete, Name: doc.Name, UID: uid}}, doc), fleet.ClassTransient, fleet.ReasonTypeNotServed, true)
	must(t, s.InstallCRD(t.Context()))
	r.readable()
	r.applied(doc, "")
}

// A type that vanishes from the API while its objects are in etcd says nothing about them.
func TestP3_aTypeThatIsNotServedIsNoAbsence(t *testing.T) {
	s := world.Start(t, world.Options{})
	r := start(t, s, world.Namespace)
	doc := r.doc("a", 1, nil)
	uid := r.applied(doc, "").UID
	notFound := func(c world.Call) bool { return c.Group == fleet.KubeGroup }
	r.proxy.Set(world.Fault{Status: 404, When: notFound})
	r.proxy.CutWatches()
	r.until("the type is not served", func() bool { f := r.observe(doc).Unreadable; return f != nil && f.Reason == fleet.ReasonTypeNotServed })
	if seen := r.see(doc); seen == nil || seen.UID != uid {
		t.Errorf("it is taken for absent: %+v", seen)
	}
	if err := r.cluster.Refresh(t.Context(), r.namespace, "a"); fleet.CodeOf(err) != fleet.CodeUnavailable {
		t.Errorf("a direct read: %v", err)
	}
	r.is(r.delete(doc, uid), fleet.ClassTransient, fleet.ReasonTypeNotServed, true)
	r.proxy.Heal()
	r.readable()
	if seen := r.see(doc); seen == nil || seen.UID != uid {
		t.Errorf("afterwards: %+v", seen)
	}
}

func TestK3_withoutTheSchemaAnUndeclaredFieldIsAClearError(t *testing.T) {
	s := world.Start(t, world.Options{Without: world.NewerFields})
	r := start(t, s, world.Namespace)
	r.end()
	r.cluster = open(t, r.proxy.REST(world.Kurad), "test")
	r.proxy.Set(world.Fault{Status: 403, When: func(c world.Call) bool { return c.Group == "" && c.Resource == "" }})
	r.watch()
	r.readable()
	doc := r.doc("a", 1, map[string]any{"clientHostAliases": []any{"old.example.dev"}})
	r.is(r.apply(doc, ""), fleet.ClassRefused, fleet.ReasonInvalid, true, `unknown field "spec.clientHostAliases"`, "system:discovery")
	// As soon as it can be read, the same apply does without the field.
	r.proxy.Heal()
	seen := r.applied(doc, "")
	if !slices.Equal(seen.Dropped, []string{"spec.clientHostAliases"}) || len(seen.Differs) > 0 {
		t.Errorf("with the schema: %+v", seen)
	}
}

func TestP2_aServerThatIsKilledIsUnreachableUntilItIsBack(t *testing.T) {
	s := world.Start(t, world.Options{})
	r := start(t, s, world.Namespace)
	doc := r.doc("a", 1, nil)
	uid := r.applied(doc, "").UID
	s.Kill()
	r.until("it is unreachable", func() bool {
		f := r.observe(doc).Unreadable
		return f != nil && f.Reason == fleet.ReasonEndpointUnreachable && f.Count > 1
	})
	if seen := r.see(doc); seen == nil || seen.UID != uid {
		t.Errorf("while it is away: %+v", seen)
	}
	if o := r.apply(doc, uid); o.Class != fleet.ClassTransient || o.Reason != fleet.ReasonEndpointUnreachable {
		t.Errorf("an apply while it is away: %+v", o)
	}
	must(t, s.Restart(t.Context()))
	back := time.Now()
	r.readable()
	if d := r.stopwatch.Since(back); d > 20*time.Second {
		t.Errorf("read again %s after it was back", d)
	}
	if o := r.observe(doc); o.Resource == nil || o.Resource.UID != uid || len(o.Resource.Differs) > 0 {
		t.Errorf("afterwards: %+v", o)
	}
}
