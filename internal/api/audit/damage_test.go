package audit_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
)

func TestLog_aLastLineThatIsWrongBeginsTheChainAnewAndSaysSo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	l := open(t, audit.Config{Path: path})
	write(t, l, "/1", "/2")
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(text(t, path), "/2", "/x", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	l = open(t, audit.Config{Path: path})
	write(t, l, "/3")
	if got := text(t, path); !strings.Contains(got, `"event":"broken"`) || !strings.Contains(got, `"path":"/3"`) {
		t.Errorf("%s", got)
	}
	if _, err := audit.VerifyChain(path); err == nil || !strings.Contains(err.Error(), "audit.log:2: line 2 of the chain was changed") {
		t.Errorf("%v", err)
	}
}

// Closed files are named after their last line and removed in the order of their names:
// numbers must never begin anew.
func TestLog_aLastLineThatIsNoneDoesNotBeginTheNumbersAnew(t *testing.T) {
	for name, damage := range map[string]func(t *testing.T, path string) string{
		"behind good ones":    func(t *testing.T, path string) string { return text(t, path) + "hello\n" },
		"several":             func(t *testing.T, path string) string { return text(t, path) + "hello\n\n{}\n" },
		"the only one":        func(*testing.T, string) string { return "hello\n" },
		"with another number": func(t *testing.T, path string) string { return text(t, path) + `{"seq":1}` + "\n" },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			cfg := audit.Config{Path: path, MaxSize: 1000, Keep: 3}
			l := open(t, cfg)
			for i := range 20 {
				write(t, l, fmt.Sprintf("/before/%d", i))
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			before, err := audit.Files(path)
			if err != nil || len(before) != 4 {
				t.Fatalf("%v, %v", before, err)
			}
			if err := os.WriteFile(path, []byte(damage(t, path)), 0o600); err != nil {
				t.Fatal(err)
			}
			l = open(t, cfg)
			for i := range 4 {
				write(t, l, fmt.Sprintf("/after/%d", i))
			}
			after, err := audit.Files(path)
			if err != nil || len(after) != 4 || !strings.Contains(text(t, after[3]), "/after/3") {
				t.Fatalf("%v, %v", after, err)
			}
			var all string
			for _, f := range after {
				all += text(t, f)
			}
			if !strings.Contains(all, `"event":"broken"`) {
				t.Errorf("the newest file was removed first:\n%s", all)
			}
			last := 0
			for _, number := range regexp.MustCompile(`(?m)^{"seq":([0-9]+),"time"`).FindAllStringSubmatch(all, -1) {
				if n, err := strconv.Atoi(number[1]); err != nil || n <= last {
					t.Errorf("line %d comes after line %d:\n%s", n, last, all)
				} else {
					last = n
				}
			}
		})
	}
}

// As logrotate does with copytruncate.
func TestLog_cutOffItGoesOnWithoutAHoleAndSaysSo(t *testing.T) {
	for name, keep := range map[string]int{"all": 0, "in the middle of a line": 10} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "audit.log")
			var said strings.Builder
			l := open(t, audit.Config{Path: path, Logger: hclog.New(&hclog.LoggerOptions{Output: &said})})
			write(t, l, "/a", "/b")
			copied := path + ".000000000002"
			if err := os.WriteFile(copied, []byte(text(t, path)), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path, int64(keep)); err != nil {
				t.Fatal(err)
			}
			write(t, l, "/c", "/d")
			whole(t, path, 5)
			lines := strings.Split(text(t, path), "\n")
			if len(lines) != 4 || !strings.Contains(lines[0], `"seq":3,`) || !strings.Contains(lines[0], `"event":"broken"`) || !strings.Contains(lines[0], "somebody cut the file off") || !strings.Contains(lines[1], `"path":"/c"`) {
				t.Errorf("%q", lines)
			}
			if strings.Count(said.String(), "cut off") != 1 {
				t.Errorf("the log says: %s", said.String())
			}
		})
	}
}
