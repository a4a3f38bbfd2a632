package projection

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// rules are all rules that can be dropped.
var rules = []Rule{
	RuleP18Destroy, RuleP2Unreadable, RuleNewKey, RulePlanAnswers, RuleS6Supersede, RuleS11DropHeld, RuleS11Holds,
	RuleSee, RuleC11Crashes, RuleP5Active, RuleP5FreshProbe, RuleP8Endpoint, RuleD3Ownership, RuleRefused,
	RuleP10Stall, RuleP4Absent, RuleC7Foreign, RuleP7Image, RuleDeployment, RuleP9Retry, RuleP9Prompt, RuleG4Admission, RuleWakeUp,
	RuleP14Document, RuleC2Restart, RuleC4Leftovers, RuleEffectsGuard, RuleP18Absence, RuleClockHeld,
	RuleS10Observe, RuleURLOnce, RuleSettledRefusal, RuleSilence, RuleP12Mark,
	RuleC14Alive, RuleC14Yield, RuleC14Interrupted, RuleC15Names, RuleC15GiveWay,
}

// kubeRules are those of Kubernetes regions.
var kubeRules = []Rule{
	RuleK4Foreign, RuleK4Terminating, RuleK6Adoption, RuleK6Direct, RuleK6Record, RuleK7Rerender, RuleK7Withdrawn, RuleP4NoImage,
	RuleP5Image, RuleP5SameObject, RuleK8Evidence, RuleK8Twice,
	RuleP18Direct, RuleK3Once, RuleS6Object,
}

// zoneRules are those of regions whose hosts' records are read.
var zoneRules = []Rule{RuleP18Tracks, RuleD0Order, RuleD1Foreign, RuleD4Claimed, RuleD4OwnOnly, RuleR2Pool}

// Each rule matters: where one is dropped, the exploration complains. It visits what
// TestExploration_everyCombinationHeals and TestExploration_everyStateHeals visit, until
// the first complaint.
func TestExploration_noticesEveryDroppedRule(t *testing.T) {
	t.Parallel()
	for _, rule := range slices.Concat(rules, kubeRules, zoneRules) {
		v := variant{kube: slices.Contains(kubeRules, rule), helper: rule == RuleC15GiveWay, ports: rule == RuleC15GiveWay}
		v.zone, v.global = slices.Contains(zoneRules, rule), slices.Contains(zoneRules, rule)
		begin := starts(v)
		t.Run(string(rule), func(t *testing.T) {
			t.Parallel()
			x := newExplorer(1)
			x.without = rule
			start := time.Now()
			x.explore(begin...) // what is near finds most
			if len(x.complaints) == 0 {
				x.combinations(v, worlds(v)[:1])
			}
			if len(x.complaints) == 0 {
				x = newExplorer(2)
				x.without = rule
				x.explore(begin...)
			}
			if len(x.complaints) == 0 {
				t.Fatalf("nobody misses it: %d states visited by %d transitions", len(x.states), x.transitions)
			}
			what, _, _ := strings.Cut(x.complaints[0], "\n")
			t.Logf("after %d turns and %s: %s", x.turns, time.Since(start).Round(time.Millisecond), what)
		})
	}
}

// The list above is complete, and each rule is asked for by the code.
func TestRules_everyRuleIsListed(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "rules.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	listed := map[Rule]bool{}
	for _, rule := range slices.Concat(rules, kubeRules, zoneRules) {
		listed[rule] = true
	}
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, ok := spec.Type.(*ast.Ident); !ok || kind.Name != "Rule" {
			return true
		}
		declared++
		text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil || !listed[Rule(text)] {
			t.Errorf("%s is not listed", spec.Names[0].Name)
		}
		return true
	})
	if declared != len(listed) {
		t.Errorf("rules.go declares %d rules, %d are listed", declared, len(listed))
	}
}
