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

// Shorten makes an answer fit to be shown: one line of at most so many characters, cut in the
// middle, since its beginning and its end say most.
func Shorten(s string, most int) string {
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > most {
		s = string(r[:most/2]) + " … " + string(r[len(r)-most/2:])
	}
	return s
}
