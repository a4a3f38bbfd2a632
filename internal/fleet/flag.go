package fleet

import (
	"fmt"
	"strings"
)

// ParseFlag reads first[,key=value…]: how the command line describes what kurad is given. Each
// part after the first is handed to set, a key once.
func ParseFlag(flag string, set func(key, value string) error) (first string, err error) {
	parts := strings.Split(flag, ",")
	seen := map[string]bool{}
	for _, part := range parts[1:] {
		key, value, _ := strings.Cut(part, "=")
		if seen[key] {
			return "", fmt.Errorf("%s is given twice", key)
		}
		seen[key] = true
		if err := set(key, value); err != nil {
			return "", err
		}
	}
	return parts[0], nil
}
