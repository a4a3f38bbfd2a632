package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// Execute runs one task of server key, until it succeeded, the server answered otherwise
// or ctx ended. Every task may be repeated. doc is the server's rendered document; of it
// a deletion needs only where the instance is.
func (c *Cluster) Execute(ctx context.Context, key fleet.ServerKey, task fleet.Task, doc fleet.KubeDocument) fleet.Outcome {
	r := run{Cluster: c, cached: c.cache(doc.Namespace), key: key, task: task, doc: doc}
	defer r.cached.begin(doc.Name)()
	o, err := r.execute(ctx)
	if err != nil {
		o = r.failed(err)
	}
	o.At = c.cfg.Now().UTC()
	runtime.LogUndone(c.log, key, task, o)
	return o
}

// run is one execution of a task. An error of its steps is the server's answer to a change, or
// undone.
type run struct {
	*Cluster
	cached *namespaceCache
	key    fleet.ServerKey
	task   fleet.Task
	doc    fleet.KubeDocument
}

// undone is the outcome of a task that kurad itself ends, as an error.
type undone struct{ fleet.Outcome }

func (u undone) Error() string { return u.Message }

// looks is how often an instance is looked at that changes between the look and the change
// that is for its version: its controller writes to it, too.
const looks = 4

func (r run) execute(ctx context.Context) (fleet.Outcome, error) {
	if r.task.Name != "" && r.task.Name != r.doc.Name {
		return fleet.Outcome{}, r.replan("the plan was made for the name %s", r.task.Name)
	}
	if f := r.checkIdentity(ctx, r.doc.Namespace); f != nil {
		return fleet.Outcome{}, r.transient(f.Reason, "%s", f.Message)
	}
	var step func(ctx context.Context, again bool) (fleet.Outcome, error)
	switch r.task.Kind {
	case fleet.TaskApply:
		step = r.apply
	case fleet.TaskDelete:
		step = r.remove
	case fleet.TaskPull, fleet.TaskCreate, fleet.TaskStop, fleet.TaskRename, fleet.TaskStart, fleet.TaskRemove, fleet.TaskRemoveVolumes,
		fleet.TaskPublish, fleet.TaskWithdraw, fleet.TaskJoin, fleet.TaskLeave:
	}
	if step == nil {
		return fleet.Outcome{}, r.refuse(fleet.ReasonInvalid, "this kurad knows no task %q of a cluster", r.task.Kind)
	}
	for look := 1; ; look++ {
		o, err := step(ctx, look > 1)
		if look == looks || !overtaken(err) {
			return o, err
		}
	}
}

// overtaken reports whether a change of the object came before ours, which was not made.
func overtaken(err error) bool { return apierrors.IsConflict(err) && !conflicts(statusOf(err)) }

// apply makes the instance as the document says (K1): as it is known, or, again, as it is now.
func (r run) apply(ctx context.Context, again bool) (out fleet.Outcome, err error) {
	if r.task.Digest != "" && r.task.Digest != r.doc.Revision {
		return out, r.replan("the document has changed since the plan was made")
	}
	uid, version, err := r.target(ctx, again)
	switch {
	case err != nil:
		return out, err
	case uid == "":
		return r.create(ctx)
	}
	if o := r.cached.snapshotOf(r.doc.Name).object; o != nil && o.owners.edits(fleet.KubeFieldManager) {
		owned, err := r.own(ctx, uid)
		if err != nil {
			return out, err
		}
		if version != "" {
			version = owned
		}
	}
	var yields []claim
	if o := r.cached.snapshotOf(r.doc.Name).object; o != nil && !r.doc.Force {
		if yields, err = r.yields(o, nil); err != nil {
			return out, err
		}
	}
	echo, err := r.declared(ctx, func() (*unstructured.Unstructured, error) { return r.patch(ctx, uid, version, r.doc.Force, yields) })
	if conflict := statusOf(err); conflicts(conflict) && !r.doc.Force {
		// It is about fields that were changed by hand, and an edit is not management (P14): they
		// are forced, at a version at which nobody else applied what is left of the document
		// without what it yields.
		var o *object
		if o, err = r.lookAgain(ctx, uid); err != nil {
			return out, err
		}
		if yields, err = r.yields(o, conflict); err != nil {
			return out, err
		}
		echo, err = r.patch(ctx, string(o.UID), o.ResourceVersion, true, yields)
	}
	if err != nil {
		return out, err
	}
	out = r.done(echo)
	if i := slices.IndexFunc(yields, func(y claim) bool { return y.text == "spec.image" }); i >= 0 {
		// All else is as declared; what this one holds up is the server.
		applied := out.Applied
		out = r.refuse(fleet.ReasonFieldConflict, "another manager holds spec.image (%s applies it), and all else is applied; %s", yields[i].manager, adviseConflict).Outcome
		out.Applied = applied
	}
	return out, nil
}

