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
	yields        []claim // of held: what other managers applied
}

// lost is what of a document was not in the answer to its apply as it was applied.
type lost struct {
	revision string
	paths    []string       // of what was not there: the server dropped it (K3)
	altered  map[string]any // by path what was there instead: a webhook, or the server, writes it otherwise
}

// theServer is the manager of what the API server itself holds otherwise than it was
// applied: to apply it again would change nothing.
const theServer = "the API server"

// echoed returns what the answer to the document's apply has not, or otherwise.
func echoed(echo *object, doc fleet.KubeDocument, s *schema) lost {
	c := comparer{owners: echo.owners, force: doc.Force, have: map[string]any{}}
	c.document(echo, doc, s)
	l := lost{revision: doc.Revision}
	for _, d := range c.out.differs {
		if have, ok := c.have[d.Path]; ok {
			if l.altered == nil {
				l.altered = map[string]any{}
			}
			l.altered[d.Path] = have
		} else {
			l.paths = append(l.paths, d.Path)
		}
	}
	return l
}

// compare compares what is live with what is desired. Only what the document says
// counts: what else the object has is not ours, and what a server filled in within a
// field of ours is no difference. Fields that the schema lacks are dropped, and so are
// those that were lost and are not there; fields that another manager applied are held,
// unless the document takes them, and so are those that are still as the server altered
// them when they were applied.
func compare(live *object, doc fleet.KubeDocument, schema *schema, l lost) comparison {
	c := comparer{owners: live.owners, force: doc.Force}
	if l.revision == doc.Revision {
		c.lost = l
	}
	c.document(live, doc, schema)
	return c.out
}

func (c *comparer) document(live *object, doc fleet.KubeDocument, schema *schema) {
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
}

type comparer struct {
	owners owners
	force  bool
	lost   lost
	have   map[string]any // by path what differs, where it is asked for
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
			// What more an element has may be a default, unless somebody else has set the list.
			other, _ := c.owners.of(at)
			if len(c.out.differs)+len(c.out.held) > found || other == "" || identical(want, have) {
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
	if slices.Contains(c.lost.paths, at.text) {
		c.out.dropped = append(c.out.dropped, at.text)
		return
	}
	c.out.differs = append(c.out.differs, fleet.FieldDifference{Path: at.text, Want: show(want)})
}

func (c *comparer) differ(at path, want, have any) {
	d := fleet.FieldDifference{Path: at.text, Have: show(have), Want: show(want)}
	if c.have != nil {
		c.have[at.text] = have
	}
	if was, ok := c.lost.altered[at.text]; ok && identical(was, have) {
		d.Manager = theServer
		c.out.held = append(c.out.held, d)
		return
	}
	manager, applied := c.owners.of(at)
	d.Manager = manager
	if applied && !c.force {
		c.out.held = append(c.out.held, d)
		if c.owners.whole(at.elems) { // else a conflict names the element
			c.out.yields = append(c.out.yields, claim{at, manager})
		}
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

// identical reports whether two values of JSON are equal in all they say.
func identical(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		return ok && maps.EqualFunc(x, y, identical)
	case []any:
		y, ok := b.([]any)
		return ok && slices.EqualFunc(x, y, identical)
	default:
		return equal(a, b)
	}
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
