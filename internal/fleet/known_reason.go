package fleet

import "slices"

// KnownReason reports whether the table of conditions lists r for conditions of type t.
func KnownReason(t ConditionType, r Reason) bool {
	for _, rule := range ConditionRules() {
		if rule.Type == t {
			return slices.Contains(rule.Reasons, r)
		}
	}
	return false
}