// declared writes, and does so again with the schema as it is now where that lacks a field:
// the definition has changed, or its schema had not been read.
func (r run) declared(ctx context.Context, write func() (*unstructured.Unstructured, error)) (*unstructured.Unstructured, error) {
	echo, err := write()
	if undeclared(statusOf(err)) {
		r.readSchema(ctx)
		echo, err = write()
	}
	return echo, err
}

// done is the outcome of an apply that was answered with the object.
func (r run) done(echo *unstructured.Unstructured) fleet.Outcome {
	o := r.owners.object(echo)
	altered := echoed(o, r.doc, r.schema())
	r.cached.wrote(o, altered)
	is := o.shown.State()
	return fleet.Outcome{Class: fleet.ClassOK, Answered: true, Applied: &is, Altered: altered[:min(len(altered), maxFields)]}
}

// create makes what the look did not find. It takes nothing over: where the name was taken
// since then, it fails, which an apply would not (K4).
func (r run) create(ctx context.Context) (out fleet.Outcome, err error) {
	made, err := r.declared(ctx, func() (*unstructured.Unstructured, error) {
		return r.instances(r.doc.Namespace).Create(ctx, r.manifest(), metav1.CreateOptions{FieldManager: fleet.KubeFieldManager, FieldValidation: metav1.FieldValidationStrict})
	})
	if apierrors.IsAlreadyExists(err) {
		if _, err := r.lookAgain(ctx, ""); err != nil {
			return out, err
		}
		return out, r.replan("the name was taken since it was looked at")
	}
	if err != nil {
		return out, err
	}
	return r.done(made), nil
}

// own makes applied fields of those that kurad has by a create: what an apply leaves out
// goes only if an apply has had it. It returns the version that has them.
func (r run) own(ctx context.Context, uid string) (version string, err error) {
	u, err := r.instances(r.doc.Namespace).Get(ctx, r.doc.Name, metav1.GetOptions{})
	switch {
	case err != nil && !absent(err, r.doc.Name):
		return "", r.unread(err)
	case err != nil, string(u.GetUID()) != uid, r.mine(r.owners.object(u.DeepCopy())) != nil:
		return "", apierrors.NewConflict(gvr.GroupResource(), r.doc.Name, errors.New("it is not the server's any more"))
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(u, sets.New(fleet.KubeFieldManager), fleet.KubeFieldManager)
	if err == nil && patch != nil {
		u, err = r.instances(r.doc.Namespace).Patch(ctx, r.doc.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fleet.KubeFieldManager})
	}
	if err != nil {
		return "", err
	}
	return u.GetResourceVersion(), nil
}

// target returns the UID of what to apply to; "": there is nothing. What is not the server's
// is left alone (K4). A
// plan for something that was there names its UID, which the server checks. Force would
// also take labels that another environment gave it meanwhile: it is for the version that
// was looked at, which is the watch's until something newer is there.
func (r run) target(ctx context.Context, again bool) (uid, version string, err error) {
	o := r.cached.snapshotOf(r.doc.Name).object
	if again || r.task.UID == "" || r.doc.Force && (o == nil || string(o.UID) != r.task.UID) {
		if o, err = r.get(ctx, r.doc.Namespace, r.doc.Name); err != nil {
			return "", "", r.unread(err)
		}
	}
	if o == nil || r.task.UID != "" && string(o.UID) != r.task.UID {
		return r.task.UID, "", nil
	}
	if r.doc.Force {
		version = o.ResourceVersion
	}
	return string(o.UID), version, r.mine(o)
}

// mine refuses what is not the server's. Without its labels it is so only where the plan
// was made for an adopted one: what lost them is nobody's.
func (r run) mine(o *object) error {
	adopted := ""
	if r.task.Adopted {
		adopted = r.task.UID
	}
	if ours, _ := o.belongs(r.cfg.Environment.Name, r.key, adopted); ours {
		return nil
	}
	return undone{runtime.Foreign(r.message("it"), o.ownerName())}
}

// manifest is the document without what the schema lacks.
func (r run) manifest() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: r.doc.Manifest()}
	u.Object["spec"], _ = r.schema().prune(r.doc.Spec)
	return u
}

// patch applies the document, but for what it yields, to the object that has the UID, at the
// version, where that is given.
func (r run) patch(ctx context.Context, uid, version string, force bool, yields []claim) (*unstructured.Unstructured, error) {
	u := r.manifest()
	for _, y := range yields {
		u.Object, _ = without(u.Object, y.elems).(map[string]any)
	}
	u.SetUID(types.UID(uid))
	u.SetResourceVersion(version)
	return r.instances(r.doc.Namespace).Apply(ctx, r.doc.Name, u, metav1.ApplyOptions{FieldManager: fleet.KubeFieldManager, Force: force})
}

