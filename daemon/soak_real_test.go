//go:build real

package main

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// What takes long is shorter, or happens less often, in every run than in `make soak`, which
// sets these variables.

// refusedFor is how long the cluster refuses us in the middle of a roll-out.
func refusedFor(t *testing.T) time.Duration {
	return lasting(t, "KURA_TEST_REFUSED_FOR", 30*time.Second)
}

// cutFor is how long the watch of a cluster is cut.
func cutFor(t *testing.T) time.Duration { return lasting(t, "KURA_TEST_CUT_FOR", 20*time.Second) }

// lostTimes is how often each fault hits the leader.
func lostTimes(t *testing.T) int { return often(t, "KURA_TEST_LEADER_LOST", 8) }

func lasting(t *testing.T, name string, usual time.Duration) time.Duration {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		t.Fatalf("%s=%q is no length of time such as 10m", name, text)
	}
	return d
}

func often(t *testing.T, name string, usual int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n <= 0 {
		t.Fatalf("%s=%q is no number such as 20", name, text)
	}
	return n
}
