package fleet

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const (
	maxReplicas  = 100
	maxKubeImage = 256
	maxExtraSpec = 32 << 10
)

// kubeImageFormat is the pattern of spec.image in the custom resource definition: narrower
// than what an engine pulls. A test compares the two.
var kubeImageFormat = regexp.MustCompile(`^[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*(:[A-Za-z0-9_][A-Za-z0-9._-]{0,127})?(@sha256:[a-f0-9]{64})?$`)

var quantityFormat = regexp.MustCompile(`^[0-9]{1,15}(\.[0-9]{1,9})?([EPTGMk]|[EPTGMK]i)?$`)

func (v *Invalid) kubernetes(e Environment, k Kubernetes) {
	const at = "/kubernetes"
	v.required(at+"/cluster", k.Cluster, "a cluster that the daemon was given")
	v.optional(at+"/namespace", k.Namespace, checkLabel)
	v.kubernetesImage(at+"/image", k.Image)
	v.number(at+"/replicas", k.Replicas, 0, maxReplicas)
	if k.Storage != nil {
		v.optional(at+"/storage/class", k.Storage.Class, CheckHost)
		v.quantity(at+"/storage/size", k.Storage.Size)
	}
	v.optional(at+"/ingress_class", k.IngressClass, CheckHost)
	v.nodeSelector(at+"/node_selector", k.NodeSelector)
	v.count(at+"/tolerations", len(k.Tolerations))
	for i, t := range k.Tolerations {
		v.toleration(join(at, "tolerations", strconv.Itoa(i)), t)
	}
	v.kubernetesEnv(at+"/env", k.Env)
	v.sets(at+"/env_from", k.EnvFrom)
	for i, set := range k.EnvFrom {
		v.variableSet(join(at, "env_from", strconv.Itoa(i)), e, set)
	}
	if k.ExtraSpec != "" {
		v.extraSpec(at+"/extra_spec", k.ExtraSpec)
	}
}

// kubernetesImage checks an image, which holds {image_tag} or no tag at all; the
// server's tag is appended to the latter.
func (v *Invalid) kubernetesImage(pointer, image string) {
	if image == "" {
		v.Add(pointer, "is required; write one such as registry.example.dev/kura/cache:{image_tag}")
		return
	}
	const sampleTag = "1"
	full, err := expandImage(image, sampleTag)
	if err != nil {
		v.note(pointer, err)
		return
	}
	v.image(pointer, image, full, sampleTag)
	ref, err := ParseImage(full)
	if err != nil {
		return // said already
	}
	if (ref.Tag != "" || ref.Digest != "") && !holdsToken(image, tokenImageTag) {
		v.Add(pointer, "%s names a version, so no server could change its own; write {image_tag} in its place", quote(image))
		return
	}
	if full, err = kubeImage(image, sampleTag); err != nil {
		v.note(pointer, err)
		return
	}
	v.note(pointer, takenAsImage(image, full, ref))
}

// takenAsImage says why the custom resource definition refuses an image, which is one.
func takenAsImage(image, full string, ref ImageRef) error {
	switch {
	case kubeImageFormat.MatchString(full):
		return nil
	case strings.Contains(ref.Registry, ":"):
		return fmt.Errorf("%s names a port of a registry, and a KuraInstance takes none; write a registry that answers at its scheme's own port, such as registry.example.dev/kura/cache:{image_tag}", quote(image))
	case strings.ToLower(ref.Registry) != ref.Registry:
		return fmt.Errorf("%s has upper case in its registry, and a KuraInstance takes none; write %s", quote(image), quote(strings.Replace(image, ref.Registry, strings.ToLower(ref.Registry), 1)))
	default:
		return fmt.Errorf("%s is not taken by a KuraInstance: its first part may have only single . _ and - between lower-case letters and digits; use a registry and a repository of such a name", quote(image))
	}
}

// nodeSelector checks labels of nodes, which may have any prefix.
func (v *Invalid) nodeSelector(pointer string, labels map[string]string) {
	v.count(pointer, len(labels))
	for _, key := range sortedKeys(labels) {
		v.qualifiedName(join(pointer, key), "label key", key)
		v.labelValue(join(pointer, key), labels[key])
	}
}

// qualifiedFormat is the name of a label or taint behind its prefix, and its value.
var qualifiedFormat = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?$`)

// qualifiedName checks the key of a label or taint as Kubernetes does.
func (v *Invalid) qualifiedName(pointer, what, key string) {
	prefix, name, prefixed := strings.Cut(key, "/")
	if !prefixed {
		name = key
	}
	if !qualifiedFormat.MatchString(name) || (prefixed && CheckHost(prefix) != nil) {
		v.Add(pointer, "%s is no %s; use at most 63 letters, digits and . _ -, starting and ending with a letter or digit, with an optional prefix such as example.com/", quote(key), what)
	}
}

// labelValue checks a value of a label or taint as Kubernetes does.
func (v *Invalid) labelValue(pointer, value string) {
	v.matches(pointer, value, qualifiedFormat, "value of a label; use at most 63 letters, digits and . _ -, starting and ending with a letter or digit")
}

func (v *Invalid) kubernetesEnv(pointer string, env map[string]string) {
	v.env(pointer, env, nil)
	if _, taken := env[KubeRestartVariable]; taken {
		v.Add(join(pointer, KubeRestartVariable), "is kurad's own, which a redeploy changes; use another name")
	}
}

// variableSet checks that a set is known, where it can be.
func (v *Invalid) variableSet(pointer string, e Environment, set string) {
	if e.VariableSets == nil {
		return
	}
	names, known := e.VariableSets[set]
	switch {
	case !known:
		v.note(pointer, e.unknownSet(set))
	case slices.Contains(names, KubeRestartVariable):
		v.Add(pointer, "the variable set %s holds %s, which is kurad's own, for a redeploy changes it; take it out of the set", quote(set), KubeRestartVariable)
	}
}

func (v *Invalid) quantity(pointer, q string) {
	if q != "" && (!quantityFormat.MatchString(q) || !strings.ContainsAny(q, "123456789")) {
		v.Add(pointer, "%s is no size; write a number above 0 and a unit, such as 50Gi", quote(q))
	}
}

func (v *Invalid) toleration(at string, t Toleration) {
	oneOf(v, at+"/operator", t.Operator, "Exists", "Equal")
	oneOf(v, at+"/effect", t.Effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
	switch {
	case t.Key != "":
		v.qualifiedName(at+"/key", "key of a taint", t.Key)
	case t.Operator != "Exists":
		v.Add(at+"/key", `is required unless operator = "Exists"; write the taint's key`)
	}
	if t.Operator == "Exists" && t.Value != "" {
		v.Add(at+"/value", `has no meaning with operator = "Exists"; leave it out`)
	}
	v.labelValue(at+"/value", t.Value)
}
