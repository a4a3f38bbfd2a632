package audit_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
)

// Whatever somebody wrote into the middle of the file: the chain goes on behind it, and
// verify names it.
func TestLog_aLineThatIsTooLongKeepsNobodyFromGoingOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, audit.Config{Path: path, Anchored: true})
	write(t, l, "/1", "/2")
	a := mark(t, l)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	good := strings.SplitAfter(text(t, path), "\n")
	long := strings.Repeat("x", 3<<20)
	if err := os.WriteFile(path, []byte(good[0]+long+"\n"+good[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := verified(t, path, a, 0); got != "it is no line of an audit log: it is too long" {
		t.Errorf("verify says %q", got)
	}
	l = open(t, audit.Config{Path: path, Anchored: true})
	if err := l.Compare(a); err != nil {
		t.Fatal(err)
	}
	write(t, l, "/3")
	if got := text(t, path); strings.Contains(got, "tampered") || !strings.Contains(got, `{"seq":3,`) {
		t.Errorf("%d bytes, the last of them %s", len(got), got[max(0, len(got)-400):])
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(good[0]+long), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.Open(audit.Config{Path: path}); err == nil || !strings.Contains(err.Error(), "its last line is longer than any that kurad writes") {
		t.Errorf("half a line of 3 MiB: %v", err)
	}
}
