package fleet

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

var memoryUnits = map[string]int64{
	"": 1, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12,
	"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40,
}

// minMemory is what container engines ask for at least.
const minMemory = 6 << 20

// ParseMemory parses a memory limit such as 256Mi or 1Gi into bytes.
func ParseMemory(s string) (int64, error) {
	digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
	unit, known := memoryUnits[s[len(digits):]]
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case digits == "" || !known:
		return 0, Errorf(CodeInvalid, "%s is no amount of memory; write a whole number and a unit (Ki, Mi, Gi, Ti, k, M, G or T), such as 256Mi", quote(s))
	case err != nil || n > math.MaxInt64/unit:
		return 0, Errorf(CodeInvalid, "%s is more memory than can be counted; write less", quote(s))
	case n*unit < minMemory:
		return 0, Errorf(CodeInvalid, "%q is less than 6Mi, the least that container engines take; write more", s)
	}
	return n * unit, nil
}

// checkCPUs checks a limit of processors; 0 is none.
func checkCPUs(n float64) error {
	if math.IsNaN(n) || n < 0 || n > maxCPUs || (n > 0 && n < minCPUs) {
		return fmt.Errorf("is %v; write a number of processors from %v to %v, or leave it out for no limit", n, minCPUs, float64(maxCPUs))
	}
	return nil
}

// Bounds of a limit of processors.
const (
	minCPUs = 0.01
	maxCPUs = 1024
)
