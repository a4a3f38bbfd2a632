package main

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// files are those of a folder with the hashes of their contents.
func files(t *testing.T, dir string) map[string][32]byte {
	t.Helper()
	all := map[string][32]byte{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = sha256.Sum256(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestG7_anotherEnvironmentOnADataDirectoryIsRefused(t *testing.T) {
	noEnvironment(t)
	t.Cleanup(restoreLoggers)
	o := optionsFor(t)
	p := startInProcess(t, o)
	declareAcme(t, p.client)
	taken := filepath.Join(t.TempDir(), "kura.snapshot")
	ok(t, "snapshot", "save", "--data-dir", o.dataDir, "--output", taken)
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	other := optionsFor(t)
	other.environment = "production"
	elsewhere := startInProcess(t, other)
	foreign := filepath.Join(t.TempDir(), "kura.snapshot")
	ok(t, "snapshot", "save", "--data-dir", other.dataDir, "--output", foreign)
	if err := elsewhere.end(); err != nil {
		t.Fatal(err)
	}

	intruders := map[string][]string{
		"serve":               {"serve", "--listen", "127.0.0.1:0"},
		"serve with its etcd": {"serve", "--listen", "127.0.0.1:0", "--store-endpoints", "http://127.0.0.1:1"},
		"recover":             {"token", "recover"},
		"restore":             {"snapshot", "restore", foreign},
	}
	before := files(t, o.dataDir)
	for name, args := range intruders {
		refused(t, append(args, "--environment", "production", "--data-dir", o.dataDir), `this store holds environment "staging"`, o.dataDir)
		if diff := cmp.Diff(before, files(t, o.dataDir)); diff != "" {
			t.Errorf("%s changed the data directory (-before +after):\n%s", name, diff)
		}
	}

	// A data directory of an earlier kurad bears no mark: its keys say whose it is.
	mark, token := filepath.Join(o.dataDir, environmentFile), filepath.Join(o.dataDir, tokenFile)
	if err := os.Remove(mark); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"serve", "recover", "restore"} {
		refused(t, append(intruders[name], "--environment", "production", "--data-dir", o.dataDir), `this store holds environment "staging"`)
	}
	if now, err := os.ReadFile(token); err != nil || sha256.Sum256(now) != before[token] {
		t.Errorf("the token was changed (%v)", err)
	}
	p = startInProcess(t, o)
	if there, err := store.Environments(t.Context(), p.store); err != nil || !cmp.Equal(there, []string{"staging"}) {
		t.Errorf("the store holds %q, %v", there, err)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(mark); err != nil || string(text) != "staging\n" {
		t.Errorf("the mark says %q, %v", text, err)
	}
}

// Where an earlier kurad let two environments in, each goes on with what it has until one
// of them is told to be the directory's.
func TestG7_twoEnvironmentsThatShareADataDirectoryAlreadyAreNotBothLockedOut(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	s, err := o.store.open(t.Context(), o.dataDir, "staging", hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	for _, environment := range []string{"production", "staging"} {
		if err := store.NewRecords(s, environment).Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := startInProcess(t, o).end(); err != nil {
		t.Fatal(err)
	}
	o.environment = "production"
	if d, err := newDaemon(t.Context(), o, hclog.NewNullLogger()); err == nil {
		d.close()
		t.Error("the other one was let in after that")
	}
}
