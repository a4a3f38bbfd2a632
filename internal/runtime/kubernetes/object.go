package kubernetes

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"reflect"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// object is what is kept of a KuraInstance. It is never changed.
type object struct {
	metav1.TypeMeta
	metav1.ObjectMeta // name, UID, version, labels and annotations
	spec              map[string]any
	owners            owners
	shown             fleet.KubeInstance // compared with nothing, and nobody's in particular
}

// DeepCopyObject implements runtime.Object.
func (o *object) DeepCopyObject() apiruntime.Object { return o }

// object keeps of u what Observe shows or compares. u is not to be changed after that.
func (s *ownerSets) object(u *unstructured.Unstructured) *object {
	o := &object{owners: s.read(u), ObjectMeta: metav1.ObjectMeta{
		Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), Labels: u.GetLabels(), Annotations: u.GetAnnotations(),
	}}
	maps.DeleteFunc(o.Annotations, func(key, _ string) bool { return !annotationOfOurs(key) })
	// What is of another form than the definition says is not there.
	o.spec, _ = u.Object["spec"].(map[string]any)
	status, _ := u.Object["status"].(map[string]any)
	text := func(of map[string]any, field string) string {
		v, _ := of[field].(string)
		return cut(v, maxText)
	}
	replicas, _, _ := unstructured.NestedInt64(status, "readyReplicas")
	aliases, _, _ := unstructured.NestedStringSlice(o.spec, "clientHostAliases")
	o.shown = fleet.KubeInstance{
		Namespace: u.GetNamespace(), Name: o.Name, UID: string(o.UID), Account: o.owner().Account, Region: o.owner().Region,
		Deleting: u.GetDeletionTimestamp() != nil, Generation: u.GetGeneration(), SpecImage: text(o.spec, "image"), ObservedImage: text(status, "observedImage"),
		Phase: text(status, "phase"), PublicURL: text(status, "publicURL"), ReadyReplicas: int(replicas), Message: text(status, "message"),
		Revision: cut(o.Annotations[fleet.KubeAnnotationRevision], maxText), RestartMark: cut(o.Annotations[fleet.LabelRestartMark], maxText), Aliases: aliases,
	}
	if b, err := json.Marshal(status); err == nil && len(status) > 0 {
		h := fnv.New64a()
		_, _ = h.Write(b) // never fails
		o.shown.Written = strconv.FormatUint(h.Sum64(), 36)
	}
	return o
}

// sameView reports whether nothing that Observe may show differs between two versions of
// an object, but for the generation and for who wrote when: a controller's sign of life is no
// news (L47).
func sameView(a, b *object) bool {
	if a == nil || b == nil {
		return a == b
	}
	was, is := a.shown, b.shown
	was.Generation, was.Written = is.Generation, is.Written
	return reflect.DeepEqual(was, is) && maps.Equal(a.Labels, b.Labels) &&
		maps.Equal(a.Annotations, b.Annotations) && reflect.DeepEqual(a.spec, b.spec) && a.owners.equal(b.owners)
}

// annotationOfOurs reports whether a document may have the annotation. Of the others
// nothing is kept: their owners may write them as often as they like.
func annotationOfOurs(key string) bool {
	return key == fleet.KubeAnnotationRevision || key == fleet.LabelRestartMark
}

// owner tells whose the object is.
func (o *object) owner() runtime.Owner {
	return runtime.Owner{Environment: o.Labels[fleet.LabelEnvironment], Account: o.Labels[fleet.KubeLabelAccount], Region: o.Labels[fleet.KubeLabelRegion]}
}

// ownerName names the owner for a person. What carries no environment is of no kurad,
// whatever else its labels say, and can be adopted.
func (o *object) ownerName() string {
	who := o.owner()
	if who.Environment == "" {
		return fleet.NotByKurad
	}
	return who.String()
}

// foreign shows the object as one that is somebody else's.
func (o *object) foreign() fleet.KubeInstance {
	i := o.shown
	i.Foreign = o.ownerName()
	return i
}

// belongs reports whether the object is the server's: by its labels (K4), or, without
// labels of any kurad, by the UID that was recorded when it was adopted (K6).
func (o *object) belongs(env string, key fleet.ServerKey, adopted string) (ours, isAdopted bool) {
	who := o.owner()
	if who == (runtime.Owner{Environment: env, Account: key.Account, Region: key.Region}) {
		return true, false
	}
	isAdopted = adopted != "" && string(o.UID) == adopted && who.Environment == ""
	return isAdopted, isAdopted
}
