//go:build real

package provider

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

var urlFormat = regexp.MustCompile(`^http://acme-eu-staging\.kura\.test:20\d\d\d$`)

// compareSame wants a value to be the same in every step.
type compareSame struct{}

// CompareValues implements compare.ValueComparer.
func (compareSame) CompareValues(values ...any) error {
	for _, v := range values[1:] {
		if v != values[0] {
			return fmt.Errorf("%v became %v", values[0], v)
		}
	}
	return nil
}

func contains(text string, all ...string) bool {
	for _, s := range all {
		if !strings.Contains(text, s) {
			return false
		}
	}
	return true
}

func replaceOnce(t *testing.T, s, from, to string) string {
	t.Helper()
	if strings.Count(s, from) != 1 {
		t.Fatalf("%q is in there %d times", from, strings.Count(s, from))
	}
	return strings.Replace(s, from, to, 1)
}
