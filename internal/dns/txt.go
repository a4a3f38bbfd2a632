package dns

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
)

// What external-dns writes in its ownership records (its endpoint/labels.go of 0.23).
const (
	heritage      = "external-dns"
	labelOwner    = heritage + "/owner="
	labelResource = heritage + "/resource="
)

// TXT is what an ownership record of external-dns says.
type TXT struct {
	Owner    string
	Resource string   // <kind>/<namespace>/<name>; fleet.ResourceOf of those that kurad writes
	More     []string // further pairs as they stood, sorted
}

// String is the value of the record, without the quotes that a zone file puts around it.
func (t TXT) String() string {
	pairs := []string{"heritage=" + heritage, labelOwner + t.Owner}
	if t.Resource != "" {
		pairs = append(pairs, labelResource+t.Resource)
	}
	return strings.Join(append(pairs, t.More...), ",")
}

// Reading is what the value of a TXT record was read as.
type Reading string

// Readings.
const (
	ReadingOther  Reading = ""       // no ownership record
	ReadingOwner  Reading = "owner"  // it names one owner
	ReadingNobody Reading = "nobody" // an ownership record that names no owner, or several
	ReadingSealed Reading = "sealed" // what an encrypted one looks like; at a name of the registry it is one
)

// minSealed is the least an encrypted record decodes to, in bytes: nonce 12, gzip 18 and its
// text, tag 16 (external-dns' endpoint/crypto.go).
const minSealed = 48

// ParseTXT reads the value of a TXT record. Like external-dns it takes pairs in any order and
// others among them; what says of another heritage, too, is not external-dns'.
func ParseTXT(content string) (t TXT, r Reading) {
	content = JoinTXT(content)
	for pair := range strings.SplitSeq(content, ",") {
		pair = strings.TrimSpace(pair)
		switch key, value, _ := strings.Cut(pair, "="); {
		case key == "heritage" && value != heritage:
			return TXT{}, ReadingOther
		case key == "heritage":
			r = ReadingOwner
		case strings.HasPrefix(pair, labelOwner):
			if t.Owner != "" && t.Owner != value {
				return TXT{}, ReadingNobody
			}
			t.Owner = value
		case strings.HasPrefix(pair, labelResource):
			t.Resource = value
		case pair != "":
			t.More = append(t.More, pair)
		}
	}
	switch {
	case r == ReadingOther && sealed(content):
		return TXT{}, ReadingSealed
	case r == ReadingOther:
		return TXT{}, ReadingOther
	case t.Owner == "":
		return TXT{}, ReadingNobody
	}
	slices.Sort(t.More)
	return t, r
}

func sealed(content string) bool {
	raw, err := base64.StdEncoding.DecodeString(content)
	return err == nil && len(raw) >= minSealed
}

// JoinTXT returns the value of a TXT record that is written as a zone file would (RFC 1035,
// 5.1): one or more quoted strings, which are joined. Of some providers quotes are part of the
// value, quoted again.
func JoinTXT(s string) string {
	s = strings.TrimSpace(s)
	for range 3 {
		if !strings.HasPrefix(s, `"`) {
			break
		}
		s = strings.TrimSpace(unquote(s))
	}
	return strings.Trim(s, `"`)
}

// unquote joins quoted strings. It takes any text: what follows no rule is kept as it is.
func unquote(s string) string {
	out := make([]byte, 0, len(s))
	quoted := false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+3 < len(s) && decimal(s[i+1:i+4]) >= 0:
			out = append(out, byte(decimal(s[i+1:i+4])))
			i += 3
		case c == '\\' && i+1 < len(s):
			i++
			out = append(out, s[i])
		case !quoted && (c == ' ' || c == '\t'): // between two strings
		default:
			out = append(out, c)
		}
	}
	return string(out)
}

// decimal is the byte that three digits stand for; -1: none.
func decimal(digits string) int {
	n, err := strconv.ParseUint(digits, 10, 8)
	if err != nil {
		return -1
	}
	return int(n)
}
