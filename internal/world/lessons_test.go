package world_test

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// tree is what people wrote in this repository, by path: no modules' sums and no recorded data.
func tree(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name != root && strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci" || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || !slices.Contains([]string{".go", ".md", ".tmpl", ".tf", ".yml", ".sh", ""}, filepath.Ext(name)):
			return nil
		}
		text, err := os.ReadFile(name)
		rel, _ := filepath.Rel(root, name)
		files[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The pages that say which test holds what, the doc.go of packages among them, are worth as much
// as the names on them.
func TestLessons_everyNamedTestExists(t *testing.T) {
	files := tree(t)
	var tests strings.Builder // all test code, and the conformance suites with their names of subtests
	for name, text := range files {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "conformance") && strings.HasSuffix(name, ".go") {
			tests.WriteString(text)
		}
	}
	code := tests.String()
	named := regexp.MustCompile("`(Test\\w+)(?:/([^`]+))?`")
	for _, page := range []string{"docs/design/lessons.md", "internal/world/TRACK_RECORD.md"} {
		found := named.FindAllStringSubmatch(files[page], -1)
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
	for name, text := range files {
		if path.Base(name) != "doc.go" {
			continue
		}
		for _, test := range regexp.MustCompile(`\bTest\w+`).FindAllString(text, -1) {
			if !strings.Contains(code, "func "+test) { // or the tests whose names begin so
				t.Errorf("%s names %s, which does not exist", name, test)
			}
		}
	}
}

// An id says as much as docs/design explains of it, and a rule that is explained and built is
// one that something names.
func TestDesign_explainsEveryIdAndNamesNothingThatIsNotThere(t *testing.T) {
	files := tree(t)
	explained := map[string]bool{} // true: it is not built yet
	entry := regexp.MustCompile(`(?m)^(?:- |\| )\*\*([A-Z]\d+)\*\*.*$`)
	var pages []string
	for name, text := range files {
		if path.Dir(name) != "docs/design" {
			continue
		}
		pages = append(pages, name)
		for _, m := range entry.FindAllStringSubmatch(text, -1) {
			if _, twice := explained[m[1]]; twice {
				t.Errorf("%s explains %s a second time", name, m[1])
			}
			explained[m[1]] = strings.Contains(m[0], "*Not built yet")
		}
	}
	if len(pages) < 3 || len(explained) < 100 {
		t.Fatalf("docs/design has %d pages that explain %d ids", len(pages), len(explained))
	}

	id := regexp.MustCompile(`\b[HPRKCSDGL][0-9]{1,2}\b`)
	words := strings.NewReplacer("Test", " ", "_", " ") // of a test's name
	named := map[string]bool{}
	for name, text := range files {
		if slices.Contains(pages, name) {
			continue
		}
		for _, rule := range id.FindAllString(words.Replace(text), -1) {
			if _, ok := explained[rule]; !ok {
				t.Errorf("%s speaks of %s, which docs/design does not explain", name, rule)
			}
			named[rule] = true
		}
	}
	for rule, later := range explained {
		if !later && !named[rule] && rule[0] != 'L' {
			t.Errorf("docs/design explains %s as something that is built, and nothing names it", rule)
		}
	}

	inCode := regexp.MustCompile("`([\\w./-]+\\.(?:go|md|tmpl))`")
	for _, page := range append(pages, "CONTRIBUTING.md", "README.md") {
		for _, m := range inCode.FindAllStringSubmatch(files[page], -1) {
			if _, ok := files[m[1]]; strings.Contains(m[1], "/") && !ok {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
}
