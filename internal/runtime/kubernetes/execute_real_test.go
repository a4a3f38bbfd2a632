//go:build real

package kubernetes_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	world "github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}

// The tests of one API server; each has a namespace, a proxy and a Cluster of its own.
func TestCluster(t *testing.T) {
	s := world.Start(t, world.Options{})
	for name, test := range map[string]func(*rig){
		"K1_anInstanceIsAppliedAndDeletedOnlyByItsUID":             appliedAndDeleted,
		"K1_aConflictHoldsUpNothingElseAndForceTakesTheField":      conflict,
		"P14_anEditByHandIsUndoneAndWhatIsNotOursStays":            handEdit,
		"K1_aListThatAnotherManagerAppliesIsNotTaken":              heldList,
		"K4_aCreateTakesNothingOver":                               createdMeanwhile,
		"K1_whatIsNoLongerDeclaredGoesWhoeverMadeIt":               dropped,
		"K4_whatIsNotOursIsLeftAlone":                              notOurs,
		"K4_whatLostItsLabelIsNobodysUntilItIsAdopted":             lostLabel,
		"K4_forceTakesNothingThatWasRelabelledMeanwhile":           relabelled,
		"K4_whatIsRelabelledWhileItIsDeletedIsLookedAtAgain":       relabelledDeletion,
		"K4_twoEnvironmentsDoNotTouchEachOther":                    environments,
		"K6_anAdoptedInstanceIsChangedInItsMetadataOnly":           adopted,
		"K6_aControllerThatWritesMeanwhileCostsNoSecondTask":       overtaken,
		"L44_whileAWriteGoesOnNothingSeenIsNewerThanIt":            ownWrites,
		"L47_aControllersSignOfLifeIsNoNews":                       signOfLife,
		"L52_aReplacedObjectIsNotApplied":                          replaced,
		"FailureClasses_anAnswerThatIsLostIsNoAnswer":              lostAnswer,
		"FailureClasses_whatTheServerRefusesIsRefusedWithTheField": refusals,
		"P2_rightsThatAreMissingHealWhenTheyAreGranted":            granted,
		"P2_failuresAreCountedAndEndWithTheFirstAnswer":            counted,
		"P2_aConnectionThatLeadsNowhereIsNoticed":                  halfOpen,
		"P2_aWatchThatIsNotAnsweredIsAFailure":                     unanswered,
		"K2_whatHappensWhileTheWatchIsCutIsSeenOnce":               cut,
		"K2_aWatchAfterACutIsNotAheadOfItsBacklog":                 backlog,
		"K2_aWatchFromTooLongAgoListsAgain":                        compacted,
		"K2_moreThanOnePageIsListed":                               pages,
		"K2_twoNamespacesAreSeenApart":                             namespaces,
		"P18_aDirectReadSaysWhatIsThere":                           direct,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := start(t, s, "kura-"+strings.ToLower(strings.SplitN(name, "_", 2)[0])+"-"+strings.ToLower(name[len(name)-12:]))
			test(r)
		})
	}
}

func appliedAndDeleted(r *rig) {
	doc := r.doc("a", 1, nil)
	if o := r.observe(doc); o.Begun.IsZero() || o.Resource != nil {
		r.Fatalf("before: %+v", o)
	}
	r.changes.take()
	out := r.apply(doc, "")
	r.ok(out)
	o := r.observe(doc)
	if o.Resource == nil || o.Resource.Revision != "r1" || o.Resource.SpecImage != "cache:v1" || o.Resource.Foreign != "" || o.Begun.Before(out.At) {
		r.Fatalf("after the apply at %s: %+v, %+v", out.At, o, o.Resource)
	}
	equalPaths(r.T, "differences", o.Resource.Differs)
	r.until("the change was told", func() bool { return count(r.changes.take(), "a") > 0 })
	uid := o.Resource.UID
	// Again, without the UID and with it; and another document.
	r.ok(r.apply(doc, ""))
	r.ok(r.apply(doc, uid))
	next := r.doc("a", 2, map[string]any{"replicas": int64(3)})
	equalPaths(r.T, "differences to the next document", r.see(next).Differs, "spec.replicas")
	if seen := r.applied(next, uid); seen.UID != uid || seen.Revision != "r2" {
		r.Errorf("after the next apply: %+v", seen)
	}
	r.is(r.delete(doc, "11111111-2222-3333-4444-555555555555"), fleet.ClassTransient, fleet.ReasonDrifted, true, "another object")
	r.is(r.delete(doc, ""), fleet.ClassTransient, fleet.ReasonDrifted, true)
	r.ok(r.delete(doc, uid))
	if seen := r.see(doc); seen != nil && !seen.Deleting {
		r.Errorf("after the deletion: %+v", seen)
	}
	r.until("it is gone", func() bool { return r.see(doc) == nil })
	r.ok(r.delete(doc, uid))
	must(r.T, r.cluster.Refresh(r.Context(), r.namespace, "a"))
	if o := r.observe(doc); o.Resource != nil || !o.Direct || o.Unreadable != nil {
		r.Errorf("after a direct read: %+v", o)
	}
	r.is(r.apply(doc, uid), fleet.ClassTransient, fleet.ReasonDrifted, true, "uid mismatch")
}

