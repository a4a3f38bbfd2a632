package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

func TestG7_snapshotSavedVerifiedAndRestoredOnAnotherMachine(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	p := startInProcess(t, o)
	declareAcme(t, p.client)
	file := filepath.Join(t.TempDir(), "kura.snapshot")
	ok(t, "snapshot", "save", "--data-dir", o.dataDir, "--output", file)
	if stat, err := os.Stat(file); err != nil || stat.Mode().Perm() != 0o600 {
		t.Errorf("the file: %v, %v; want mode 0600", stat, err)
	}
	piped := ok(t, "snapshot", "save", "--data-dir", o.dataDir, "--output", "-")
	if !strings.HasPrefix(piped, `{"format":"kura-snapshot"`) {
		t.Errorf("on standard output: %.100s", piped)
	}
	listing := ok(t, "snapshot", "verify", file)
	for _, want := range []string{"staging", "intent", "account", "token"} {
		if !strings.Contains(listing, want) {
			t.Errorf("the listing does not say %q:\n%s", want, listing)
		}
	}
	for _, never := range []string{"acme", "kura.test", "localhost/cache"} {
		if strings.Contains(listing, never) {
			t.Errorf("the listing holds what is stored (%q):\n%s", never, listing)
		}
	}
	refused(t, []string{"snapshot", "restore", file, "--environment", "staging", "--data-dir", o.dataDir}, "another process uses it")
	token, err := os.ReadFile(filepath.Join(o.dataDir, tokenFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.end(); err != nil {
		t.Fatal(err)
	}

	there := optionsFor(t)
	refused(t, []string{"snapshot", "restore", file, "--data-dir", there.dataDir}, "--environment")
	refused(t, []string{"snapshot", "restore", file, "--environment", "canary", "--data-dir", there.dataDir}, `"staging"`, `"canary"`)
	said := ok(t, "snapshot", "restore", file, "--environment", "staging", "--data-dir", there.dataDir)
	if !strings.Contains(said, "next: start the daemon") || !strings.Contains(said, there.dataDir) {
		t.Errorf("it does not say what comes next: %s", said)
	}
	refused(t, []string{"snapshot", "restore", file, "--environment", "staging", "--data-dir", there.dataDir}, "holds records of it already")
	if err := os.WriteFile(filepath.Join(there.dataDir, tokenFile), token, 0o600); err != nil {
		t.Fatal(err)
	}
	restored := startInProcess(t, there)
	if v, err := restored.client.GetServer(t.Context(), acme, api.GetOptions{}); err != nil || v.Intent.ImageTag != "v1" {
		t.Errorf("the restored server: %+v, %v", v, err)
	}
	if err := restored.end(); err != nil {
		t.Error(err)
	}
}

func TestG7_snapshotThatIsDamagedIsRefusedAndLeavesNothing(t *testing.T) {
	noEnvironment(t)
	file, dir := filepath.Join(t.TempDir(), "kura.snapshot"), filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(file, []byte(`{"format":"kura-snapshot","version":1,"environment":"staging"}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused(t, []string{"snapshot", "verify", file}, file, "before its checksum", "another copy")
	refused(t, []string{"snapshot", "restore", file, "--environment", "staging", "--data-dir", dir}, file, "before its checksum")
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("a refused snapshot made the data directory: %v", err)
	}
}

func TestStoreFlags_thatMeanNothingAreRefused(t *testing.T) {
	noEnvironment(t)
	refused(t, []string{"serve", "--environment", "staging", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--store-ca", "x"}, "--store-ca", "--store-endpoints")
	refused(t, []string{"serve", "--environment", "staging", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0", "--store-endpoints", "etcd:2379"}, `"etcd:2379"`)
}
