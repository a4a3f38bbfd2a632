package kubernetes

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// path is where a field is.
type path struct {
	text  string
	elems fieldpath.Path
}

// field returns the path of a key of the object at p. A key that is no plain word, such as a
// label's, is written in brackets.
func (p path) field(key string) path {
	text := key
	switch {
	case p.text == "metadata.labels", p.text == "metadata.annotations", strings.ContainsAny(key, "./[] "):
		text = p.text + "[" + key + "]"
	case p.text != "":
		text = p.text + "." + key
	}
	return path{text, append(slices.Clip(p.elems), fieldpath.FieldNameElement(key))}
}

// pathOf writes a path of managedFields, whose lists may name their elements by keys.
func pathOf(elems fieldpath.Path) path {
	var p path
	for _, e := range elems {
		if e.FieldName != nil {
			p = p.field(*e.FieldName)
		} else {
			p = path{p.text + e.String(), append(slices.Clip(p.elems), e)}
		}
	}
	return p
}

// index returns the path of an element of the list at p.
func (p path) index(i int) path {
	return path{p.text + "[" + strconv.Itoa(i) + "]", append(slices.Clip(p.elems), fieldpath.IndexElement(i))}
}

// holding are the fields that a manager holds.
type holding struct {
	manager string
	applied bool // by an apply; else by an edit of some kind
	fields  *fieldpath.Set
}

// owners tells who set the fields of an object.
type owners []holding

// of returns who besides us set the field at p. One that applied it goes before those
// that edited it: an edit is not management.
func (o owners) of(p path) (manager string, applied bool) {
	for _, h := range o {
		if h.manager == fleet.KubeFieldManager || applied || !holds(h.fields, p.elems) {
			continue
		}
		if h.applied || manager == "" {
			manager, applied = h.manager, h.applied
		}
	}
	return manager, applied
}

// edits reports whether the manager has fields that it did not apply.
func (o owners) edits(manager string) bool {
	return slices.ContainsFunc(o, func(h holding) bool { return h.manager == manager && !h.applied })
}

// claim is a field that another manager applied.
type claim struct {
	path
	manager string
}

// appliers returns which of the fields of a conflict somebody besides us applied.
func (o owners) appliers(conflict *metav1.Status) (found []claim) {
	fields := map[string]bool{} // as fieldpath writes them
	for _, c := range conflict.Details.Causes {
		fields[c.Field] = fields[c.Field] || c.Type == metav1.CauseTypeFieldManagerConflict
	}
	for _, h := range o {
		if !h.applied || h.manager == fleet.KubeFieldManager {
			continue
		}
		h.fields.Iterate(func(p fieldpath.Path) {
			if fields[p.String()] {
				found = append(found, claim{pathOf(p.Copy()), h.manager})
			}
		})
	}
	return found
}

func (o owners) equal(other owners) bool {
	return slices.EqualFunc(o, other, func(a, b holding) bool {
		return a.manager == b.manager && a.applied == b.applied && (a.fields == b.fields || a.fields.Equals(b.fields))
	})
}

// whole reports whether the field at p is in no list, or in one that somebody besides us
// applied as a whole.
func (o owners) whole(p fieldpath.Path) bool {
	i := slices.IndexFunc(p, func(e fieldpath.PathElement) bool { return e.Index != nil })
	return i < 0 || slices.ContainsFunc(o, func(h holding) bool {
		return h.applied && h.manager != fleet.KubeFieldManager && h.fields.Has(p[:i])
	})
}

// without removes the field at p from v, and what has nothing left then. A list is one
// field, unless its elements are named by keys or values.
func without(v any, p fieldpath.Path) any {
	if len(p) == 0 {
		return nil
	}
	switch x := v.(type) {
	case map[string]any:
		if name := p[0].FieldName; name != nil && x[*name] != nil {
			if x[*name] = without(x[*name], p[1:]); empty(x[*name]) {
				delete(x, *name)
			}
		}
		return x
	case []any:
		if p[0].Index != nil {
			return nil
		}
		for i := range x {
			if isElement(x[i], p[0]) {
				if x[i] = without(x[i], p[1:]); empty(x[i]) {
					return slices.Delete(x, i, i+1)
				}
				return x
			}
		}
		return x
	default:
		return v
	}
}

// isElement reports whether a list's element is the one that e names.
func isElement(v any, e fieldpath.PathElement) bool {
	switch {
	case e.Value != nil:
		return equal(v, (*e.Value).Unstructured())
	case e.Key != nil:
		x, ok := v.(map[string]any)
		return ok && !slices.ContainsFunc(*e.Key, func(f value.Field) bool { return !value.Equals(value.NewValueInterface(x[f.Name]), f.Value) })
	default:
		return false
	}
}

// holds reports whether set has the field at p, something within it, or what it is a part
// of and is held as a whole.
func holds(set *fieldpath.Set, p fieldpath.Path) bool {
	for _, e := range p {
		if e.Index != nil {
			// Lists are held as a whole, or by elements that are named by their keys.
			return true
		}
		member, below := set.Members.Has(e), set.WithPrefix(e)
		if below.Empty() {
			return member
		}
		set = below
	}
	return true
}

// maxOwnerSets bounds the different sets of fields that are kept for all objects of a
// cluster together: one manager holds the same fields in all of them.
const maxOwnerSets = 1024

// ownerSets reads managedFields.
type ownerSets struct {
	mu    sync.Mutex
	known map[string]*fieldpath.Set
}

// read returns who holds what below metadata and spec. Who writes only status is left
// out; who scales holds a field of the spec.
func (s *ownerSets) read(u *unstructured.Unstructured) owners {
	metadata, _ := u.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	var out owners
	for _, e := range entries {
		entry, _ := e.(map[string]any)
		fields, _ := entry["fieldsV1"].(map[string]any)
		if sub, _ := entry["subresource"].(string); sub == "status" || len(fields) == 0 {
			continue
		}
		set := s.set(fields)
		if set == nil || set.Empty() {
			continue
		}
		manager, _ := entry["manager"].(string)
		operation, _ := entry["operation"].(string)
		out = append(out, holding{manager: manager, applied: operation == string(metav1.ManagedFieldsOperationApply), fields: set})
	}
	return out
}

// set parses a set of fields, and gives the same one for the same text.
func (s *ownerSets) set(fields map[string]any) *fieldpath.Set {
	metadata, kept := map[string]any{}, map[string]any{}
	if m, ok := fields["f:metadata"].(map[string]any); ok {
		if labels, ok := m["f:labels"]; ok {
			metadata["f:labels"] = labels
		}
		if annotations, ok := m["f:annotations"].(map[string]any); ok {
			ours := maps.Clone(annotations)
			maps.DeleteFunc(ours, func(key string, _ any) bool { return !annotationOfOurs(strings.TrimPrefix(key, "f:")) })
			if len(ours) > 0 { // an empty set stands for the whole
				metadata["f:annotations"] = ours
			}
		}
	}
	if len(metadata) > 0 {
		kept["f:metadata"] = metadata
	}
	if spec, ok := fields["f:spec"]; ok {
		kept["f:spec"] = spec
	}
	text, err := json.Marshal(kept)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if set, ok := s.known[string(text)]; ok {
		return set
	}
	set := &fieldpath.Set{}
	if err := set.FromJSON(bytes.NewReader(text)); err != nil {
		return nil // a form that this version does not know: nobody is known to hold anything
	}
	if s.known == nil || len(s.known) >= maxOwnerSets {
		s.known = map[string]*fieldpath.Set{}
	}
	s.known[string(text)] = set
	return set
}