// createdMeanwhile is an object that appears between the look that finds none and the create.
func createdMeanwhile(r *rig) {
	for name, c := range map[string]struct {
		force  bool
		labels map[string]string
		says   string
	}{
		"by-hand":        {says: fleet.NotByKurad},
		"by-hand-forced": {force: true, says: fleet.NotByKurad},
		"others":         {labels: map[string]string{fleet.LabelEnvironment: "other", fleet.KubeLabelAccount: "acme", fleet.KubeLabelRegion: "eu"}, says: "environment other"},
		"others-forced":  {force: true, labels: map[string]string{fleet.LabelEnvironment: "other", fleet.KubeLabelAccount: "acme", fleet.KubeLabelRegion: "eu"}, says: "environment other"},
	} {
		doc := r.doc(name, 1, map[string]any{"storageSize": "50Gi"})
		doc.Force = c.force
		arrived := make(chan struct{})
		arrive := sync.OnceFunc(func() { close(arrived) })
		r.proxy.Set(world.Fault{Hold: true, When: func(c world.Call) bool {
			if c.Write() {
				arrive()
			}
			return c.Write()
		}})
		ended := make(chan fleet.Outcome)
		go func() { ended <- r.apply(doc, "") }()
		<-arrived
		made := r.foreign(name, "somebody", c.labels, nil, map[string]any{"accountHandle": "acme", "tenantID": "acme", "region": "eu", "image": "cache:v1", "replicas": int64(2)})
		r.proxy.Heal()
		r.is(<-ended, fleet.ClassRefused, fleet.ReasonForeignInstance, true, c.says)
		after, err := r.as(world.Admin).Get(r.Context(), name, metav1.GetOptions{})
		must(r.T, err)
		if diff := cmp.Diff(made.Object, after.Object); diff != "" {
			r.Errorf("%s: it was changed:\n%s", name, diff)
		}
	}
	// One of ours is no failure: a create whose answer was lost is planned anew.
	doc := r.doc("ours", 1, nil)
	r.proxy.Set(world.Fault{After: true, When: world.Call.Write})
	if out := r.apply(doc, ""); out.Answered {
		r.Errorf("outcome %+v", out)
	}
	r.proxy.Heal()
	r.until("it is there", func() bool { return r.see(doc) != nil })
	r.ok(r.apply(doc, ""))
}

// dropped is what a document no longer says: it goes, although a create has made it, and
// whether or not the create's answer was lost.
func dropped(r *rig) {
	for _, lost := range []bool{false, true} {
		doc := r.doc(fmt.Sprintf("lost-%t", lost), 1, map[string]any{"storageSize": "50Gi", "extraEnv": []any{map[string]any{"name": "A", "value": "1"}}})
		if lost {
			r.proxy.Set(world.Fault{After: true, When: func(c world.Call) bool { return c.Verb == "create" }})
		}
		if out := r.apply(doc, ""); out.Answered == lost {
			r.Errorf("outcome %+v", out)
		}
		r.proxy.Heal()
		r.until("it is there", func() bool { return r.see(doc) != nil })
		next := r.doc(doc.Name, 2, map[string]any{"image": "cache:v2"})
		r.proxy.Forget()
		r.ok(r.apply(next, r.see(doc).UID))
		o, err := r.as(world.Admin).Get(r.Context(), doc.Name, metav1.GetOptions{})
		must(r.T, err)
		spec := o.Object["spec"].(map[string]any)
		if spec["storageSize"] != nil || spec["extraEnv"] != nil || spec["image"] != "cache:v2" {
			r.Errorf("create's answer lost %t: the spec is %v", lost, spec)
		}
		for _, m := range o.GetManagedFields() {
			if m.Manager == fleet.KubeFieldManager && m.Operation != metav1.ManagedFieldsOperationApply {
				r.Errorf("it is still kurad's by %s: %s", m.Operation, m.FieldsV1)
			}
		}
	}
}

