package fleet

import "strconv"

// quote quotes what a user wrote for an error text, shortened where it would fill
// the screen.
func quote(s string) string {
	const most = 300 // more than any valid host or image
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}
