//go:build real

package etcd_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/store/etcd"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
	worldetcd "github.com/kurafleet/terraform-provider-kura/internal/world/etcd"
	"github.com/kurafleet/terraform-provider-kura/internal/world/stopwatch"
)

// soon is how long anything may take while a member is lost, on a machine that keeps up.
const soon = 10 * time.Second

// busy writes, reads, watches and leads by turns, and fails where one of them takes long.
type busy struct {
	t       *testing.T
	s       *etcd.Cluster
	watch   *stopwatch.Stopwatch
	batches <-chan kv.Batch
	lead    kv.Leadership
	n       int
}

func keepBusy(t *testing.T, s *etcd.Cluster) *busy {
	t.Helper()
	batches, err := s.Watch(t.Context(), "/busy/", 0)
	if err != nil {
		t.Fatal(err)
	}
	lead, err := s.Campaign(t.Context(), "/leader/", []byte("me"))
	if err != nil {
		t.Fatal(err)
	}
	return &busy{t: t, s: s, watch: stopwatch.Start(t), batches: batches, lead: lead}
}

// round returns how long its slowest part took. A write whose outcome is unknown is
// written again, as a client of the API does. Whoever lost the lead campaigns again: an
// etcd leader that was stopped may, when it goes on, end leases that others have renewed.
func (b *busy) round() (slowest time.Duration) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), 3*time.Minute)
	defer cancel()
	b.n++
	key, value := fmt.Sprintf("/busy/%d", b.n%5), fmt.Sprint(b.n)
	start := time.Now()
	var revision int64
	for {
		var err error
		if revision, err = b.s.Txn(ctx, kv.Txn{If: []kv.Compare{b.lead.Guard()}, Then: []kv.Op{kv.Put(key, []byte(value))}}); err == nil {
			break
		} else if ctx.Err() != nil {
			b.t.Fatalf("write %d: %v", b.n, err)
		}
		if kv.IsConflict(err) {
			b.leadAgain(ctx)
		}
	}
	wrote := b.watch.Since(start)
	kv, err := b.s.Get(ctx, key)
	if err != nil || string(kv.Value) != value {
		b.t.Fatalf("read %d: %q %v", b.n, kv.Value, err)
	}
	read := b.watch.Since(start) - wrote
	for seen := int64(0); seen < revision; {
		select {
		case batch, ok := <-b.batches:
			if !ok || batch.Err != nil {
				b.t.Fatalf("the watch ended: %v", batch.Err)
			}
			seen = batch.Revision
		case <-ctx.Done():
			b.t.Fatalf("the watch does not show write %d", b.n)
		}
	}
	if !b.lead.Valid() {
		b.leadAgain(ctx)
	}
	watched := b.watch.Since(start) - wrote - read
	if slowest = max(wrote, read, watched); slowest > time.Second {
		b.t.Logf("round %d: wrote in %s, read in %s, watched in %s", b.n, wrote, read, watched)
	}
	return slowest
}

func (b *busy) leadAgain(ctx context.Context) {
	b.t.Helper()
	b.t.Logf("round %d: the lead was lost", b.n)
	lead, err := b.s.Campaign(ctx, "/leader/", []byte("me"))
	if err != nil {
		b.t.Fatalf("campaign in round %d: %v", b.n, err)
	}
	b.lead = lead
}

// forAWhile runs rounds until enough time has passed for a lost lease to show.
func (b *busy) forAWhile() {
	b.t.Helper()
	slowest := time.Duration(0)
	for end := time.Now().Add(etcd.DefaultLeaseTTL + 2*time.Second); time.Now().Before(end); {
		slowest = max(slowest, b.round())
	}
	b.t.Logf("%d rounds, the slowest call took %s", b.n, slowest)
	if slowest > soon {
		b.t.Errorf("a call took %s, want at most %s", slowest, soon)
	}
}

func TestG2_oneEtcdMemberKilledStopsNothing(t *testing.T) {
	c := worldetcd.Start(t, worldetcd.Options{Members: 3})
	b := keepBusy(t, connect(t, c))
	b.round()
	for _, m := range c.Members {
		m.Kill()
		b.forAWhile()
		m.Restart()
	}
}