func conflict(r *rig) {
	doc := r.doc("a", 1, map[string]any{"storageSize": "50Gi"})
	uid := r.applied(doc, "").UID
	r.foreign("a", "hpa", nil, nil, map[string]any{"replicas": int64(5)})
	r.until("another manager holds a field", func() bool { return len(r.see(doc).Held) == 1 })
	seen := r.see(doc)
	equalPaths(r.T, "differences", seen.Differs)
	if h := seen.Held[0]; h != (fleet.FieldDifference{Path: "spec.replicas", Have: "5", Want: "2", Manager: "hpa"}) {
		r.Errorf("held: %+v", h)
	}
	next := r.doc("a", 2, map[string]any{"storageSize": "60Gi"})
	seen = r.applied(next, uid) // without the field that is held
	equalPaths(r.T, "differences but for it", seen.Differs)
	equalPaths(r.T, "held still", seen.Held, "spec.replicas")
	o, err := r.as(world.Admin).Get(r.Context(), "a", metav1.GetOptions{})
	must(r.T, err)
	if spec := o.Object["spec"].(map[string]any); spec["storageSize"] != "60Gi" || spec["replicas"] != int64(5) || seen.Revision != "r2" {
		r.Errorf("revision %s, spec %v", seen.Revision, spec)
	}
	// The image itself is what a server needs; nothing else waits for it.
	r.foreign("a", "hpa", nil, nil, map[string]any{"replicas": int64(5), "image": "cache:v7"})
	image := r.doc("a", 3, map[string]any{"storageSize": "70Gi"})
	r.until("the image is held", func() bool { return len(r.see(image).Held) == 2 })
	r.is(r.apply(image, uid), fleet.ClassRefused, fleet.ReasonFieldConflict, true, "spec.image", "hpa", "all else is applied")
	seen = r.see(image)
	equalPaths(r.T, "differences but for the image", seen.Differs)
	equalPaths(r.T, "held with the image", seen.Held, "spec.image", "spec.replicas")
	// Who takes it over by hand frees it, and ours is applied again. To give up a required field is refused.
	r.edit("a", "kubectl-edit", `{"spec":{"image":"cache:v8"}}`)
	r.until("the image is free", func() bool { return len(r.see(image).Held) == 1 })
	if seen = r.applied(image, uid); seen.SpecImage != "cache:v1" {
		r.Errorf("after it let go: %+v", seen)
	}
	// What tells whose it is cannot be left out.
	r.foreign("a", "hpa", nil, map[string]string{fleet.KubeAnnotationRevision: "theirs"}, map[string]any{"replicas": int64(5)})
	r.until("the annotation is theirs", func() bool { return r.see(image).Revision == "theirs" })
	r.is(r.apply(image, uid), fleet.ClassRefused, fleet.ReasonFieldConflict, true, "kura-manifest-revision", "hpa", "force_conflicts = true", r.namespace+"/a")
	next.Force = true
	equalPaths(r.T, "differences that are to be forced", r.see(next).Differs, "spec.replicas", "spec.storageSize")
	seen = r.applied(next, uid)
	if len(seen.Held)+len(seen.Differs) > 0 || seen.Revision != "r2" {
		r.Errorf("after force: %+v", seen)
	}
}

