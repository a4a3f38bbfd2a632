package audit_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func mark(t *testing.T, l *audit.Log) fleet.AuditAnchor {
	t.Helper()
	a, err := l.Mark()
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Prune(a.First); err != nil {
		t.Fatal(err)
	}
	return a
}

// verified is what verify says against an anchor: "" if all is whole.
func verified(t *testing.T, path string, a fleet.AuditAnchor, after uint64) string {
	t.Helper()
	files, err := audit.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = audit.Verify(a, after, files...)
	if fault, ok := errors.AsType[*audit.Fault](err); ok {
		return fault.Why
	}
	if err != nil {
		t.Fatal(err)
	}
	return ""
}

// lines returns the whole lines of a file.
func lines(t *testing.T, path string) [][]byte {
	t.Helper()
	return bytes.SplitAfter([]byte(strings.TrimSuffix(text(t, path), "\n")), []byte("\n"))
}

// forge makes a log of its own, whose chain is whole.
func forge(t *testing.T, path string, paths ...string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	l := open(t, audit.Config{Path: path})
	write(t, l, paths...)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

// Whatever is done to the files while kurad is stopped: verify finds it before the next
// start and after it, and the log says so.
func TestG10_whatWasTakenFromAStoppedLogIsFound(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tests := map[string]struct {
		tamper func(path string)
		finds  string // of verify, before the next start
		says   string // the line of the next start
	}{
		"cut at the end": {func(path string) {
			must(os.WriteFile(path, bytes.Join(lines(t, path)[:1], nil), 0o600))
		}, "lines 18 to 20, which kurad has written, are gone: the end was cut off", "lines 18 to 20 are gone: it was cut off behind line 17"},
		"emptied": {func(path string) { must(os.Truncate(path, 0)) },
			"lines 17 to 20, which kurad has written, are gone: the end was cut off", "lines 17 to 20 are gone"},
		"the newest file removed": {func(path string) { must(os.Remove(path)) },
			"lines 17 to 20, which kurad has written, are gone", "lines 17 to 20 are gone"},
		"all removed": {func(path string) {
			files, err := audit.Files(path)
			must(err)
			for _, f := range files {
				must(os.Remove(f))
			}
		}, "lines 9 to 20, which kurad has written, are gone", "lines 9 to 20 are gone"},
		"the oldest file removed": {func(path string) {
			files, err := audit.Files(path)
			must(err)
			must(os.Remove(files[0]))
		}, "lines 9 to 12, which kurad has not removed, are gone", "lines 9 to 12 are gone at its beginning"},
		"replaced by another whole log": {func(path string) {
			files, err := audit.Files(path)
			must(err)
			for _, f := range files[:len(files)-1] {
				must(os.Remove(f))
			}
			var paths []string
			for i := range 30 {
				paths = append(paths, fmt.Sprintf("/forged/%d", i))
			}
			forge(t, path, paths...)
		}, "line 20 of the chain is not the one that kurad wrote", "line 20 is not the one that kurad wrote"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			cfg := audit.Config{Path: path, MaxSize: 1300, Keep: 2, Anchored: true}
			l := open(t, cfg)
			var a fleet.AuditAnchor
			for i := range 20 {
				write(t, l, fmt.Sprintf("/a/%02d", i))
				a = mark(t, l)
			}
			must(l.Close())
			if a.First != 9 || a.Seq != 20 || verified(t, path, a, 0) != "" {
				t.Fatalf("anchor %+v; %s", a, verified(t, path, a, 0))
			}
			test.tamper(path)
			if got := verified(t, path, a, 0); !strings.Contains(got, test.finds) {
				t.Errorf("verify says %q, want %q", got, test.finds)
			}
			l = open(t, cfg)
			must(l.Compare(a))
			a = mark(t, l)
			write(t, l, "/after")
			if got := text(t, path); !strings.Contains(got, `"event":"tampered"`) || !strings.Contains(got, test.says) {
				t.Errorf("the log does not say %q:\n%s", test.says, got)
			}
			if got := verified(t, path, a, 0); got == "" {
				t.Error("verify is content after the next start")
			}
			must(l.Close())
			l = open(t, cfg) // what was told is not told again
			must(l.Compare(a))
			if got := text(t, path); strings.Count(got, `"event":"tampered"`) != 1 {
				t.Errorf("it is told again:\n%s", got)
			}
			last := mark(t, l).Seq
			write(t, l, "/more")
			if got := verified(t, path, mark(t, l), last); got != "" { // an operator has dealt with it
				t.Errorf("behind line %d: %s", last, got)
			}
		})
	}
}

