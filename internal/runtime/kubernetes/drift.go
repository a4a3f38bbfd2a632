package kubernetes

import (
	"cmp"
	"encoding/json"
	"maps"
	"reflect"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// comparison is how a live object relates to a document (P14).
type comparison struct {
	differs, held []fleet.FieldDifference
	dropped       []string
}

// compare compares what is live with what is desired. Only what the document says
// counts: what else the object has is not ours, and what a server filled in within a
// field of ours is no difference. Fields that the schema lacks are dropped, and so are
// those of lost that are not there; fields that another manager applied are held,
// unless the document takes them.
func compare(live *object, doc fleet.KubeDocument, schema *schema, lost []string) comparison {
	c := comparer{owners: live.owners, force: doc.Force, lost: lost}
	spec, dropped := schema.prune(doc.Spec)
	c.out.dropped = dropped
	meta := path{}.field("metadata")
	c.texts(meta.field("labels"), doc.Labels, live.Labels)
	c.texts(meta.field("annotations"), doc.Annotations, live.Annotations)
	c.object(path{}.field("spec"), spec, live.spec)
	byPath := func(a, b fleet.FieldDifference) int { return cmp.Compare(a.Path, b.Path) }
	slices.SortFunc(c.out.differs, byPath)
	slices.SortFunc(c.out.held, byPath)
	slices.Sort(c.out.dropped)
	return c.out
}

type comparer struct {
	owners owners
	force  bool
	lost   []string
	out    comparison
}

func (c *comparer) texts(at path, want, have map[string]string) {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if h, ok := have[k]; !ok {
			c.missing(at.field(k), want[k])
		} else if h != want[k] {
			c.differ(at.field(k), want[k], h)
		}
	}
}

func (c *comparer) object(at path, want, have map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(want)) {
		if h, ok := have[k]; ok {
			c.value(at.field(k), want[k], h)
		} else if !empty(want[k]) {
			c.missing(at.field(k), want[k])
		}
	}
}

func (c *comparer) value(at path, want, have any) {
	switch w := want.(type) {
	case map[string]any:
		if h, ok := have.(map[string]any); ok {
			c.object(at, w, h)
			return
		}
	case []any:
		if h, ok := have.([]any); ok && len(h) == len(w) {
			found := len(c.out.differs) + len(c.out.held)
			for i := range w {
				c.value(at.index(i), w[i], h[i])
			}
			// What more an element has may be a default, unless somebody edited the list.
			editor, applied := c.owners.of(at)
			if len(c.out.differs)+len(c.out.held) > found || editor == "" || applied || reflect.DeepEqual(want, have) {
				return
			}
		}
	default:
		if equal(want, have) {
			return
		}
	}
	c.differ(at, want, have)
}

// missing notes a field that is not there. Nobody holds it.
func (c *comparer) missing(at path, want any) {
	if slices.Contains(c.lost, at.text) {
		c.out.dropped = append(c.out.dropped, at.text)
		return
	}
	c.out.differs = append(c.out.differs, fleet.FieldDifference{Path: at.text, Want: show(want)})
}

func (c *comparer) differ(at path, want, have any) {
	d := fleet.FieldDifference{Path: at.text, Have: show(have), Want: show(want)}
	manager, applied := c.owners.of(at)
	d.Manager = manager
	if applied && !c.force {
		c.out.held = append(c.out.held, d)
		return
	}
	c.out.differs = append(c.out.differs, d)
}

// equal compares two values of JSON that are no objects or lists.
func equal(a, b any) bool {
	x, okX := number(a)
	y, okY := number(b)
	if okX && okY {
		return x == y
	}
	return reflect.DeepEqual(a, b)
}

func number(v any) (float64, bool) {
	switch n := v.(type) {
	case int64:
		return float64(n), true
	case float64:
		return n, true
	case int:
		return float64(n), true
	default:
		return 0, false
	}
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

// maxShown bounds what is stored and shown of a value.
const maxShown = 300

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