func handEdit(r *rig) {
	doc := r.doc("a", 1, map[string]any{"nodeSelector": map[string]any{"kubernetes.io/arch": "arm64"}})
	uid := r.applied(doc, "").UID
	r.edit("a", "kubectl-edit", `{"spec":{"replicas":7,"nodeSelector":{"kubernetes.io/arch":null,"disk":"ssd"}},"metadata":{"labels":{"tuist.dev/region":null},"annotations":{"other.dev/note":"x"}}}`)
	// Without the label it is nobody's server's until the UID is remembered, so it is put back first.
	r.edit("a", "kubectl-edit", `{"metadata":{"labels":{"tuist.dev/region":"eu","app.kubernetes.io/name":"changed"}}}`)
	r.until("the edit is seen", func() bool { s := r.see(doc); return s.Foreign == "" && len(s.Differs) == 3 })
	seen := r.see(doc)
	equalPaths(r.T, "differences", seen.Differs, "metadata.labels[app.kubernetes.io/name]", "spec.nodeSelector[kubernetes.io/arch]", "spec.replicas")
	if d := seen.Differs[2]; d.Manager != "kubectl-edit" || d.Have != "7" {
		r.Errorf("difference: %+v", d)
	}
	seen = r.applied(doc, uid)
	equalPaths(r.T, "differences after the apply", seen.Differs)
	o, err := r.as(world.Admin).Get(r.Context(), "a", metav1.GetOptions{})
	must(r.T, err)
	selector := o.Object["spec"].(map[string]any)["nodeSelector"].(map[string]any)
	if selector["disk"] != "ssd" || o.GetAnnotations()["other.dev/note"] != "x" {
		r.Errorf("what is not ours was touched: %v, %v", selector, o.GetAnnotations())
	}
}

// heldList is a list whose elements have more than ours, where a comparison may see a default.
func heldList(r *rig) {
	env := func(extra ...any) map[string]any {
		a := map[string]any{"name": "A"}
		for i := 0; i < len(extra); i += 2 {
			a[extra[i].(string)] = extra[i+1]
		}
		return map[string]any{"extraEnv": []any{a}}
	}
	doc := r.doc("a", 1, env())
	uid := r.applied(doc, "").UID
	r.foreign("a", "tool", nil, nil, env("value", "theirs"))
	r.until("another manager holds the list", func() bool { return len(r.see(doc).Held) == 1 })
	equalPaths(r.T, "held", r.see(doc).Held, "spec.extraEnv")
	next := r.doc("a", 2, env())
	equalPaths(r.T, "held after an apply", r.applied(next, uid).Held, "spec.extraEnv")
	// A field that a person edited beside it is put right, and does not make it ours.
	r.edit("a", "kubectl-edit", `{"spec":{"replicas":7}}`)
	r.until("the edit is seen", func() bool { return len(r.see(next).Differs) == 1 })
	seen := r.applied(next, uid)
	equalPaths(r.T, "differences after the edit", seen.Differs)
	equalPaths(r.T, "held after the edit", seen.Held, "spec.extraEnv")
	r.edit("a", "kubectl-edit", `{"spec":{"replicas":7}}`)
	next.Force = true
	r.until("the edit is seen", func() bool { return slices.Contains(paths(r.see(next).Differs), "spec.replicas") })
	if seen := r.applied(next, uid); len(seen.Held)+len(seen.Differs) > 0 {
		r.Errorf("after force: %+v", seen)
	}
}

func lostLabel(r *rig) {
	doc := r.doc("a", 1, nil)
	uid := r.applied(doc, "").UID
	r.edit("a", "kubectl-edit", `{"metadata":{"labels":{"dev.kura/environment":null}}}`)
	r.until("the label is gone", func() bool { return r.see(doc).Foreign != "" })
	r.proxy.Forget()
	r.is(r.apply(doc, uid), fleet.ClassRefused, fleet.ReasonForeignInstance, true, fleet.NotByKurad)
	r.is(r.delete(doc, uid), fleet.ClassRefused, fleet.ReasonForeignInstance, true, fleet.NotByKurad)
	if n := r.proxy.Count(writes); n > 0 {
		r.Errorf("%d writes to what lost its label: %+v", n, r.proxy.Calls())
	}
	r.ok(r.execute(fleet.Task{ID: "t", Effect: fleet.Effect{Kind: fleet.TaskDelete, Name: "a", UID: uid, Adopted: true}}, doc))
}

func relabelled(r *rig) {
	doc := r.doc("a", 1, nil)
	uid := r.applied(doc, "").UID
	doc.Force = true
	r.until("the watch has seen it", func() bool { return r.apply(doc, uid).Class == fleet.ClassOK })
	r.proxy.HoldWatches()
	r.edit("a", "kurad-other", `{"metadata":{"labels":{"dev.kura/environment":"other"}}}`)
	r.is(r.apply(doc, uid), fleet.ClassRefused, fleet.ReasonForeignInstance, true, "environment other")
	o, err := r.as(world.Admin).Get(r.Context(), "a", metav1.GetOptions{})
	must(r.T, err)
	if env := o.GetLabels()[fleet.LabelEnvironment]; env != "other" {
		r.Errorf("the environment is %q again", env)
	}
	r.proxy.Heal()
	r.until("the new owner is seen", func() bool { return r.see(doc).Foreign != "" })
	r.is(r.apply(doc, uid), fleet.ClassRefused, fleet.ReasonForeignInstance, true, "environment other")
}

