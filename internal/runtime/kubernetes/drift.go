package kubernetes

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/value"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// comparison is how a live object relates to a document (P14).
type comparison struct {
	differs, held, altered []fleet.FieldDifference
	dropped                []string
	yields                 []claim // of held: what other managers applied
}

func (c comparison) unlike() int { return len(c.differs) + len(c.held) + len(c.altered) }

// echoed returns what the answer to the document's apply has otherwise than it was applied, or
// has not: to apply it again would change nothing (K10).
func echoed(echo *object, doc fleet.KubeDocument, s *schema) []fleet.Alteration {
	c := comparer{owners: echo.owners, force: doc.Force}
	c.document(echo, doc, s)
	return c.found
}

// compare compares what is live with what is desired. Only what the document says
// counts: what else the object has is not ours, and what a server filled in within a
// field of ours is no difference. Fields that the schema lacks are dropped; fields that
// another manager applied are held, unless the document takes them; and those that are as the
// cluster's admission made them of what is still desired are altered (K10).
func compare(live *object, doc fleet.KubeDocument, schema *schema, known []fleet.Alteration) comparison {
	c := comparer{owners: live.owners, force: doc.Force, known: known}
	c.document(live, doc, schema)
	return c.out
}

func (c *comparer) document(live *object, doc fleet.KubeDocument, schema *schema) {
	var spec map[string]any
	spec, c.out.dropped = schema.prune(doc.Spec)
	meta := path{}.field("metadata")
	compareFields(c, meta.field("labels"), doc.Labels, live.Labels)
	compareFields(c, meta.field("annotations"), doc.Annotations, live.Annotations)
	compareFields(c, path{}.field("spec"), spec, live.spec)
	byPath := func(a, b fleet.FieldDifference) int { return cmp.Compare(a.Path, b.Path) }
	slices.SortFunc(c.out.differs, byPath)
	slices.SortFunc(c.out.held, byPath)
	slices.SortFunc(c.out.altered, byPath)
}

type comparer struct {
	owners owners
	force  bool
	known  []fleet.Alteration // of the last apply
	found  []fleet.Alteration // what differs
	out    comparison
}

// compareFields compares the fields of an object with those that are desired.
func compareFields[V any](c *comparer, at path, want, have map[string]V) {
	for _, k := range sortedKeys(want) {
		if h, ok := have[k]; ok {
			c.value(at.field(k), want[k], h)
		} else if !empty(want[k]) {
			c.differ(at.field(k), want[k], nil, true)
		}
	}
}

func (c *comparer) value(at path, want, have any) {
	switch w := want.(type) {
	case map[string]any:
		if h, ok := have.(map[string]any); ok {
			compareFields(c, at, w, h)
			return
		}
	case []any:
		if h, ok := have.([]any); ok && len(h) == len(w) {
			found := c.out.unlike()
			for i := range w {
				c.value(at.index(i), w[i], h[i])
			}
			// What more an element has may be a default, unless somebody else has set the list.
			other, _ := c.owners.of(at)
			if c.out.unlike() > found || other == "" || equal(want, have) {
				return
			}
		}
	default:
		if equal(want, have) {
			return
		}
	}
	c.differ(at, want, have, false)
}

// differ notes that the field at is not as wanted. Nobody holds one that is missing.
func (c *comparer) differ(at path, want, have any, missing bool) {
	d := fleet.FieldDifference{Path: at.text, Want: show(want)}
	a := fleet.Alteration{Path: at.text, Sent: digest(want)}
	applied := false
	if !missing {
		d.Have, a.Became = show(have), digest(have)
		d.Manager, applied = c.owners.of(at)
	}
	switch {
	case slices.Contains(c.known, a):
		d.Manager = ""
		c.out.altered = append(c.out.altered, d)
	case applied && !c.force:
		c.out.held = append(c.out.held, d)
		if c.owners.whole(at.elems) { // else a conflict names the element
			c.out.yields = append(c.out.yields, claim{at, d.Manager})
		}
	default:
		c.out.differs = append(c.out.differs, d)
		c.found = append(c.found, a)
	}
}

// equal compares two values of JSON; how a number is written makes no difference.
func equal(a, b any) bool {
	return value.Equals(value.NewValueInterface(a), value.NewValueInterface(b))
}

// empty reports whether v says no more than its absence does.
func empty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case map[string]any:
		return len(x) == 0
	case []any:
		return len(x) == 0
	default:
		return false
	}
}

// digest tells values of JSON apart.
func digest(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:12])
}

// show writes a value as JSON; a long one is cut.
func show(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	if r := []rune(string(b)); len(r) > maxShown {
		return string(r[:maxShown]) + "…"
	}
	return string(b)
}
