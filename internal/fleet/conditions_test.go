package fleet

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"testing"
)

// constants returns the string constants of a type as declared in condition.go: a
// new one is in the test without anybody remembering it.
func constants(t *testing.T, typ string) map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "condition.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != typ {
			return true
		}
		for i, name := range spec.Names {
			value, err := strconv.Unquote(spec.Values[i].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			found[name.Name] = value
		}
		return true
	})
	if len(found) == 0 {
		t.Fatalf("condition.go declares no constant of type %s", typ)
	}
	return found
}

var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

func TestConditionTableHasARowForEveryType(t *testing.T) {
	rows := map[ConditionType]bool{}
	for _, rule := range ConditionRules() {
		if rows[rule.Type] {
			t.Errorf("%s has two rows", rule.Type)
		}
		rows[rule.Type] = true
		if rule.Setter == "" || rule.Meaning == "" || len(rule.Reasons) == 0 {
			t.Errorf("%s: the row is not complete: %+v", rule.Type, rule)
		}
	}
	declared := constants(t, "ConditionType")
	for name, value := range declared {
		if !rows[ConditionType(value)] {
			t.Errorf("%s (%q) has no row", name, value)
		}
	}
	if len(rows) != len(declared) {
		t.Errorf("got %d rows, want one for each of %d types", len(rows), len(declared))
	}
}

func TestConditionReasonsAreClosedSetsInCamelCase(t *testing.T) {
	declared := map[Reason]string{}
	for name, value := range constants(t, "Reason") {
		if other, taken := declared[Reason(value)]; taken {
			t.Errorf("%s and %s are both %q", name, other, value)
		}
		declared[Reason(value)] = name
		if value != "" && !camelCase.MatchString(value) {
			t.Errorf("%s: %q is not in CamelCase", name, value)
		}
	}
	for _, rule := range ConditionRules() {
		seen := map[Reason]bool{}
		for _, r := range rule.Reasons {
			if r == ReasonUnset || declared[r] == "" {
				t.Errorf("%s: reason %q is empty or not declared", rule.Type, r)
			}
			if seen[r] {
				t.Errorf("%s: reason %q is listed twice", rule.Type, r)
			}
			seen[r] = true
			if !knownReason(rule.Type, r) {
				t.Errorf("knownReason(%s, %s): got false", rule.Type, r)
			}
		}
		if knownReason(rule.Type, "Whatever") || knownReason(rule.Type, ReasonUnset) {
			t.Errorf("knownReason(%s): got true for a reason outside its set", rule.Type)
		}
	}
	if knownReason("Whatever", ReasonReady) {
		t.Error("knownReason: got true for an unknown type")
	}
}

// knownReason reports whether the table of conditions lists r for conditions of type t.
func knownReason(t ConditionType, r Reason) bool {
	for _, rule := range ConditionRules() {
		if rule.Type == t {
			return slices.Contains(rule.Reasons, r)
		}
	}
	return false
}