// overtaken is an apply that is forced, and so for the version that was looked at, of an
// instance whose status the controller has written since.
func overtaken(r *rig) {
	doc := r.doc("a", 1, nil)
	uid := r.applied(doc, "").UID
	r.until("the watch has seen it", func() bool { return r.see(doc) != nil })
	next := r.doc("a", 2, nil)
	next.Force = true
	r.proxy.HoldWatches()
	r.edit("a", "controller", `{"status":{"phase":"Ready"}}`, "status")
	r.proxy.Forget()
	r.ok(r.apply(next, uid))
	if n := r.proxy.Count(func(c world.Call) bool { return c.Apply && c.Status < http.StatusMultipleChoices }); n != 1 {
		r.Errorf("applied %d times: %+v", n, r.proxy.Calls())
	}
	r.until("the answer is seen", func() bool { return r.see(next).Revision == "r2" })
}

func relabelledDeletion(r *rig) {
	doc := r.doc("a", 1, nil)
	uid := r.applied(doc, "").UID
	arrived := make(chan struct{})
	arrive := sync.OnceFunc(func() { close(arrived) })
	r.proxy.Set(world.Fault{Hold: true, When: func(c world.Call) bool {
		if c.Write() {
			arrive()
		}
		return c.Write()
	}})
	ended := make(chan fleet.Outcome)
	go func() { ended <- r.delete(doc, uid) }()
	<-arrived
	r.edit("a", "kurad-other", `{"metadata":{"labels":{"dev.kura/environment":"other"}}}`)
	r.proxy.Heal()
	r.is(<-ended, fleet.ClassRefused, fleet.ReasonForeignInstance, true, "environment other")
	if o, err := r.as(world.Admin).Get(r.Context(), "a", metav1.GetOptions{}); err != nil || o.GetDeletionTimestamp() != nil {
		r.Errorf("it was deleted: %v", err)
	}
}

func notOurs(r *rig) {
	doc := r.doc("a", 1, nil)
	spec := map[string]any{"accountHandle": "x", "tenantID": "x", "region": "x", "image": "x:1"}
	uid := string(r.foreign("a", "somebody", map[string]string{"tuist.dev/account": "acme"}, nil, spec).GetUID())
	r.until("it is seen", func() bool { return r.see(doc) != nil })
	if seen := r.see(doc); seen.Foreign != fleet.NotByKurad || seen.Account != "acme" || len(seen.Differs) > 0 {
		r.Errorf("seen: %+v", seen)
	}
	r.proxy.Forget()
	r.is(r.apply(doc, ""), fleet.ClassRefused, fleet.ReasonForeignInstance, true, fleet.NotByKurad, "remove or rename it")
	theirs := map[string]string{fleet.LabelEnvironment: "staging", "tuist.dev/account": "acme", "tuist.dev/region": "eu"}
	r.foreign("a", "somebody", theirs, nil, spec)
	r.until("its owner is seen", func() bool { return r.see(doc).Foreign == "server acme/eu of environment staging" })
	r.is(r.apply(doc, uid), fleet.ClassRefused, fleet.ReasonForeignInstance, true, "environment staging")
	r.is(r.delete(doc, uid), fleet.ClassRefused, fleet.ReasonForeignInstance, true, "environment staging")
	if n := r.proxy.Count(writes); n > 0 {
		r.Errorf("%d writes to what is not ours: %+v", n, r.proxy.Calls())
	}
}

