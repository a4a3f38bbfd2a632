package kubernetes

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"reflect"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// object is what is kept of a KuraInstance. It is never changed.
type object struct {
	metav1.TypeMeta
	metav1.ObjectMeta // name, namespace, UID, version, labels, annotations and deletion
	spec              map[string]any
	status            status
	written           string // tells one write of the status from another (K8)
	owners            owners
}

// status is what we read of a KuraInstance's.
type status struct {
	observedImage, phase, publicURL, message string
	readyReplicas                            int
}

// DeepCopyObject implements runtime.Object.
func (o *object) DeepCopyObject() runtime.Object { return o }

// object keeps of u what Observe shows or compares. u is not to be changed after that.
func (s *ownerSets) object(u *unstructured.Unstructured) *object {
	o := &object{ObjectMeta: metav1.ObjectMeta{
		Name: u.GetName(), Namespace: u.GetNamespace(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion(), Generation: u.GetGeneration(),
		Labels: u.GetLabels(), Annotations: u.GetAnnotations(), DeletionTimestamp: u.GetDeletionTimestamp(),
	}}
	maps.DeleteFunc(o.Annotations, func(key, _ string) bool { return !annotationOfOurs(key) })
	// What is of another form than the definition says is not there.
	o.spec, _ = u.Object["spec"].(map[string]any)
	st, _ := u.Object["status"].(map[string]any)
	text := func(field string) string {
		v, _ := st[field].(string)
		return cut(v, maxText)
	}
	o.status = status{observedImage: text("observedImage"), phase: text("phase"), publicURL: text("publicURL"), message: text("message")}
	if n, ok := number(st["readyReplicas"]); ok {
		o.status.readyReplicas = int(n)
	}
	if b, err := json.Marshal(st); err == nil && len(st) > 0 {
		h := fnv.New64a()
		_, _ = h.Write(b) // never fails
		o.written = strconv.FormatUint(h.Sum64(), 36)
	}
	o.owners = s.read(u)
	return o
}

// image is what the spec asks for.
func (o *object) image() string {
	s, _ := o.spec["image"].(string)
	return s
}

// aliases are the old hosts that the spec has routed.
func (o *object) aliases() (hosts []string) {
	list, _ := o.spec["clientHostAliases"].([]any)
	for _, h := range list {
		if host, ok := h.(string); ok {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// sameView reports whether nothing that Observe may show differs between two versions of
// an object, but for the generation and for who wrote when: a controller's sign of life is no
// news (L47).
func sameView(a, b *object) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.UID == b.UID && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		a.status == b.status && maps.Equal(a.Labels, b.Labels) &&
		maps.Equal(a.Annotations, b.Annotations) && reflect.DeepEqual(a.spec, b.spec) && a.owners.equal(b.owners)
}

// annotationOfOurs reports whether a document may have the annotation. Of the others
// nothing is kept: their owners may write them as often as they like.
func annotationOfOurs(key string) bool {
	return key == fleet.KubeAnnotationRevision || strings.HasPrefix(key, "dev.kura/")
}

// owner tells whose an object is, by its labels.
type owner struct{ environment, account, region string }

func ownerOf(labels map[string]string) owner {
	return owner{labels[fleet.LabelEnvironment], labels[fleet.KubeLabelAccount], labels[fleet.KubeLabelRegion]}
}

// String names the owner for a person. What carries no environment is of no kurad,
// whatever else its labels say, and can be adopted.
func (o owner) String() string {
	switch {
	case o.environment == "":
		return fleet.NotByKurad
	case o.account == "" || o.region == "":
		return "of no server of environment " + o.environment
	default:
		return fmt.Sprintf("server %s/%s of environment %s", o.account, o.region, o.environment)
	}
}

// view shows the object without comparing it. Whose it is not, Foreign says.
func (o *object) view(who owner, foreign bool) fleet.KubeInstance {
	i := fleet.KubeInstance{
		Namespace: o.Namespace, Name: o.Name, UID: string(o.UID), Account: who.account, Region: who.region,
		Deleting: o.DeletionTimestamp != nil, Generation: o.Generation, Written: o.written, SpecImage: cut(o.image(), maxText), ObservedImage: o.status.observedImage,
		Phase: o.status.phase, PublicURL: o.status.publicURL, ReadyReplicas: o.status.readyReplicas,
		Message: o.status.message, Revision: cut(o.Annotations[fleet.KubeAnnotationRevision], maxText),
		RestartMark: cut(o.Annotations[fleet.LabelRestartMark], maxText), Aliases: o.aliases(),
	}
	if foreign {
		i.Foreign = who.String()
	}
	return i
}

// belongs reports whether the object is the server's: by its labels (K4), or, without
// labels of any kurad, by the UID that was recorded when it was adopted (K6).
func (o *object) belongs(env string, key fleet.ServerKey, adopted string) (ours, isAdopted bool) {
	who := ownerOf(o.Labels)
	if who == (owner{env, key.Account, key.Region}) {
		return true, false
	}
	isAdopted = adopted != "" && string(o.UID) == adopted && who.environment == ""
	return isAdopted, isAdopted
}

// where names an object for a person.
func (c *Cluster) where(namespace, name string) string {
	return fmt.Sprintf("KuraInstance %s/%s on cluster %q", namespace, name, c.cfg.Name)
}
