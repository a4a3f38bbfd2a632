package fleet

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// KubeRestartVariable is the variable whose value a redeploy changes (P12): the pods'
// template changes with it, and so the controller rolls them.
const KubeRestartVariable = "KURA_RESTART_MARK"

// kubernetes renders the KuraInstance of the server.
func (d documents) kubernetes() (*KubeDocument, error) {
	k := d.region.Kubernetes
	doc := &KubeDocument{
		Cluster:   k.Cluster,
		Namespace: k.Namespace,
		Name:      d.desired.Instance,
		Labels: map[string]string{
			KubeLabelName:     kubeName,
			KubeLabelInstance: d.desired.Instance,
			KubeLabelAccount:  d.account.ID,
			KubeLabelRegion:   d.region.Name,
			LabelEnvironment:  d.env.Name,
		},
		Force: k.ForceConflicts,
	}
	if d.restartMark != "" {
		doc.Annotations = map[string]string{LabelRestartMark: d.restartMark}
	}
	var err error
	if doc.Spec, err = d.kubeSpec(); err != nil {
		return nil, err
	}
	doc.Revision, err = hash(doc.manifest(doc.Annotations))
	return doc, err
}

// kubeSpec renders every field of ours (section 6 of the rules); what is empty is left out.
// kubeFields lists the same names.
func (d documents) kubeSpec() (map[string]any, error) {
	k, hosts := d.overridden(), d.desired.Hosts
	image, err := kubeImage(k.Image, d.desired.ImageTag)
	if err != nil {
		return nil, fmt.Errorf("image tag %s: %w", quote(d.desired.ImageTag), err)
	}
	variables, err := d.variables(k)
	if err != nil {
		return nil, err
	}
	// Fields of ours come last: a name that extra_spec may not hold today was accepted,
	// perhaps, by a daemon that did not know the field yet (P13).
	s := map[string]any{}
	if k.ExtraSpec != "" {
		if s, err = parseExtraSpec(k.ExtraSpec); err != nil {
			return nil, fmt.Errorf("extra_spec: it %w", err)
		}
	}
	var aliases []any
	for _, host := range d.status.RoutedHosts(hosts) {
		aliases = append(aliases, host)
	}
	maps.Copy(s, filled(map[string]any{
		"accountHandle":     lowerHandle(d.account.PublicHandle()),
		"tenantID":          d.account.ID,
		"region":            d.region.Name,
		"image":             image,
		"replicas":          int64(k.Replicas),
		"publicHost":        hosts.Public,
		"grpcPublicHost":    hosts.GRPC,
		"globalPublicHost":  hosts.Global,
		"ingressClassName":  k.IngressClass,
		"storageClassName":  k.Storage.Class,
		"storageSize":       k.Storage.Size,
		"nodeSelector":      textObject(k.NodeSelector),
		"tolerations":       tolerations(k.Tolerations),
		"extraEnv":          variables,
		"clientHostAliases": aliases,
	}))
	if l := d.region.Location; l != nil {
		s["cloudflarePoolLatitude"], s["cloudflarePoolLongitude"] = jsonNumber(l.Latitude), jsonNumber(l.Longitude)
	}
	return s, nil
}

// filled returns fields without the empty ones.
func filled(fields map[string]any) map[string]any {
	maps.DeleteFunc(fields, func(_ string, value any) bool {
		switch v := value.(type) {
		case map[string]any:
			return len(v) == 0
		case []any:
			return len(v) == 0
		default:
			return v == "" || v == int64(0)
		}
	})
	return fields
}

// overridden returns the region's block with the server's overrides; its Storage is set.
func (d documents) overridden() Kubernetes {
	k := *d.region.Kubernetes
	storage := *cmp.Or(k.Storage, new(Storage))
	if over := d.intent.Overrides; over != nil && over.Kubernetes != nil {
		o := *over.Kubernetes
		k.Replicas = cmp.Or(o.Replicas, k.Replicas)
		storage.Size = cmp.Or(o.StorageSize, storage.Size)
		k.Env = merge(k.Env, o.Env)
	}
	k.Storage = &storage
	return k
}

// kubeImage returns a region's image at a tag: in place of {image_tag}, or appended.
func kubeImage(image, tag string) (string, error) {
	full, err := expandImage(image, tag)
	if err != nil {
		return "", err
	}
	if !holdsToken(image, tokenImageTag) {
		full += ":" + tag
	}
	if len(full) > maxKubeImage {
		return "", fmt.Errorf("makes the image %d characters long; a KuraInstance takes at most %d, so shorten the image or the tag", len(full), maxKubeImage)
	}
	return full, nil
}

func expandImage(image, tag string) (string, error) {
	return expand(image, func(token string) (string, error) {
		if token != tokenImageTag {
			return "", unknownToken(token, []string{tokenImageTag}, "")
		}
		return tag, nil
	})
}

// variables returns the extraEnv of a server, sorted by name. A variable of a set is a
// reference to the Secret of the set's name in the namespace, for whoever can list the
// resource reads its spec. A later set wins over an earlier one, and env over all sets.
func (d documents) variables(k Kubernetes) ([]any, error) {
	items := map[string]any{}
	for _, set := range k.EnvFrom {
		names, known := d.env.VariableSets[set]
		if !known {
			return nil, fmt.Errorf("env_from: %w", d.env.unknownSet(set))
		}
		for _, name := range names {
			items[name] = map[string]any{"name": name, "valueFrom": map[string]any{
				"secretKeyRef": map[string]any{"name": set, "key": name},
			}}
		}
	}
	set := func(name, value string) { items[name] = filled(map[string]any{"name": name, "value": value}) }
	for name, value := range k.Env {
		set(name, value)
	}
	if d.restartMark != "" {
		set(KubeRestartVariable, d.restartMark)
	}
	var out []any
	for _, name := range sortedKeys(items) {
		out = append(out, items[name])
	}
	return out, nil
}

// tolerations are sorted and each there once: neither order nor number means anything.
func tolerations(in []Toleration) []any {
	sorted := slices.SortedFunc(slices.Values(in), func(a, b Toleration) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Operator, b.Operator), cmp.Compare(a.Value, b.Value), cmp.Compare(a.Effect, b.Effect))
	})
	var out []any
	for _, t := range slices.Compact(sorted) {
		out = append(out, filled(map[string]any{"key": t.Key, "operator": t.Operator, "value": t.Value, "effect": t.Effect}))
	}
	return out
}
