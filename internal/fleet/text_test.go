package fleet_test

import (
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestG11_textFromOutsideIsShownWithoutControlCharactersAndDirectionMarks(t *testing.T) {
	for in, want := range map[string]string{
		"plain: größe 日本":            "plain: größe 日本",
		"a\x1b[31mred\x07\r\nb":      "a [31mred   b",
		"\u202egpj.exe\u2066\u200bx": "gpj.exex",
		"\xffbad\x85":                "\uFFFDbad\uFFFD",
		"c1\u009b2J":                 "c1 2J",
	} {
		if got := fleet.Printable(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
