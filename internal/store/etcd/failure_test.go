package etcd

import (
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/zap"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func TestG7_storeThatStopsSaysSoAndEndsEverything(t *testing.T) {
	s, err := OpenEmbedded(Options{Dir: filepath.Join(t.TempDir(), "store")})
	if err != nil {
		t.Fatal(err)
	}
	batches, err := s.Watch(t.Context(), "/", 0)
	if err != nil {
		t.Fatal(err)
	}
	s.etcd.Server.HardStop()
	<-s.Failed()
	if s.Err() == nil {
		t.Error("it does not say why")
	}
	for b := range batches {
		t.Errorf("its end shows to a watch as %+v", b)
	}
	_, getErr := s.Get(t.Context(), "/a")
	_, listErr := s.List(t.Context(), "/", kv.ListOptions{})
	_, txnErr := s.Txn(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("/a", nil)}})
	_, watchErr := s.Watch(t.Context(), "/", 0)
	for call, err := range map[string]error{"get": getErr, "list": listErr, "txn": txnErr, "watch": watchErr} {
		if !errors.Is(err, kv.ErrClosed) || !errors.Is(err, s.Err()) {
			t.Errorf("%s: %v, want ErrClosed because %v", call, err, s.Err())
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// Where etcd would end the process the store fails instead, and what called never goes
// on to do what it could not.
func TestG7_fatalErrorOfEtcdFailsTheStore(t *testing.T) {
	s, err := OpenEmbedded(Options{Dir: filepath.Join(t.TempDir(), "store")})
	if err != nil {
		t.Fatal(err)
	}
	log := newEtcdLog(hclog.NewNullLogger(), &s.closing, s.fail).With(zap.String("part", "wal"))
	cause := errors.New("no space left on device")
	ended := make(chan bool)
	go func() {
		wentOn := false
		defer func() { ended <- wentOn }()
		log.Fatal("failed to save", zap.Error(cause)) //nolint:revive // that it does not return is what is tested
		wentOn = true
	}()
	if <-ended {
		t.Error("the caller went on after a fatal error")
	}
	<-s.Failed()
	if !errors.Is(s.Err(), cause) {
		t.Errorf("err = %v, want one that wraps %v", s.Err(), cause)
	}
	if err := s.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestEtcdLog_levelsAreOurs(t *testing.T) {
	var closing atomic.Bool
	var out strings.Builder
	log := newEtcdLog(hclog.New(&hclog.LoggerOptions{Output: &out, Level: hclog.Debug, DisableTime: true}), &closing, func(error) {})
	log.Info("started", zap.Int("members", 1))
	log.Warn("slow fdatasync")
	log.Warn("leader failed to send out heartbeat on time; took too long, leader is overloaded likely from slow disk")
	log.Error("broken", zap.Error(errors.New("cause")))
	closing.Store(true)
	log.Error("server stopped")
	want := `[DEBUG] started: members=1
[WARN]  slow fdatasync
[DEBUG] leader failed to send out heartbeat on time; took too long, leader is overloaded likely from slow disk
[ERROR] broken: error=cause
[DEBUG] server stopped
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("logged (-want +got):\n%s", diff)
	}
}
