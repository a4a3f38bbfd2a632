package api

import "fmt"

// Secret is text that never shows: it prints, formats and encodes as ***. It can be
// decoded; only Reveal gives it back.
type Secret struct{ value string }

const hidden = "***"

// NewSecret hides s.
func NewSecret(s string) Secret { return Secret{value: s} }

// Reveal returns the text.
func (s Secret) Reveal() string { return s.value }

// Empty reports whether there is no text.
func (s Secret) Empty() bool { return s.value == "" }

func (s Secret) String() string { return hidden }

// Format implements fmt.Formatter: every verb prints ***.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(hidden)) }

// MarshalText implements encoding.TextMarshaler.
func (s Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Secret) UnmarshalText(b []byte) error {
	s.value = string(b)
	return nil
}