func environments(r *rig) {
	mine := r.doc("a", 1, nil)
	uid := r.applied(mine, "").UID
	theirs := mine
	theirs.Labels = map[string]string{fleet.LabelEnvironment: "other", fleet.KubeLabelAccount: key.Account, fleet.KubeLabelRegion: key.Region}
	theirs.Spec = map[string]any{"accountHandle": "other", "tenantID": "acme", "region": "eu", "image": "cache:v9"}
	other := &rig{T: r.T, server: r.server, proxy: r.proxy, namespace: r.namespace, changes: &changes{}, cluster: open(r.T, r.proxy.REST(world.Kurad), "other")}
	other.watch()
	other.until("it is seen", func() bool { return other.see(theirs) != nil })
	if seen := other.see(theirs); seen.Foreign != "server acme/eu of environment test" {
		r.Errorf("seen from the other environment: %+v", seen)
	}
	if l := other.cluster.Listing(r.namespace); len(l.Instances) != 1 || l.Instances[0].Foreign == "" {
		r.Errorf("listed by the other environment: %+v", l.Instances)
	}
	if l := r.cluster.Listing(r.namespace); len(l.Instances) != 1 || l.Instances[0].Foreign != "" || l.Instances[0].Account != "acme" {
		r.Errorf("listed by its own: %+v", l.Instances)
	}
	r.proxy.Forget()
	other.is(other.apply(theirs, ""), fleet.ClassRefused, fleet.ReasonForeignInstance, true, "environment test")
	other.is(other.apply(theirs, uid), fleet.ClassRefused, fleet.ReasonForeignInstance, true)
	other.is(other.delete(theirs, uid), fleet.ClassRefused, fleet.ReasonForeignInstance, true)
	if n := r.proxy.Count(writes); n > 0 {
		r.Errorf("%d writes: %+v", n, r.proxy.Calls())
	}
}

func adopted(r *rig) {
	doc := r.doc("a", 1, nil)
	made := r.foreign("a", "tuist-server", map[string]string{"tuist.dev/account": "acme"}, map[string]string{fleet.KubeAnnotationRevision: "old"}, doc.Spec)
	adoption := &fleet.KubeAdoption{UID: string(made.GetUID()), Generation: 1}
	seen, err := r.cluster.Read(r.Context(), key, doc, adoption)
	must(r.T, err)
	if !seen.Adopted || seen.Foreign != "" || seen.Revision != "old" || len(seen.Held) > 0 {
		r.Fatalf("seen: %+v", seen)
	}
	for _, d := range seen.Differs {
		if !strings.HasPrefix(d.Path, "metadata.") {
			r.Errorf("it differs in %+v", d)
		}
	}
	// The other tool applied its revision: that is a field to take over deliberately.
	take := fleet.Task{ID: "t", Effect: fleet.Effect{Kind: fleet.TaskApply, Name: "a", UID: adoption.UID, Adopted: true, Digest: doc.Revision}}
	r.is(r.execute(take, doc), fleet.ClassRefused, fleet.ReasonFieldConflict, true, fleet.KubeAnnotationRevision, "tuist-server", "force_conflicts")
	doc.Force = true
	r.ok(r.execute(take, doc))
	after := r.see(doc)
	if after == nil || after.Adopted || after.Foreign != "" || len(after.Differs) > 0 || after.Revision != "r1" || after.UID != adoption.UID {
		r.Errorf("after: %+v", after)
	}
	o, err := r.as(world.Admin).Get(r.Context(), "a", metav1.GetOptions{})
	must(r.T, err)
	if o.GetGeneration() != made.GetGeneration() {
		r.Errorf("the spec changed: generation %d, was %d", o.GetGeneration(), made.GetGeneration())
	}
}

func ownWrites(r *rig) {
	doc := r.doc("a", 1, nil)
	r.proxy.HoldWatches()
	// The answer to the write is known although the watch lags behind.
	uid := r.applied(doc, "").UID
	if o := r.observe(r.doc("a", 1, nil)); o.Resource.Revision != "r1" {
		r.Errorf("with a lagging watch: %+v", o.Resource)
	}
	// While the next one goes on, what is seen is no newer than its beginning.
	r.proxy.Set(world.Fault{Hold: true, When: writes})
	next, began := r.doc("a", 2, map[string]any{"replicas": int64(3)}), time.Now()
	ended := make(chan fleet.Outcome)
	go func() { ended <- r.apply(next, uid) }()
	r.until("the write is under way", func() bool { return r.observe(next).Begun.Before(time.Now().Add(-100 * time.Millisecond)) })
	if b := r.observe(next).Begun; b.Before(began) {
		r.Errorf("begun %s, before the write at %s", b, began)
	}
	r.proxy.Heal()
	out := <-ended
	r.ok(out)
	if o := r.observe(next); o.Begun.Before(out.At) || o.Resource.Revision != "r2" || len(o.Resource.Differs) > 0 {
		r.Errorf("after the write: %+v, %+v", o, o.Resource)
	}
	// What the watch has said last stays, whatever an older answer says.
	must(r.T, r.as(world.Admin).Delete(r.Context(), "a", metav1.DeleteOptions{}))
	r.until("it is gone", func() bool { return r.see(next) == nil })
}

