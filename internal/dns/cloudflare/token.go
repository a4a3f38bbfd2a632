package cloudflare

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// secret is a token. It never shows: it prints and encodes as ***.
type secret string

const hidden = "***"

// Format implements fmt.Formatter: every verb prints ***.
func (secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText implements encoding.TextMarshaler.
func (secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// source is where a token is: the path of a file, or env:NAME.
type source string

// maxToken is the bytes of a file with a token; Cloudflare's have 40 to 60.
const maxToken = 4096

// read reads the token. It is read for each call, so that one that was renewed is used at once, and
// none is kept.
func (s source) read() (secret, error) {
	text := ""
	if name, ok := strings.CutPrefix(string(s), "env:"); ok {
		text = os.Getenv(name)
	} else {
		f, err := os.Open(string(s))
		if err != nil {
			return "", err // names the path and the reason
		}
		defer f.Close()
		b, err := io.ReadAll(io.LimitReader(f, maxToken+1))
		if err != nil {
			return "", err
		}
		text = string(b)
	}
	switch text = strings.TrimSpace(text); {
	case text == "":
		return "", fmt.Errorf("%s is empty", s)
	case len(text) > maxToken || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", fmt.Errorf("%s holds more than a token, which is one word", s)
	}
	return secret(text), nil
}
