package kubernetes

import (
	"context"
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
)

// Execute runs one task of server key, until it succeeded, the server answered otherwise
// or ctx ended. Every task may be repeated. doc is the server's rendered document; of it
// a deletion needs only where the instance is.
func (c *Cluster) Execute(ctx context.Context, key fleet.ServerKey, task fleet.Task, doc fleet.KubeDocument) fleet.Outcome {
	p := c.picture(doc.Namespace)
	r := run{Cluster: c, p: p, key: key, task: task, doc: doc}
	defer p.begin(doc.Name)()
	o := r.execute(ctx)
	o.At = c.cfg.Now().UTC()
	if o.Class != fleet.ClassOK {
		c.log.Debug("task not done", "server", key, "task", task.ID, "kind", task.Kind, "class", o.Class, "reason", o.Reason, "message", o.Message)
	}
	return o
}

// run is one execution of a task.
type run struct {
	*Cluster
	p    *picture
	key  fleet.ServerKey
	task fleet.Task
	doc  fleet.KubeDocument
}

func (r run) execute(ctx context.Context) fleet.Outcome {
	if r.task.Name != "" && r.task.Name != r.doc.Name {
		return r.replan("the plan was made for the name %s", r.task.Name)
	}
	if f := r.checkIdentity(ctx, r.doc.Namespace); f != nil {
		return fleet.Outcome{Class: fleet.ClassTransient, Reason: f.Reason, Answered: true, Message: r.message("%s", f.Message)}
	}
	switch r.task.Kind {
	case fleet.TaskApply:
		return r.apply(ctx)
	case fleet.TaskDelete:
		return r.remove(ctx)
	case fleet.TaskPull, fleet.TaskCreate, fleet.TaskStop, fleet.TaskRename, fleet.TaskStart, fleet.TaskRemove, fleet.TaskRemoveVolumes:
	}
	return r.refuse(fleet.ReasonInvalid, "this kurad knows no task %q of a cluster", r.task.Kind)
}

// looks is how often an instance is looked at that changes between the look and the change
// that is for its version: its controller writes to it, too.
const looks = 4

// apply makes the instance as the document says (K1).
func (r run) apply(ctx context.Context) fleet.Outcome {
	if r.task.Digest != "" && r.task.Digest != r.doc.Revision {
		return r.replan("the document has changed since the plan was made")
	}
	for look := 1; ; look++ {
		out, overtaken := r.applySeen(ctx, look > 1)
		if !overtaken || look == looks {
			return out
		}
	}
}

// applySeen applies the document to the instance as it is known, or as it is now; overtaken
// says that a change of it came first, and nothing was applied.
func (r run) applySeen(ctx context.Context, again bool) (out fleet.Outcome, overtaken bool) {
	uid, version, refused := r.target(ctx, again)
	switch {
	case refused != nil:
		return *refused, false
	case uid == "":
		return r.create(ctx), false
	}
	if o := r.p.snapshotOf(r.doc.Name).object; o != nil && o.owners.edits(fleet.KubeFieldManager) {
		owned, failed, overtaken := r.own(ctx, uid)
		if failed != nil {
			return *failed, overtaken
		}
		if version != "" {
			version = owned
		}
	}
	var yields []claim
	if o := r.p.snapshotOf(r.doc.Name).object; o != nil && !r.doc.Force {
		if yields, refused = r.yields(o, nil); refused != nil {
			return *refused, false
		}
	}
	echo, err := r.declared(ctx, func() (*unstructured.Unstructured, error) { return r.patch(ctx, uid, version, r.doc.Force, yields) })
	if conflicts(statusOf(err)) && !r.doc.Force {
		if uid, version, yields, refused = r.readAgain(ctx, uid, statusOf(err)); refused != nil {
			return *refused, false
		}
		echo, err = r.patch(ctx, uid, version, true, yields)
	}
	if err != nil {
		return r.failed(err), version != "" && apierrors.IsConflict(err) && !conflicts(statusOf(err))
	}
	out = r.done(echo)
	if i := slices.IndexFunc(yields, func(y claim) bool { return y.text == "spec.image" }); i >= 0 {
		// All else is as declared; what this one holds up is the server.
		refusal := r.refuse(fleet.ReasonFieldConflict, "another manager holds spec.image (%s applies it), and all else is applied; %s", yields[i].manager, adviseConflict)
		refusal.Applied = out.Applied
		return refusal, false
	}
	return out, false
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
	altered := echoed(o, r.doc, r.live.get())
	r.p.wrote(o, altered)
	is := o.view(owner{}, false).State()
	return fleet.Outcome{Class: fleet.ClassOK, Answered: true, Applied: &is, Altered: altered[:min(len(altered), maxFields)]}
}