func replaced(r *rig) {
	doc := r.doc("a", 1, nil)
	uid := r.applied(doc, "").UID
	r.proxy.HoldWatches()
	must(r.T, r.as(world.Admin).Delete(r.Context(), "a", metav1.DeleteOptions{}))
	r.is(r.apply(doc, uid), fleet.ClassTransient, fleet.ReasonDrifted, true)
	other := r.foreign("a", "somebody", doc.Labels, nil, doc.Spec)
	r.is(r.apply(doc, uid), fleet.ClassTransient, fleet.ReasonDrifted, true)
	r.is(r.delete(doc, uid), fleet.ClassTransient, fleet.ReasonDrifted, true)
	r.proxy.Heal()
	r.until("the new one is seen", func() bool { s := r.see(doc); return s != nil && s.UID == string(other.GetUID()) })
	r.ok(r.delete(doc, string(other.GetUID())))
	r.ok(r.apply(doc, ""))
}

func lostAnswer(r *rig) {
	doc := r.doc("a", 1, nil)
	r.proxy.Set(world.Fault{After: true, When: writes})
	r.is(r.apply(doc, ""), fleet.ClassTransient, fleet.ReasonEndpointUnreachable, false)
	r.proxy.Heal()
	r.until("it has had its effect", func() bool { return r.see(doc) != nil })
	r.ok(r.apply(doc, r.see(doc).UID))
	for status, want := range map[int]fleet.Reason{
		http.StatusUnauthorized: fleet.ReasonRuntimeRefused, http.StatusTooManyRequests: fleet.ReasonRuntimeError,
		http.StatusInternalServerError: fleet.ReasonRuntimeError, http.StatusServiceUnavailable: fleet.ReasonRuntimeError,
		http.StatusConflict: fleet.ReasonDrifted, http.StatusNotFound: fleet.ReasonTypeNotServed,
	} {
		r.proxy.Set(world.Fault{Status: status, When: writes})
		r.is(r.apply(doc, r.see(doc).UID), fleet.ClassTransient, want, true)
	}
	r.proxy.Heal()
	must(r.T, r.proxy.Wire.Set("refuse", 0))
	r.until("nobody listens", func() bool {
		f := r.observe(doc).Unreadable
		return f != nil && strings.Contains(f.Message, "connection refused")
	})
	r.is(r.apply(doc, r.see(doc).UID), fleet.ClassTransient, fleet.ReasonEndpointUnreachable, true, "connection refused")
	must(r.T, r.proxy.Wire.Set("", 0))
}

func refusals(r *rig) {
	r.is(r.apply(r.doc("a", 1, map[string]any{"replicas": int64(0)}), ""), fleet.ClassRefused, fleet.ReasonInvalid, true, "spec.replicas", r.namespace+"/a")
	r.is(r.apply(r.doc("a", 1, map[string]any{"replicas": "two"}), ""), fleet.ClassRefused, fleet.ReasonInvalid, true, "spec.replicas", "type")
	must(r.T, r.server.Revoke(r.Context(), r.namespace))
	defer func() { must(r.T, r.server.Grant(r.Context(), r.namespace)) }()
	// It may not even look whose the name is.
	r.is(r.apply(r.doc("a", 1, nil), ""), fleet.ClassTransient, fleet.ReasonRuntimeRefused, true, "forbidden")
	r.is(r.apply(r.doc("a", 1, nil), "11111111-2222-3333-4444-555555555555"), fleet.ClassRefused, fleet.ReasonForbidden, true, "forbidden", "Role")
	admin := &rig{T: r.T, server: r.server, cluster: open(r.T, r.server.REST(world.Admin), "test"), namespace: "missing", changes: &changes{}}
	admin.is(admin.apply(admin.doc("a", 1, nil), ""), fleet.ClassRefused, fleet.ReasonNamespaceGone, true, "missing", "create the namespace")
}
