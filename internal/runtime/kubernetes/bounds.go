package kubernetes

import (
	"fmt"
	"unicode/utf8"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// What is seen of an object is stored in its server's status: whatever somebody writes
// into an object, that must stay well below the store's limit of 1 MiB.
const (
	maxText   = 1024 // bytes of what is copied from an object
	maxPath   = 256  // bytes
	maxFields = 50   // of each list
	maxShown  = 300  // characters of a field's value
	// maxMessage is the characters of a server's answer.
	maxMessage = 600
)

// cut shortens s to at most limit bytes of whole characters.
func cut(s string, limit int) string {
	const mark = "…"
	if len(s) <= limit {
		return s
	}
	end := limit - len(mark)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + mark
}

// boundedFields cuts a list of differences; a last entry says how many more there are.
func boundedFields(all []fleet.FieldDifference) []fleet.FieldDifference {
	var out []fleet.FieldDifference
	for i, d := range all {
		if i == maxFields {
			return append(out, fleet.FieldDifference{Path: more(len(all))})
		}
		d.Path, d.Manager = cut(d.Path, maxPath), cut(d.Manager, maxPath)
		out = append(out, d)
	}
	return out
}

// boundedPaths cuts a list of paths; a last entry says how many more there are.
func boundedPaths(all []string) []string {
	var out []string
	for i, p := range all {
		if i == maxFields {
			return append(out, more(len(all)))
		}
		out = append(out, cut(p, maxPath))
	}
	return out
}

func more(all int) string { return fmt.Sprintf("… and %d more", all-maxFields) }

// shorten makes an answer fit to be shown.
func shorten(s string) string { return fleet.Shorten(s, maxMessage) }
