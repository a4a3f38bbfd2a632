package fleet

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Failing is what is tried again and again (P21): the last answer to a step that did not
// succeed, and since when, and how often, it was answered so.
type Failing struct {
	Kind    TaskKind  `json:"kind"`
	Service string    `json:"service,omitempty"`
	What    string    `json:"what"` // the step, in words
	Class   Class     `json:"class"`
	Reason  Reason    `json:"reason"`
	Message string    `json:"message,omitempty"`
	Since   time.Time `json:"since"`
	Count   int       `json:"count"`
}

// Of reports whether the task is the step that fails.
func (f *Failing) Of(t Task) bool { return f != nil && f.Kind == t.Kind && f.Service == t.Service }

// Same reports whether an answer to the task says nothing new. A message that varies is
// no news.
func (f *Failing) Same(t Task, o Outcome) bool {
	return f.Of(t) && f.Class == o.Class && f.Reason == o.Reason
}

// String is the last answer, and what it was to. It does not change with the count.
func (f *Failing) String() string { return f.What + ": " + f.answer() }

func (f *Failing) answer() string { return cmp.Or(f.Message, string(f.Reason)) }

// counted is a text in which the last answer says how often it came.
func (f *Failing) counted(text string) string {
	often := f.often()
	if often == "" {
		return text
	}
	said := f.String()
	if !strings.Contains(text, said) {
		said = f.answer()
	}
	return strings.Replace(text, said, said+often, 1)
}

// often says how often the answer came, and since when.
func (f *Failing) often() string {
	if f == nil || f.Count < 2 {
		return ""
	}
	return fmt.Sprintf(" (%d times since %s)", f.Count, f.Since.UTC().Format("2006-01-02 15:04:05 MST"))
}