// A crash leaves a log that is ahead of its anchor, or ends in half a line: nobody cries wolf.
func TestG10_aLogMayBeAheadOfItsAnchor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	cfg := audit.Config{Path: path, MaxSize: 1300, Keep: 2, Anchored: true}
	l := open(t, cfg)
	anchors := []fleet.AuditAnchor{{}, mark(t, l)}
	for i := range 12 {
		write(t, l, fmt.Sprintf("/a/%02d", i))
		a, err := l.Mark() // and killed before Prune
		if err != nil {
			t.Fatal(err)
		}
		anchors = append(anchors, a)
	}
	_ = l.Close()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = f.WriteString(`{"seq":13,"ti`)
	_ = f.Close()
	l = open(t, cfg)
	for _, a := range anchors {
		if err := l.Compare(a); err != nil {
			t.Fatal(err)
		}
		if got := verified(t, path, a, 0); got != "" {
			t.Errorf("anchor %+v: %s", a, got)
		}
	}
	if got := text(t, path); strings.Contains(got, "tampered") || !strings.Contains(got, "recovered") {
		t.Errorf("%s", got)
	}
}

// The length of the attack that was seen: a read token is denied 400,000 times. Not one
// line of a change goes, and the denied calls are all counted.
func TestAttack_G10_deniedCallsTakeNoChangeAway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	now := at
	trail, err := audit.OpenTrail(audit.Config{Path: path, MaxSize: 4000, Keep: 2, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	admin := entry("/v1/tokens/evil")
	admin.TokenName, admin.Method = "admin", "DELETE"
	if err := trail.Write(admin, true); err != nil {
		t.Fatal(err)
	}
	const calls = 400_000
	for i := range calls {
		now = now.Add(time.Millisecond)
		e := audit.Entry{Time: now, Event: audit.EventCall, TokenID: "reader00", TokenName: "evil", Source: "127.0.0.1:4000", Method: "PUT", Path: "/v1/accounts/a", Status: 403, Reason: "has scope read"}
		if i%4 == 0 { // and as many strangers as there are
			e.TokenID, e.Source = "", fmt.Sprintf("10.%d.%d.%d:99", i>>16&255, i>>8&255, i&255)
		}
		if err := trail.Write(e, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	if got := text(t, path); !strings.Contains(got, "/v1/tokens/evil") {
		t.Errorf("the admin's line is gone:\n%.2000s", got)
	}
	whole(t, path, 1)
	written, counted := 0, 0
	files, err := audit.Files(audit.DeniedPath(path))
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for _, f := range files {
		size += len(text(t, f))
		for _, line := range lines(t, f) {
			var l audit.Line
			if err := json.Unmarshal(line, &l); err != nil {
				t.Fatal(err)
			}
			if l.Event == audit.EventCall {
				counted++
			}
			written, counted = written+1, counted+l.Unwritten
		}
	}
	minutes := int(now.Sub(at)/time.Minute) + 1
	if most := (minutes + 1) * (1024 + 2); written > most || counted != calls {
		t.Errorf("%d lines of %d calls in %d minutes, want %d at most and %d calls", written, counted, minutes, most, calls)
	}
	t.Logf("%d denied calls in %d minutes: %d lines, %d KiB", calls, minutes, written, size>>10)
	if r, err := audit.VerifyChain(files...); err != nil || r.Lines != written {
		t.Errorf("%+v, %v", r, err)
	}
}

// Each caller has a line at once, and then one a minute at most that says how many there were.
func TestG10_aCallersDeniedCallsAreCounted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	now := at
	trail, err := audit.OpenTrail(audit.Config{Path: path, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	denied := func(token, source string, n int) {
		t.Helper()
		for range n {
			if err := trail.Write(audit.Entry{Time: now, Event: audit.EventCall, TokenID: token, Source: source, Method: "GET", Path: "/x", Status: 401}, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	got := func() (all []string) {
		for _, line := range lines(t, audit.DeniedPath(path)) {
			var l audit.Line
			if err := json.Unmarshal(line, &l); err == nil {
				all = append(all, fmt.Sprintf("%s%s+%d", l.TokenID, strings.SplitN(l.Source, ":", 2)[0], l.Unwritten))
			}
		}
		return all
	}
	want := func(lines ...string) {
		t.Helper()
		if g := got(); strings.Join(g, " ") != strings.Join(lines, " ") {
			t.Errorf("lines %q, want %q", g, lines)
		}
	}
	denied("", "1.1.1.1:1", 3)
	denied("", "1.1.1.1:2", 2) // another port is no other caller
	denied("a", "1.1.1.1:2", 2)
	want("1.1.1.1+0", "a1.1.1.1+0")
	now = now.Add(59 * time.Second)
	trail.Flush()
	want("1.1.1.1+0", "a1.1.1.1+0")
	now = now.Add(time.Second)
	denied("a", "1.1.1.1:2", 1) // the next call tells
	want("1.1.1.1+0", "a1.1.1.1+0", "a1.1.1.1+1")
	trail.Flush() // and the clock, where none comes
	want("1.1.1.1+0", "a1.1.1.1+0", "a1.1.1.1+1", "1.1.1.1+4")
	denied("", "1.1.1.1:9", 7)
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
	want("1.1.1.1+0", "a1.1.1.1+0", "a1.1.1.1+1", "1.1.1.1+4", "1.1.1.1+7")
}
