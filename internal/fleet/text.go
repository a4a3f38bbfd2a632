package fleet

import (
	"strings"
	"unicode"
)

// Printable makes text from outside fit to be shown (G11): what controls a terminal becomes a space,
// and marks that change what is seen of the rest, such as those of direction, are left out.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r):
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(s, "\uFFFD"))
}
