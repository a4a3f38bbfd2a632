package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestStatusWatch_fitsEveryWindow(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	var list []fleet.ServerView
	for i := range 30 {
		s := fleetOfEveryKind()[i%6]
		s.Account = fmt.Sprintf("customer-%02d", i)
		list = append(list, s)
	}
	for _, f := range []frame{{value: list}, {value: list, err: errors.New("gone"), since: time.Now().Add(-5 * time.Second)}, {value: list[:2]}, {value: serverStory{ServerView: list[0]}}} {
		for _, size := range [][2]int{{200, 60}, {80, 24}, {40, 10}, {20, 4}, {9, 1}} {
			lines := statusOptions{}.lines(f, size[0], size[1])
			if len(lines) > size[1] {
				t.Errorf("%d lines in a window of %v", len(lines), size)
			}
			for _, line := range lines {
				if n := text.StringWidthWithoutEscSequences(line); n > size[0] {
					t.Errorf("a line of %d columns in a window of %v: %q", n, size, line)
				}
			}
		}
	}
	shown := strings.Join(statusOptions{}.lines(frame{value: list}, 80, 24), "\n")
	for _, want := range []string{"30 servers: 5 converged, 5 drifted, 5 failed", " and 11 more, for which the window is too small"} {
		if !strings.Contains(shown, want) {
			t.Errorf("the window does not say %q:\n%s", want, shown)
		}
	}
	if strings.Contains(shown, "converged   ") {
		t.Errorf("what converged is shown before what did not:\n%s", shown)
	}
	away := strings.Join(statusOptions{}.lines(frame{value: list[:1], err: errors.New("gone"), since: time.Now().Add(-5*time.Second - 500*time.Millisecond)}, 80, 24), "\n")
	if !strings.Contains(away, "kurad does not answer since 5s, retrying") || !strings.Contains(away, "customer-") {
		t.Errorf("while it does not answer:\n%s", away)
	}
}