func TestG2_oneEtcdMemberStoppedStopsNothing(t *testing.T) {
	c := worldetcd.Start(t, worldetcd.Options{Members: 3, TLS: true})
	b := keepBusy(t, connect(t, c))
	b.round()
	for _, m := range c.Members {
		m.Stop()
		b.forAWhile()
		m.Continue()
		m.WaitReady()
	}
}

func TestG2_aStoreThatDoesNotAnswerIsNoFailure(t *testing.T) {
	c := worldetcd.Start(t, worldetcd.Options{})
	s := connect(t, c)
	mustPut(t, s, "/a", "x")
	c.Members[0].Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.Get(ctx, "/a"); err == nil {
		t.Error("a read of a store that is gone is answered")
	}
	if _, err := s.Txn(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("/a", nil)}}); err == nil || kv.IsConflict(err) {
		t.Errorf("a write to a store that is gone: %v", err)
	}
	select {
	case <-s.Failed():
		t.Error("the store says that it has stopped")
	default:
	}
	c.Members[0].Restart()
	if _, err := s.Get(t.Context(), "/a"); err != nil {
		t.Errorf("it does not answer again: %v", err)
	}
}

func TestG2_aLeaderThatVanishesIsReplacedWhenItsLeaseRunsOut(t *testing.T) {
	c := worldetcd.Start(t, worldetcd.Options{Members: 3})
	first, second := connect(t, c), connect(t, c)
	l, err := first.Campaign(t.Context(), "/leader/", []byte("a"))
	if err != nil {
		t.Fatal(err)
	}
	watch, start := stopwatch.Start(t), time.Now()
	if err := first.Close(); err != nil { // without resigning
		t.Fatal(err)
	}
	if l.Valid() {
		t.Error("who is gone leads")
	}
	next, err := second.Campaign(t.Context(), "/leader/", []byte("b"))
	if err != nil {
		t.Fatal(err)
	}
	took := watch.Since(start)
	t.Logf("the next one leads after %s", took)
	if took > soon {
		t.Errorf("the next one leads after %s, want at most %s", took, soon)
	}
	if _, err := second.Txn(t.Context(), kv.Txn{If: []kv.Compare{l.Guard()}, Then: []kv.Op{kv.Put("/x", nil)}}); !kv.IsConflict(err) {
		t.Errorf("a write of the one that vanished: %v, want a conflict", err)
	}
	if !next.Valid() {
		t.Error("the next one does not lead")
	}
}

// leaderEndpoint makes the test binary a process that leads, says so, and then says for
// each line that it reads whether it still does.
const leaderEndpoint = "KURA_STORE_TEST_LEADER_ENDPOINT"

func init() {
	if endpoint := os.Getenv(leaderEndpoint); endpoint != "" {
		child = func() { leadForEver(endpoint) }
	}
}

func leadForEver(endpoint string) {
	s, err := etcd.OpenCluster(etcd.ClusterOptions{Endpoints: []string{endpoint}})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	l, err := s.Campaign(context.Background(), "/leader/", []byte("child"))
	fmt.Println("leads", err)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		valid := l.Valid()
		_, err := s.Txn(context.Background(), kv.Txn{If: []kv.Compare{l.Guard()}, Then: []kv.Op{kv.Put("/effect", nil)}})
		fmt.Println(valid, kv.IsConflict(err))
	}
}

func TestG2_aLeaderThatWasStoppedPastItsLeaseKnowsAtOnce(t *testing.T) {
	c := worldetcd.Start(t, worldetcd.Options{})
	s := connect(t, c)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), leaderEndpoint+"="+c.Members[0].Endpoint)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(out)
	says := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the leader says %q, want %q", lines.Text(), want)
		}
	}
	signal := func(sig syscall.Signal) {
		t.Helper()
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	ask := func() {
		t.Helper()
		if _, err := io.WriteString(in, "?\n"); err != nil {
			t.Fatal(err)
		}
	}
	says("leads <nil>")
	ask()
	says("true false")
	signal(syscall.SIGSTOP)
	var state syscall.WaitStatus // a thread may run on for a moment
	if _, err := syscall.Wait4(cmd.Process.Pid, &state, syscall.WUNTRACED, nil); err != nil || !state.Stopped() {
		t.Fatalf("it is not stopped: %v", err)
	}
	ask() // is read before anything else when it goes on
	if _, err := s.Campaign(t.Context(), "/leader/", []byte("parent")); err != nil {
		t.Fatal(err)
	}
	signal(syscall.SIGCONT)
	says("false true")
}
