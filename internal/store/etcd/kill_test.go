package etcd_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/kurafleet/terraform-provider-kura/internal/store/etcd"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// writerDir makes the test binary the process that TestG1_acknowledgedWritesSurviveKill
// kills: it writes to the store in that directory for ever.
const writerDir = "KURA_STORE_TEST_WRITER_DIR"

// child is what the test binary does instead of testing, where a test started it.
var child func()

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		child = func() { writeForEver(dir) }
	}
	if child != nil {
		child()
		return
	}
	goleak.VerifyTestMain(m)
}

// writeForEver prints each key after its write was acknowledged.
func writeForEver(dir string) {
	s, err := etcd.OpenEmbedded(etcd.Options{Dir: dir})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	for w := range 4 {
		group.Go(func() {
			for i := 0; ; i++ {
				key := fmt.Sprintf("/%d/%d-%06d", os.Getpid(), w, i)
				_, err := s.Txn(context.Background(), kv.Txn{Then: []kv.Op{kv.Put(key, []byte(key)), kv.Put(key+"/twin", nil)}})
				mu.Lock()
				if err != nil {
					fmt.Println("error", err)
				} else {
					fmt.Println("acknowledged", key)
				}
				mu.Unlock()
			}
		})
	}
	group.Wait()
}

func TestG1_acknowledgedWritesSurviveKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "store")
	var acknowledged []string
	for round := range 3 {
		keys := killAfter(t, dir, 150*(round+1))
		acknowledged = append(acknowledged, keys...)
	}
	s := embedded(t, dir)
	page, err := s.List(t.Context(), "/", kv.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string]bool{}
	for _, item := range page.Items {
		stored[item.Key] = true
	}
	for _, key := range acknowledged {
		if !stored[key] {
			t.Errorf("%s was acknowledged and is lost", key)
		}
	}
	for key := range stored {
		if !stored[strings.TrimSuffix(key, "/twin")] || !stored[strings.TrimSuffix(key, "/twin")+"/twin"] {
			t.Errorf("half of a transaction is stored: %s", key)
		}
	}
	t.Logf("%d acknowledged writes over 3 kills, %d keys stored", len(acknowledged), len(stored))
}

// killAfter starts a writer, kills it once n writes were acknowledged, and returns all
// that it has acknowledged.
func killAfter(t *testing.T, dir string, n int) []string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), writerDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var keys []string
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		if word != "acknowledged" {
			t.Errorf("writer: %s", lines.Text())
			break
		}
		if keys = append(keys, rest); len(keys) == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the writer ended by itself")
	}
	if len(keys) < n {
		t.Fatalf("the writer acknowledged %d writes and ended", len(keys))
	}
	return keys
}
