package fleet

import (
	"encoding/json"
	"regexp"
	"strconv"
)

const (
	maxReplicas  = 100
	maxExtraSpec = 32 << 10
)

var quantityFormat = regexp.MustCompile(`^[0-9]{1,15}(\.[0-9]{1,9})?([EPTGMk]|[EPTGMK]i)?$`)

func (v *Invalid) kubernetes(k Kubernetes) {
	const at = "/kubernetes"
	if k.Cluster == "" {
		v.Add(at+"/cluster", "is required; name a cluster that the daemon was given")
	} else {
		v.name(at+"/cluster", k.Cluster)
	}
	if k.Namespace != "" {
		v.name(at+"/namespace", k.Namespace)
	}
	v.kubernetesImage(at+"/image", k.Image)
	v.number(at+"/replicas", k.Replicas, 0, maxReplicas)
	if k.Storage != nil {
		if k.Storage.Class != "" {
			v.note(at+"/storage/class", checkHost(k.Storage.Class))
		}
		v.quantity(at+"/storage/size", k.Storage.Size)
	}
	if k.IngressClass != "" {
		v.note(at+"/ingress_class", checkHost(k.IngressClass))
	}
	v.labels(at+"/node_selector", k.NodeSelector)
	v.count(at+"/tolerations", len(k.Tolerations))
	for i, t := range k.Tolerations {
		v.toleration(join(at, "tolerations", strconv.Itoa(i)), t)
	}
	v.env(at+"/env", k.Env, nil)
	v.sets(at+"/env_from", k.EnvFrom)
	if k.ExtraSpec != "" {
		var spec map[string]any
		if len(k.ExtraSpec) > maxExtraSpec {
			v.Add(at+"/extra_spec", "has %d bytes; at most %d are allowed", len(k.ExtraSpec), maxExtraSpec)
		} else if err := json.Unmarshal([]byte(k.ExtraSpec), &spec); err != nil || spec == nil {
			v.Add(at+"/extra_spec", "is no JSON object of fields of the KuraInstance's spec; write one with jsonencode({…})")
		}
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
	full, err := expand(image, func(token string) (string, error) {
		if token != tokenImageTag {
			return "", unknownToken(token, []string{tokenImageTag}, "")
		}
		return sampleTag, nil
	})
	if err != nil {
		v.note(pointer, err)
		return
	}
	v.image(pointer, image, full, sampleTag)
	if ref, err := ParseImage(full); err == nil && (ref.Tag != "" || ref.Digest != "") && !holdsToken(image, tokenImageTag) {
		v.Add(pointer, "%s names a version, so no server could change its own; write {image_tag} in its place", quote(image))
	}
}

func (v *Invalid) quantity(pointer, q string) {
	if q != "" && !quantityFormat.MatchString(q) {
		v.Add(pointer, "%s is no size; write a number and a unit, such as 50Gi", quote(q))
	}
}

func (v *Invalid) toleration(at string, t Toleration) {
	oneOf(v, at+"/operator", t.Operator, "Exists", "Equal")
	oneOf(v, at+"/effect", t.Effect, "NoSchedule", "PreferNoSchedule", "NoExecute")
	switch {
	case t.Key == "" && t.Operator != "Exists":
		v.Add(at+"/key", `is required unless operator = "Exists"; write the taint's key`)
	case t.Key != "" && !labelKeyFormat.MatchString(t.Key):
		v.Add(at+"/key", "%s is no key of a taint; correct it", quote(t.Key))
	}
	if t.Operator == "Exists" && t.Value != "" {
		v.Add(at+"/value", `has no meaning with operator = "Exists"; leave it out`)
	}
	v.text(at+"/value", t.Value, maxText)
}
