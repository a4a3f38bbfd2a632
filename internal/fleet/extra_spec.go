package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"strings"
)

// kubeFields says of every field of a KuraInstance's spec that kurad renders where its value
// comes from: what a user writes instead of extra_spec.
func kubeFields() map[string]string {
	return map[string]string{
		"accountHandle":           "it is the account's handle",
		"tenantID":                "it is the account's id",
		"region":                  "it is the region's name",
		"image":                   "set image of the region and image_tag of its servers",
		"replicas":                "set replicas",
		"publicHost":              "it is rendered from the host template hosts.public of the region",
		"grpcPublicHost":          "set hosts.grpc of the region",
		"globalPublicHost":        "set hosts.global of the region",
		"ingressClassName":        "set ingress_class",
		"storageClassName":        "set storage.class",
		"storageSize":             "set storage.size",
		"nodeSelector":            "set node_selector",
		"tolerations":             "set tolerations",
		"extraEnv":                "set env, or env_from for secrets",
		"cloudflarePoolLatitude":  "set location.latitude of the region",
		"cloudflarePoolLongitude": "set location.longitude of the region",
		"clientHostAliases":       "kurad keeps old hosts there while they stay routed",
	}
}

func (v *Invalid) extraSpec(pointer, s string) {
	if len(s) > maxExtraSpec {
		v.Add(pointer, "has %d bytes; at most %d are allowed", len(s), maxExtraSpec)
		return
	}
	spec, err := parseExtraSpec(s)
	if err != nil {
		v.note(pointer, err)
		return
	}
	ours := kubeFields()
	for _, field := range sortedKeys(spec) {
		if instead, taken := ours[field]; taken {
			v.Add(pointer, "holds %s, which kurad writes itself; leave it out: %s", quote(field), instead)
		}
	}
}

// parseExtraSpec returns the fields of an extra_spec as canonical JSON data. What the
// user wrote stays as it is, false and empty values too: they may differ from a default.
// Only null says nothing to a server, which would drop it for ever (K3).
func parseExtraSpec(s string) (map[string]any, error) {
	fault := errors.New("is no JSON object of fields of the KuraInstance's spec; write one with jsonencode({…})")
	decoder := json.NewDecoder(strings.NewReader(s))
	decoder.UseNumber()
	var spec map[string]any
	if err := decoder.Decode(&spec); err != nil || spec == nil {
		return nil, fault
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fault
	}
	for _, field := range sortedKeys(spec) {
		var err error
		if spec[field], err = canonicalJSON(field, spec[field]); err != nil {
			return nil, err
		}
	}
	return spec, nil
}

// canonicalJSON makes numbers of json.Numbers and refuses null; path names the value.
func canonicalJSON(path string, value any) (any, error) {
	var err error
	switch x := value.(type) {
	case nil:
		return nil, fmt.Errorf("holds null as %s, which a KuraInstance cannot hold; leave it out", quote(path))
	case map[string]any:
		for _, key := range sortedKeys(x) {
			if x[key], err = canonicalJSON(path+"."+key, x[key]); err != nil {
				return nil, err
			}
		}
	case []any:
		for i := range x {
			if x[i], err = canonicalJSON(fmt.Sprintf("%s[%d]", path, i), x[i]); err != nil {
				return nil, err
			}
		}
	case json.Number:
		if n, err := x.Int64(); err == nil {
			return n, nil
		}
		n, err := x.Float64()
		if err != nil {
			return nil, fmt.Errorf("holds %s as %s, which is too large a number", quote(x.String()), quote(path))
		}
		return jsonNumber(n), nil
	}
	return value, nil
}

// jsonNumber returns a number as it is read again from its JSON: whole ones as int64, where
// they fit, and all others as float64.
func jsonNumber(f float64) any {
	if f == math.Trunc(f) && f >= -1<<63 && f < 1<<63 {
		return int64(f)
	}
	return f
}

// cloneJSON returns a deep copy of JSON data.
func cloneJSON(value any) any {
	switch x := value.(type) {
	case map[string]any:
		out := maps.Clone(x)
		for key := range out {
			out[key] = cloneJSON(out[key])
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = cloneJSON(x[i])
		}
		return out
	}
	return value
}

// textObject returns a map of texts as JSON data.
func textObject(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = value
	}
	return out
}