// create makes what the look did not find. It takes nothing over: where the name was taken
// since then, it fails, which an apply would not (K4).
func (r run) create(ctx context.Context) fleet.Outcome {
	made, err := r.declared(ctx, func() (*unstructured.Unstructured, error) {
		return r.instances(r.doc.Namespace).Create(ctx, r.manifest(), metav1.CreateOptions{FieldManager: fleet.KubeFieldManager, FieldValidation: metav1.FieldValidationStrict})
	})
	switch {
	case apierrors.IsAlreadyExists(err):
		o, err := r.get(ctx, r.doc.Namespace, r.doc.Name)
		if err != nil {
			return *r.unread(err)
		}
		if o != nil {
			if out := r.mine(o); out != nil {
				return *out
			}
		}
		return r.replan("the name was taken since it was looked at")
	case err != nil:
		return r.failed(err)
	}
	return r.done(made)
}

// own makes applied fields of those that kurad has by a create: what an apply leaves out
// goes only if an apply has had it. It returns the version that has them; overtaken says that
// it is not what was looked at any more.
func (r run) own(ctx context.Context, uid string) (version string, failed *fleet.Outcome, overtaken bool) {
	u, err := r.instances(r.doc.Namespace).Get(ctx, r.doc.Name, metav1.GetOptions{})
	if err != nil && !absent(err, r.doc.Name) {
		return "", r.unread(err), false
	}
	if err != nil || string(u.GetUID()) != uid || r.mine(r.owners.object(u.DeepCopy())) != nil {
		out := r.replan("it is not the server's any more")
		return "", &out, true
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(u, sets.New(fleet.KubeFieldManager), fleet.KubeFieldManager)
	if err == nil && patch != nil {
		u, err = r.instances(r.doc.Namespace).Patch(ctx, r.doc.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fleet.KubeFieldManager})
	}
	if err != nil {
		out := r.failed(err)
		return "", &out, apierrors.IsConflict(err)
	}
	return u.GetResourceVersion(), nil, false
}

