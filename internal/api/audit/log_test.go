package audit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
)

var at = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func entry(path string) audit.Entry {
	return audit.Entry{Time: at, Event: audit.EventCall, RequestID: "r", TokenName: "ci", Method: "PUT", Path: path, Status: 200}
}

func open(t *testing.T, c audit.Config) *audit.Log {
	t.Helper()
	c.Now = func() time.Time { return at }
	l, err := audit.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func write(t *testing.T, l *audit.Log, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if err := l.Write(entry(p), true); err != nil {
			t.Fatal(err)
		}
	}
}

func text(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// whole checks the log at path and returns what Verify says.
func whole(t *testing.T, path string, lines int) audit.Report {
	t.Helper()
	files, err := audit.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := audit.VerifyChain(files...)
	if err != nil || r.Lines != lines {
		t.Fatalf("verify %v: %+v, %v; want %d lines\n%s", files, r, err, lines, text(t, path))
	}
	return r
}

func TestLog_goesOnAfterARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "audit.log")
	for i := range 3 {
		l := open(t, audit.Config{Path: path})
		write(t, l, fmt.Sprintf("/a/%d", i), fmt.Sprintf("/b/%d", i))
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		if err := l.Write(entry("/late"), false); err == nil {
			t.Error("a closed log takes lines")
		}
	}
	if r := whole(t, path, 6); r.First != 1 || r.Last != 6 || r.Half {
		t.Errorf("%+v", r)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v; want mode 0600", info, err)
	}
}

func TestLog_theChainGoesOnAcrossFilesAndOldOnesGo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, audit.Config{Path: path, MaxSize: 1000, Keep: 3})
	for i := range 40 {
		write(t, l, fmt.Sprintf("/v1/accounts/%d", i))
		if i == 20 { // a restart between
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			l = open(t, audit.Config{Path: path, MaxSize: 1000, Keep: 3})
		}
	}
	files, err := audit.Files(path)
	if err != nil || len(files) != 4 || files[3] != path {
		t.Fatalf("%v, %v; want three closed files and the one that is written", files, err)
	}
	for _, f := range files {
		if info, err := os.Stat(f); err != nil || info.Size() > 1000 || info.Size() == 0 {
			t.Errorf("%s: %v, %v", f, info, err)
		}
	}
	r, err := audit.VerifyChain(files[3], files[0], files[2], files[1]) // whatever the order
	if err != nil || r.Last != 40 || r.First == 1 || r.Lines != int(40-r.First+1) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := audit.VerifyChain(files[0], files[2]); err == nil || !strings.Contains(err.Error(), files[2]+":1: ") {
		t.Errorf("a file is missing: %v", err)
	}
}

func TestLog_aCrashInTheMiddleOfALineIsSaid(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, audit.Config{Path: path})
	write(t, l, "/a", "/b")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	full := text(t, path)
	last := strings.Index(full, "\n") + 1
	for cut := last + 1; cut < len(full); cut += 5 {
		if err := os.WriteFile(path, []byte(full[:cut]), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := whole(t, path, 1); !r.Half {
			t.Fatalf("cut at %d: %+v, want that half a line follows", cut, r)
		}
		l := open(t, audit.Config{Path: path})
		write(t, l, "/c")
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		whole(t, path, 3)
		lines := strings.Split(text(t, path), "\n")
		if !strings.Contains(lines[1], `"event":"recovered"`) || !strings.Contains(lines[1], `a crash had cut this line off: {`) || !strings.Contains(lines[2], `"path":"/c"`) {
			t.Fatalf("cut at %d:\n%s", cut, text(t, path))
		}
	}
}

// A second crash, in the middle of the line that tells of the first one.
func TestLog_aCrashWhileItRecoversLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, audit.Config{Path: path})
	write(t, l, "/a")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	half := text(t, path) + `{"seq":2,"time":"2026`
	if err := os.WriteFile(path, []byte(half), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, audit.Config{Path: path}).Close(); err != nil {
		t.Fatal(err)
	}
	recovered := text(t, path)
	if err := os.WriteFile(path, []byte(recovered[:len(recovered)-10]), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, audit.Config{Path: path}).Close(); err != nil {
		t.Fatal(err)
	}
	whole(t, path, 2)
	if got := text(t, path); !strings.Contains(got, `2026`) || strings.Count(got, "cut this line off") != 2 {
		t.Errorf("%s", got)
	}
}

func TestLog_whatItCouldNotWriteComesFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	var said strings.Builder
	l := open(t, audit.Config{Path: path, Logger: hclog.New(&hclog.LoggerOptions{Output: &said})})
	write(t, l, "/before")
	file := l.Break()
	file.Err, file.Half = errors.New("no space left on device"), 17
	for _, p := range []string{"/changed/1", "/changed/2"} {
		if err := l.Write(entry(p), true); err == nil || !strings.Contains(err.Error(), "no space left") {
			t.Fatalf("%s: %v", p, err)
		}
	}
	if err := l.Write(entry("/denied"), false); err == nil {
		t.Fatal("a denied call was answered without its line")
	}
	if err := l.Ready(); err == nil {
		t.Fatal("it says that it is ready")
	}
	file.Err = nil
	if err := l.Ready(); err != nil {
		t.Fatal(err)
	}
	write(t, l, "/after")
	whole(t, path, 5)
	var paths []string
	for _, line := range strings.Split(strings.TrimSpace(text(t, path)), "\n") {
		_, p, _ := strings.Cut(line, `"path":"`)
		p, _, _ = strings.Cut(p, `"`)
		paths = append(paths, p)
	}
	if got := strings.Join(paths, " "); got != "/before /changed/1 /changed/2  /after" || !strings.Contains(text(t, path), "could not be written before this line: write a line: no space left") {
		t.Errorf("lines %q\n%s", got, text(t, path))
	}
	if s := said.String(); strings.Count(s, "cannot be written") != 1 || strings.Count(s, "can be written again") != 1 {
		t.Errorf("the log says: %s", s)
	}
}

func TestLog_movedAwayItGoesOnInANewFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, audit.Config{Path: path})
	write(t, l, "/a", "/b")
	away := path + ".000000000002"
	if err := os.Rename(path, away); err != nil {
		t.Fatal(err)
	}
	write(t, l, "/c")
	whole(t, path, 4)
	if got := text(t, path); !strings.Contains(got, `"seq":3`) || strings.Contains(got, `"seq":2`) || !strings.Contains(got, "moved the file away, or removed it, behind line 2") {
		t.Errorf("%s", got)
	}
}

func TestLog_concurrentLinesMakeOneChain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, audit.Config{Path: path, MaxSize: 4000, Keep: 1000})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 20 {
				if err := l.Write(entry(fmt.Sprintf("/%d/%d", i, j)), j%2 == 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	whole(t, path, 160)
}

func TestLog_longTextsAreCut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, audit.Config{Path: path})
	write(t, l, "/"+strings.Repeat("x", 30000))
	if n := len(text(t, path)); n > 2000 {
		t.Errorf("a line of %d bytes", n)
	}
	whole(t, path, 1)
}

func TestOpen_whereItCannotBeWrittenSaysWhatToDo(t *testing.T) {
	dir := t.TempDir()
	taken := filepath.Join(dir, "audit.log")
	open(t, audit.Config{Path: taken})
	if _, err := audit.Open(audit.Config{Path: taken}); err == nil || !strings.Contains(err.Error(), "another kurad writes it") {
		t.Errorf("%v", err)
	}
	if _, err := audit.Open(audit.Config{Path: dir}); err == nil || !strings.Contains(err.Error(), "--audit-log") || !strings.Contains(err.Error(), dir) {
		t.Errorf("%v", err)
	}
}

func TestVerify_namesTheFirstLineThatIsWrong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, audit.Config{Path: path})
	write(t, l, "/1", "/2", "/3", "/4", "/5")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	good := text(t, path)
	lines := strings.SplitAfter(strings.TrimSuffix(good, "\n"), "\n")
	lines[4] += "\n"
	join := func(order ...int) string {
		var b strings.Builder
		for _, i := range order {
			b.WriteString(lines[i-1])
		}
		return b.String()
	}
	for name, c := range map[string]struct {
		text string
		line int
		why  string
	}{
		"changed":              {strings.Replace(good, `"path":"/3"`, `"path":"/x"`, 1), 3, "was changed after it was written"},
		"a hash made anew":     {strings.Replace(good, lines[2][len(lines[2])-20:], strings.Repeat("0", 17)+"\"}\n", 1), 3, "was changed after it was written"},
		"taken out":            {join(1, 2, 4, 5), 3, "line 4 of the chain, where line 3 must be"},
		"the first two gone":   {join(3, 4, 5), 0, ""}, // as after a rotation; the report says so
		"swapped":              {join(1, 3, 2, 4, 5), 2, "where line 2 must be"},
		"said twice":           {join(1, 2, 2, 3, 4, 5), 3, "where line 3 must be"},
		"something else":       {join(1, 2) + "hello\n" + join(3, 4, 5), 3, "no line of an audit log"},
		"an empty line":        {join(1) + "\n" + join(2, 3), 2, "no line of an audit log"},
		"begun anew":           {join(1, 2) + join(1), 3, "where line 3 must be"},
		"a line without a end": {good + `{"seq":6`, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := audit.VerifyChain(path)
			if c.line == 0 {
				if err != nil || (r.First == 1) == strings.Contains(name, "gone") {
					t.Errorf("%+v, %v", r, err)
				}
				return
			}
			fault, ok := errors.AsType[*audit.Fault](err)
			if !ok || fault.Line != c.line || fault.File != path || !strings.Contains(fault.Why, c.why) {
				t.Errorf("got %v, want line %d: %s", err, c.line, c.why)
			}
		})
	}
}

// Whoever rewrites a line with a new hash must rewrite all that follow.
func TestVerify_aLineWrittenAnewBreaksTheChainBehindIt(t *testing.T) {
	dir := t.TempDir()
	path, forged := filepath.Join(dir, "audit.log"), filepath.Join(dir, "forged.log")
	l := open(t, audit.Config{Path: path})
	write(t, l, "/1", "/2")
	f := open(t, audit.Config{Path: forged})
	write(t, f, "/x")
	mixed := text(t, forged) + text(t, path)[strings.Index(text(t, path), "\n")+1:]
	if err := os.WriteFile(forged, []byte(mixed), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := audit.VerifyChain(forged); err == nil || !strings.Contains(err.Error(), "forged.log:2: line 2 of the chain does not follow") {
		t.Errorf("%v", err)
	}
}
