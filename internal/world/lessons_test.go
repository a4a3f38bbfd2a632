package world_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The pages that say which test holds what are worth as much as the names on them.
func TestLessons_everyNamedTestExists(t *testing.T) {
	var tests strings.Builder // all test code, and the conformance suites with their names of subtests
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.IsDir() && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
				return filepath.SkipDir
			}
			return err
		}
		if strings.HasSuffix(path, "_test.go") || strings.Contains(path, "conformance") && strings.HasSuffix(path, ".go") {
			b, err := os.ReadFile(path)
			tests.Write(b)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	code := tests.String()
	named := regexp.MustCompile("`(Test\\w+)(?:/([^`]+))?`")
	for _, page := range []string{"LESSONS.md", "TRACK_RECORD.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		found := named.FindAllStringSubmatch(string(text), -1)
		if len(found) < 5 {
			t.Errorf("%s names %d tests", page, len(found))
		}
		for _, m := range found {
			if !strings.Contains(code, "func "+m[1]+"(") {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
			// A subtest's name has its spaces written as underscores.
			if sub := m[2]; sub != "" && !strings.Contains(code, sub) && !strings.Contains(code, strings.ReplaceAll(sub, "_", " ")) {
				t.Errorf("%s names the subtest %s of %s, which does not exist", page, sub, m[1])
			}
		}
	}
}