// yields returns the fields of the document that another manager applied otherwise, or about
// which there is a conflict: they are left out, so that they hold up nothing else (K1). What
// tells whose it is, and what was applied, cannot be: then nothing is applied.
func (r run) yields(o *object, conflict *metav1.Status) ([]claim, error) {
	all := r.doc
	all.Annotations = map[string]string{fleet.KubeAnnotationRevision: r.doc.Revision}
	maps.Copy(all.Annotations, r.doc.Annotations)
	c := compare(o, all, r.schema(), nil)
	yields := c.yields
	if conflict != nil {
		yields = append(yields, o.owners.appliers(conflict)...)
	}
	var fields []string
	for _, y := range yields {
		if !slices.Contains(vital, y.text) {
			continue
		}
		text := fmt.Sprintf("%s (%s applies it)", y.text, y.manager)
		if i := slices.IndexFunc(c.held, func(h fleet.FieldDifference) bool { return h.Path == y.text }); i >= 0 {
			text = fmt.Sprintf("%s (%s applies %s, the document has %s)", y.text, y.manager, c.held[i].Have, c.held[i].Want)
		}
		fields = append(fields, text)
	}
	if len(fields) == 0 {
		return yields, nil
	}
	slices.Sort(fields)
	return nil, r.refuse(fleet.ReasonFieldConflict, "another manager holds %s; %s", shorten(strings.Join(slices.Compact(fields), ", ")), adviseConflict)
}

// vital is what an instance is told by.
var vital = []string{
	"metadata.annotations[" + fleet.KubeAnnotationRevision + "]", "metadata.labels[" + fleet.LabelEnvironment + "]",
	"metadata.labels[" + fleet.KubeLabelAccount + "]", "metadata.labels[" + fleet.KubeLabelRegion + "]",
}

// lookAgain returns the instance as it is now, of which a write has shown that it is there; uid,
// where it is given, is the one that it had.
func (r run) lookAgain(ctx context.Context, uid string) (*object, error) {
	o, err := r.get(ctx, r.doc.Namespace, r.doc.Name)
	switch {
	case err != nil:
		return nil, r.unread(err)
	case o == nil, uid != "" && string(o.UID) != uid:
		return nil, r.replan("it was replaced while it was applied")
	}
	return o, r.mine(o)
}

// remove deletes the instance that the task names by its UID, and none that is not the
// server's: at the version that is looked at, for somebody may give it other labels
// meanwhile.
func (r run) remove(ctx context.Context, _ bool) (out fleet.Outcome, err error) {
	if r.task.UID == "" {
		return out, r.replan("the plan names no object to delete")
	}
	gone := fleet.Outcome{Class: fleet.ClassOK, Answered: true}
	o, err := r.get(ctx, r.doc.Namespace, r.doc.Name)
	switch {
	case err != nil:
		return out, r.unread(err)
	case o == nil:
		return gone, nil
	case string(o.UID) != r.task.UID:
		return out, r.replan("another object has taken its name")
	}
	if err := r.mine(o); err != nil {
		return out, err
	}
	err = r.instances(r.doc.Namespace).Delete(ctx, r.doc.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}})
	if err != nil && !absent(err, r.doc.Name) {
		return out, err
	}
	r.cached.deleting(r.doc.Name, r.task.UID)
	return gone, nil
}

// failed is the outcome of an error.
func (r run) failed(err error) fleet.Outcome {
	if u, ok := errors.AsType[undone](err); ok {
		return u.Outcome
	}
	if undeclared(statusOf(err)) && r.served.Load() != nil {
		return r.transient(fleet.ReasonSchemaTooOld, "the schema that is served differs from the one that applies; it is read again: %s", shorten(err.Error())).Outcome
	}
	m := classify(err, r.doc.Name)
	text := shorten(err.Error())
	if m.advice != "" {
		text += "; " + m.advice
	}
	return fleet.Outcome{Class: m.class, Reason: m.reason, Answered: answeredBy(err), Message: r.message("%s", text)}
}

// unread is the outcome of a look that did not answer: nothing was changed.
func (r run) unread(err error) undone {
	f := r.readFailure(r.doc.Namespace, err)
	return r.transient(f.Reason, "look at it first: %s", f.Message)
}

func (r run) message(format string, args ...any) string {
	return fmt.Sprintf("%s %s: ", r.task.Kind, r.where(r.doc.Namespace, r.doc.Name)) + fmt.Sprintf(format, args...)
}

func (r run) refuse(reason fleet.Reason, format string, args ...any) undone {
	return undone{runtime.Refuse(reason, "%s", r.message(format, args...))}
}

func (r run) transient(reason fleet.Reason, format string, args ...any) undone {
	return undone{runtime.Transient(reason, "%s", r.message(format, args...))}
}

func (r run) replan(format string, args ...any) undone {
	return r.transient(fleet.ReasonDrifted, format, args...)
}