// target returns the UID of what to apply to; "": there is nothing. What is not the server's
// is left alone (K4). A
// plan for something that was there names its UID, which the server checks. Force would
// also take labels that another environment gave it meanwhile: it is for the version that
// was looked at, which is the watch's until something newer is there.
func (r run) target(ctx context.Context, again bool) (uid, version string, out *fleet.Outcome) {
	o := r.p.snapshotOf(r.doc.Name).object
	if again || r.task.UID == "" || r.doc.Force && (o == nil || string(o.UID) != r.task.UID) {
		var err error
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
func (r run) mine(o *object) *fleet.Outcome {
	adopted := ""
	if r.task.Adopted {
		adopted = r.task.UID
	}
	if ours, _ := o.belongs(r.cfg.Environment.Name, r.key, adopted); ours {
		return nil
	}
	out := r.refuse(fleet.ReasonForeignInstance, "it is %s; kurad does not touch it: remove or rename it, or choose another account id or cluster id", ownerOf(o.Labels))
	return &out
}

// manifest is the document without what the schema lacks.
func (r run) manifest() *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: r.doc.Manifest()}
	u.Object["spec"], _ = r.live.get().prune(r.doc.Spec)
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
func (r run) yields(o *object, conflict *metav1.Status) ([]claim, *fleet.Outcome) {
	all := r.doc
	all.Annotations = maps.Clone(all.Annotations)
	if all.Annotations == nil {
		all.Annotations = map[string]string{}
	}
	all.Annotations[fleet.KubeAnnotationRevision] = r.doc.Revision
	c := compare(o, all, r.live.get(), nil)
	yields := c.yields
	if conflict != nil {
		yields = append(yields, o.owners.appliers(conflictingFields(conflict))...)
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
	refusal := r.refuse(fleet.ReasonFieldConflict, "another manager holds %s; %s", shorten(strings.Join(slices.Compact(fields), ", ")), adviseConflict)
	return nil, &refusal
}

// vital is what an instance is told by.
var vital = []string{
	"metadata.annotations[" + fleet.KubeAnnotationRevision + "]", "metadata.labels[" + fleet.LabelEnvironment + "]",
	"metadata.labels[" + fleet.KubeLabelAccount + "]", "metadata.labels[" + fleet.KubeLabelRegion + "]",
}

// readAgain returns the UID and version at which nobody else applied what is left of the
// document without what it yields: the conflict is about fields that were changed by hand,
// and an edit is not management (P14).
func (r run) readAgain(ctx context.Context, uid string, conflict *metav1.Status) (seenUID, version string, yields []claim, out *fleet.Outcome) {
	o, err := r.get(ctx, r.doc.Namespace, r.doc.Name)
	switch {
	case err != nil:
		return "", "", nil, r.unread(err)
	case o == nil || uid != "" && string(o.UID) != uid:
		replan := r.replan("it was replaced while it was applied")
		return "", "", nil, &replan
	}
	if out := r.mine(o); out != nil {
		return "", "", nil, out
	}
	yields, out = r.yields(o, conflict)
	return string(o.UID), o.ResourceVersion, yields, out
}

// remove deletes the instance that the task names by its UID, and none that is not the
// server's: at the version that was looked at, for somebody may give it other labels
// meanwhile.
func (r run) remove(ctx context.Context) fleet.Outcome {
	if r.task.UID == "" {
		return r.replan("the plan names no object to delete")
	}
	for look := 1; ; look++ {
		out, overtaken := r.removeSeen(ctx)
		if !overtaken || look == looks {
			return out
		}
	}
}

// removeSeen deletes the instance as it is now, unless a change of it comes first.
func (r run) removeSeen(ctx context.Context) (out fleet.Outcome, overtaken bool) {
	o, err := r.get(ctx, r.doc.Namespace, r.doc.Name)
	switch {
	case err != nil:
		return *r.unread(err), false
	case o == nil:
		return fleet.Outcome{Class: fleet.ClassOK, Answered: true}, false
	case string(o.UID) != r.task.UID:
		return r.replan("another object has taken its name"), false
	}
	if out := r.mine(o); out != nil {
		return *out, false
	}
	err = r.instances(r.doc.Namespace).Delete(ctx, r.doc.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &o.UID, ResourceVersion: &o.ResourceVersion}})
	if err != nil && !absent(err, r.doc.Name) {
		return r.failed(err), apierrors.IsConflict(err)
	}
	r.p.deleting(r.doc.Name, r.task.UID)
	return fleet.Outcome{Class: fleet.ClassOK, Answered: true}, false
}

// failed is the outcome of an error of a change.
func (r run) failed(err error) fleet.Outcome {
	if undeclared(statusOf(err)) && r.live.known() {
		return fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonSchemaTooOld, Answered: true,
			Message: r.message("the schema that is served differs from the one that applies; it is read again: %s", shorten(err.Error()))}
	}
	m := classify(err, r.doc.Name)
	text := shorten(err.Error())
	if m.advice != "" {
		text += "; " + m.advice
	}
	return fleet.Outcome{Class: m.class, Reason: m.reason, Answered: answeredBy(err), Message: r.message("%s", text)}
}

// unread is the outcome of a look that did not answer: nothing was changed.
func (r run) unread(err error) *fleet.Outcome {
	f := r.readFailure(r.doc.Namespace, err)
	return &fleet.Outcome{Class: fleet.ClassTransient, Reason: f.Reason, Answered: true, Message: r.message("look at it first: %s", f.Message)}
}

func (r run) message(format string, args ...any) string {
	return fmt.Sprintf("%s %s: ", verb(r.task.Kind), r.where(r.doc.Namespace, r.doc.Name)) + fmt.Sprintf(format, args...)
}

func verb(k fleet.TaskKind) string {
	if k == fleet.TaskDelete {
		return "delete"
	}
	return "apply"
}

func (r run) refuse(reason fleet.Reason, format string, args ...any) fleet.Outcome {
	return fleet.Outcome{Class: fleet.ClassRefused, Reason: reason, Answered: true, Message: r.message(format, args...)}
}

// replan is the outcome of a task whose plan no longer fits what is there: what is
// planned next starts from a new observation.
func (r run) replan(format string, args ...any) fleet.Outcome {
	return fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonDrifted, Answered: true, Message: r.message(format, args...)}
}
