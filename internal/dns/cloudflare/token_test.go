package cloudflare

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestToken_isReadFromAFileOrTheEnvironmentAndNeverShows(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	t.Setenv("KURA_TEST_TOKEN", " abc ")
	for text, want := range map[string]string{"abc": "", "abc\n": "", "": "is empty", " \n": "is empty", "abc def": "more than a token", "a\x00b": "more than a token", strings.Repeat("x", 9000): "more than a token"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := source(file).read()
		switch {
		case want == "" && (err != nil || got == ""):
			t.Errorf("%.20q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "abc") || !strings.Contains(err.Error(), file)):
			t.Errorf("%q: got %v, want %q of %s, without the token", text, err, want, file)
		}
	}
	token, err := source("env:KURA_TEST_TOKEN").read()
	if err != nil || token != "abc" {
		t.Errorf("of the environment: %v", err)
	}
	if _, err := source("env:KURA_TEST_NONE").read(); err == nil || !strings.Contains(err.Error(), "KURA_TEST_NONE is empty") {
		t.Errorf("a variable that is not there: %v", err)
	}
	encoded, err := json.Marshal(map[string]any{"token": token, "in": struct{ T secret }{token}})
	if err != nil {
		t.Fatal(err)
	}
	if shown := fmt.Sprintf("%v %s %q %x %+v %#v %s", token, token, token, token, struct{ T secret }{token}, []secret{token}, encoded); strings.Contains(shown, "abc") || strings.Contains(shown, "616263") {
		t.Errorf("it shows: %s", shown)
	}
}
