package etcd_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/store/etcd"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// written makes a store with a hundred keys, closes it, and returns its directory and its
// write-ahead log.
func written(t *testing.T) (dir, log string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	s := embedded(t, dir)
	for i := range 100 {
		mustPut(t, s, fmt.Sprintf("/k/%02d", i), strings.Repeat("x", 500))
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	logs, err := filepath.Glob(filepath.Join(dir, "member", "wal", "*.wal"))
	if err != nil || len(logs) != 1 {
		t.Fatalf("write-ahead logs: %v %v", logs, err)
	}
	return dir, logs[0]
}

func TestG7_damagedFilesAreRefusedAtOnce(t *testing.T) {
	fill := func(b []byte, with byte) { copy(b, bytes.Repeat([]byte{with}, len(b))) }
	tests := map[string]func(b []byte) []byte{
		"a log that ends in the middle":     func(b []byte) []byte { return b[:20000] },
		"a log that ends within a word":     func(b []byte) []byte { return b[:20003] },
		"a log whose end is zeroes":         func(b []byte) []byte { fill(b[20000:], 0); return b },
		"a log with zeroes in the middle":   func(b []byte) []byte { fill(b[15000:16000], 0); return b },
		"a log with other bytes within":     func(b []byte) []byte { fill(b[15000:16000], 0xff); return b },
		"a log whose beginning is garbled":  func(b []byte) []byte { fill(b[:64], 0x5a); return b },
		"a log whose first length is wrong": func(b []byte) []byte { b[7] ^= 1; return b },
		"an empty log":                      func([]byte) []byte { return []byte{} },
		"no log":                            func([]byte) []byte { return nil },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			dir, log := written(t)
			rewrite(t, log, damage)
			refusedAtOnce(t, dir)
		})
	}
	t.Run("a database that is garbled", func(t *testing.T) {
		dir, _ := written(t)
		rewrite(t, filepath.Join(dir, "member", "snap", "db"), func(b []byte) []byte { fill(b[:16<<10], 0x5a); return b })
		refusedAtOnce(t, dir)
	})
}

func refusedAtOnce(t *testing.T, dir string) {
	t.Helper()
	start := time.Now()
	_, err := etcd.OpenEmbedded(etcd.Options{Dir: dir})
	wantError(t, err, dir, "damaged", "kurad snapshot restore")
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s to say so", took)
	}
}

// A loss of power may cut the last write short, which nobody was told of yet.
func TestG1_logWithATornEndOpensWithEverythingAcknowledged(t *testing.T) {
	dir, log := written(t)
	rewrite(t, log, func(b []byte) []byte {
		end := (lastByte(b) + 8) &^ 7
		binary.LittleEndian.PutUint64(b[end:], 4000) // the length of a record most of which did not come
		fill := b[end+8 : end+100]
		copy(fill, bytes.Repeat([]byte{1}, len(fill)))
		return b
	})
	s := embedded(t, dir)
	page, err := s.List(t.Context(), "/k/", kv.ListOptions{})
	if err != nil || len(page.Items) != 100 {
		t.Fatalf("%d keys, %v; want all 100", len(page.Items), err)
	}
	mustPut(t, s, "/k/new", "x")
}

// lastByte is the place behind the last byte that was written: the file is made longer
// than it needs to be, with zeroes.
func lastByte(b []byte) int { return len(bytes.TrimRight(b, "\x00")) }

// rewrite changes a file; nil removes it.
func rewrite(t *testing.T, name string, change func([]byte) []byte) {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if b = change(b); b == nil {
		err = os.Remove(name)
	} else {
		err = os.WriteFile(name, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
