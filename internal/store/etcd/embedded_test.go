package etcd_test

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/etcd"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func embedded(t *testing.T, dir string) *etcd.Embedded {
	t.Helper()
	s, err := etcd.OpenEmbedded(etcd.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestEmbedded(t *testing.T) {
	conformance.Run(t, func(t *testing.T) kv.Store { return embedded(t, filepath.Join(t.TempDir(), "store")) })
}

func TestG1_writesSurviveCloseAndReopen(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := embedded(t, dir)
	var last int64
	for i := range 20 {
		last = mustPut(t, s, fmt.Sprintf("/k/%02d", i), fmt.Sprint(i))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = embedded(t, dir)
	page, err := s.List(t.Context(), "/k/", kv.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(page.Items) != 20 || page.Revision != last {
		t.Errorf("%d keys at revision %d, want 20 at %d", len(page.Items), page.Revision, last)
	}
	batches, err := s.Watch(t.Context(), "/k/", last)
	if err != nil {
		t.Fatal(err)
	}
	if b := <-batches; b.Revision != last {
		t.Errorf("a watch resumed over the restart begins with %+v, want revision %d", b, last)
	}
}

func TestG7_dataDirectoryIsForItsOwnerOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "store")
	s := embedded(t, dir)
	info, err := os.Stat(dir)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o700 {
		t.Errorf("mode %04o, want 0700", info.Mode().Perm())
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	_, err = etcd.OpenEmbedded(etcd.Options{Dir: dir})
	wantError(t, err, dir, "0750", "chmod 700")
}

func TestG7_dataDirectoryInUseIsRefusedAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := embedded(t, dir)
	_, err := etcd.OpenEmbedded(etcd.Options{Dir: dir})
	wantError(t, err, dir, "another process uses it")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	embedded(t, dir)
}

func TestG7_unusableDataDirectoryIsRefused(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := etcd.OpenEmbedded(etcd.Options{Dir: file})
	wantError(t, err, file, "not a directory")
	_, err = etcd.OpenEmbedded(etcd.Options{})
	wantError(t, err, "no data directory")
}

func TestG7_corruptDataIsRefusedAtStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	s := embedded(t, dir)
	for i := range 50 {
		mustPut(t, s, fmt.Sprintf("/k/%d", i), strings.Repeat("x", 500))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wals, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(wals) == 0 {
		t.Fatalf("no write-ahead log: %v %v", wals, err)
	}
	flip(t, wals[0], "xxxxxxxx")
	_, err = etcd.OpenEmbedded(etcd.Options{Dir: dir})
	wantError(t, err, dir, "crc mismatch")
}

// flip changes the first part of a file that reads like this.
func flip(t *testing.T, name, part string) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(b), part, strings.ToUpper(part), 1)
	if changed == string(b) {
		t.Fatalf("%s holds no %q", name, part)
	}
	if err := os.WriteFile(name, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestG7_storeListensNowhere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), strings.Repeat("a-long-name/", 12), "store") // too long for a unix socket
	s := embedded(t, dir)
	mustPut(t, s, "/a", "x")
	for _, port := range []string{"2379", "2380"} {
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			t.Errorf("port %s is taken: %v", port, err)
			continue
		}
		l.Close()
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type()&os.ModeSocket != 0 {
			t.Errorf("there is a socket: %s", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestG7_fullStoreRefusesWritesUntilThereIsRoom(t *testing.T) {
	s, err := etcd.OpenEmbedded(etcd.Options{Dir: filepath.Join(t.TempDir(), "store"), Quota: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var last int64
	for i := 0; ; i++ {
		revision, err := s.Txn(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("/a", make([]byte, 256<<10))}})
		if err != nil {
			if err != kv.ErrNoSpace {
				t.Fatalf("write %d: %v, want ErrNoSpace", i, err)
			}
			break
		}
		if last = revision; i > 100 {
			t.Fatal("the quota is not kept")
		}
	}
	if h, err := s.Health(t.Context()); err != nil || !h.Full || !h.Refusing {
		t.Errorf("health = %+v, %v, want full", h, err)
	}
	if _, err := s.Get(t.Context(), "/a"); err != nil {
		t.Errorf("a full store does not read: %v", err)
	}
	if err := s.Compact(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	if err := s.Care(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustPut(t, s, "/b", "x")
	if h, err := s.Health(t.Context()); err != nil || h.Full {
		t.Errorf("health = %+v, %v, want room again", h, err)
	}
}

func TestEmbedded_logsNothingThatAlarms(t *testing.T) {
	var out strings.Builder
	log := hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Info})
	dir := filepath.Join(t.TempDir(), "store")
	for range 2 {
		s, err := etcd.OpenEmbedded(etcd.Options{Dir: dir, Logger: log})
		if err != nil {
			t.Fatal(err)
		}
		batches, err := s.Watch(t.Context(), "/", 0)
		if err != nil {
			t.Fatal(err)
		}
		mustPut(t, s, "/a", "x")
		<-batches
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if out.Len() > 0 {
		t.Errorf("start, one write and close log:\n%s", out.String())
	}
}

var mustPut, wantError = conformance.Put, conformance.WantError

// Old revisions are forgotten by size as well as by time; those of the last minute are kept.
func TestG12_compactionFollowsTheSizeAsWellAsTheClock(t *testing.T) {
	s, err := etcd.OpenEmbedded(etcd.Options{Dir: filepath.Join(t.TempDir(), "store"), Quota: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Now()
	look := func(after time.Duration) {
		t.Helper()
		if err := s.Look(t.Context(), now.Add(after)); err != nil {
			t.Fatal(err)
		}
	}
	at := func(revision int64) error {
		_, err := s.List(t.Context(), "/", kv.ListOptions{Revision: revision})
		return err
	}
	write := func() (last int64) {
		for range 12 {
			last = mustPut(t, s, "/a", strings.Repeat("x", 256<<10))
		}
		return last
	}
	first := mustPut(t, s, "/a", "x")
	look(0)
	look(2 * time.Minute)
	if err := at(first); err != nil {
		t.Fatalf("revisions are forgotten although nothing grows: %v", err)
	}
	last := write()
	look(2*time.Minute + 10*time.Second)
	look(2*time.Minute + 40*time.Second)
	young := write()
	for deadline := time.Now().Add(time.Minute); ; <-time.After(10 * time.Millisecond) {
		h, err := s.Health(t.Context())
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("%d bytes are in use (%v), after writes of 6 MiB", h.InUse, err)
		}
		if h.InUse > 6<<20 { // the file is written behind the log
			break
		}
	}
	look(3*time.Minute + 20*time.Second)
	if err := at(last - 1); !errors.Is(err, kv.ErrCompacted) {
		t.Errorf("a revision from more than a minute ago, in a store that grows: %v", err)
	}
	if err := at(young - 1); err != nil {
		t.Errorf("a revision of the last minute: %v", err)
	}
}
