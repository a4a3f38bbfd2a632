package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// stranger is a process of the host that has ports of the range.
type stranger struct {
	mu  sync.Mutex
	has map[int]bool
}

func (s *stranger) take(ports ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.has = map[int]bool{}
	for _, p := range ports {
		s.has[p] = true
	}
}

// on makes the engine refuse starts as it does where a process has the port.
func (s *stranger) on(w *world) {
	w.engine().refuse = func(key fleet.ServerKey, task fleet.Task, _ *fleet.ServiceDocument) *fleet.Outcome {
		g, err := w.records.Gather(context.Background(), key)
		port := g.Intent.Ports["cache/http"]
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil || task.Kind != fleet.TaskStart || !s.has[port] {
			return nil
		}
		o := refused(fleet.ReasonPortTaken)
		o.Port, o.Message = port, fmt.Sprintf("host port %d/tcp is already in use by process 7 (nginx)", port)
		return o
	}
}

// next offers the port after the one that is taken, as long as that is below the limit.
func next(limit int) func(context.Context, fleet.Gathered, fleet.PortMove) (int, error) {
	return func(_ context.Context, _ fleet.Gathered, m fleet.PortMove) (int, error) {
		if m.From+1 >= limit {
			return 0, errors.New("no port is free")
		}
		return m.From + 1, nil
	}
}

func TestC12_aServerThatNeverServedGetsAnotherPortThanTheOneThatSomebodyHas(t *testing.T) {
	virtual(t, func(w *world) {
		var s stranger
		s.take(20001, 20002)
		s.on(w)
		w.declare("acme", "v1")
		k := w.start(options{newPort: next(20010)})
		defer k.stop()
		w.until("acme serves", time.Minute, func() bool { return w.converged("acme", "v1") })
		g := w.server("acme")
		if port := g.Intent.Ports["cache/http"]; port != 20003 || g.Intent.Generation != 1 || g.Latest.Status != fleet.DeploymentSucceeded {
			t.Errorf("port %d, generation %d, deployment %s", port, g.Intent.Generation, g.Latest.Status)
		}
		w.one("acme")
		if n := w.events("acme", "PortChanged"); n != 2 || w.events("acme", "Failed") != 0 {
			t.Errorf("%d changes told, %d failures", n, w.events("acme", "Failed"))
		}
		taken, err := w.records.PortsTaken(t.Context(), "local")
		w.must(err)
		if len(taken) != 1 || taken[20003] != key("acme") {
			t.Errorf("reserved: %v", taken)
		}
	})
}

func TestC12_aServerThatServedKeepsItsPortAndSaysWhoHasIt(t *testing.T) {
	virtual(t, func(w *world) {
		var s stranger
		s.on(w)
		w.declare("acme", "v1")
		k := w.start(options{newPort: next(20010)})
		defer k.stop()
		w.until("acme serves", time.Minute, func() bool { return w.converged("acme", "v1") })
		s.take(20001)
		w.engine().with(func() { w.engine().exit(w.engine().named("kura-acme-eu-cache-staging"), 1) })
		w.until("acme says who has its port", time.Minute, func() bool {
			return strings.Contains(w.condition("acme", fleet.ConditionReady).Message, "process 7 (nginx)")
		})
		w.pass(5 * time.Minute)
		if port := w.server("acme").Intent.Ports["cache/http"]; port != 20001 || w.events("acme", "PortChanged") != 0 {
			t.Errorf("port %d, told %d times", port, w.events("acme", "PortChanged"))
		}
		s.take()
		w.until("acme serves again", 2*time.Minute, func() bool { return w.converged("acme", "v1") })
	})
}

func TestC12_whereNoPortIsFreeTheServerSaysSoAndIsTriedAgain(t *testing.T) {
	virtual(t, func(w *world) {
		var s stranger
		s.take(20001, 20002)
		s.on(w)
		w.declare("acme", "v1")
		k := w.start(options{newPort: next(20003)})
		defer k.stop()
		w.until("acme fails", time.Minute, func() bool { return w.status("acme").Reason == fleet.ReasonPortTaken })
		if st := w.status("acme"); st.Status != fleet.StatusFailed || !strings.Contains(st.Message, "20002") {
			t.Errorf("%s: %s", st.Status, st.Message)
		}
		s.take(20001)
		w.until("acme serves", 2*time.Minute, func() bool { return w.converged("acme", "v1") })
		if port := w.server("acme").Intent.Ports["cache/http"]; port != 20002 {
			t.Errorf("port %d", port)
		}
	})
}

// A declaration comes between a turn's choice and its write: neither is lost.
func TestC12_P17_aPortIsNotChangedOverADeclaration(t *testing.T) {
	virtual(t, func(w *world) {
		var s stranger
		s.take(20001)
		s.on(w)
		w.declare("acme", "v1")
		var once sync.Once
		k := w.start(options{newPort: next(20010), onCommit: func(write fleet.TurnWrite, commit func() error) error {
			overtaken := false
			if write.Port != nil {
				once.Do(func() { w.declare("acme", "v2"); overtaken = true })
			}
			err := commit()
			if overtaken && !kv.IsConflict(err) {
				t.Errorf("a port was changed over a declaration: %v", err)
			}
			return err
		}})
		defer k.stop()
		w.until("acme serves v2", time.Minute, func() bool { return w.converged("acme", "v2") })
		if in := w.server("acme").Intent; in.Ports["cache/http"] != 20002 || in.Generation != 2 {
			t.Errorf("port %d, generation %d", in.Ports["cache/http"], in.Generation)
		}
	})
}
