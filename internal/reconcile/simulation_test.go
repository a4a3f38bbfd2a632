package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	faults "github.com/kurafleet/terraform-provider-kura/internal/world"
)

// What a simulation is made of.
const (
	simServers = 12
	simPlaces  = 3
	simTime    = 90 * time.Minute
	simPeace   = time.Hour // within which all must be as declared
)

// TestSimulation_faultsThenPeaceConverges lets hours of random declarations, faults and
// restarts pass, then peace: everything must become as declared in bounded time, and at
// no moment may an invariant of the behaviour contract be broken.
func TestSimulation_faultsThenPeaceConverges(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			virtual(t, func(w *world) { newSimulation(w, seed).run() })
		})
	}
}

type simulation struct {
	*world
	rand     *rand.Rand
	answers  *faults.Faults // of the engine, which fail, get lost and come late
	writes   *faults.Faults // of the store
	mu       sync.Mutex
	stale    *rand.Rand // who else writes
	k        *kurad
	declared map[string]string // the image of each server that is wanted
	leaving  map[string]bool
	version  int
}

func newSimulation(w *world, seed uint64) *simulation {
	w.region("eu", func(r *fleet.Region) {
		r.MaxUnsettled = simPlaces
		r.Containers.Services["helper"] = fleet.Service{Image: "localhost/helper:1", GracePeriod: fleet.Duration(time.Second)}
	})
	return &simulation{
		world: w, rand: rand.New(rand.NewPCG(seed, 0)), stale: rand.New(rand.NewPCG(seed, 1)), declared: map[string]string{}, leaving: map[string]bool{},
		answers: faults.NewFaults(seed, faults.Rates{Fail: 0.1, Ambiguous: 0.05, Slow: 0.05, Delay: 20 * time.Second}),
		writes:  faults.NewFaults(seed+1000, faults.Rates{Fail: 0.02, Ambiguous: 0.02}),
	}
}

func (s *simulation) run() {
	s.boot()
	for start := time.Now(); time.Since(start) < simTime; {
		s.pass(time.Duration(1+s.rand.IntN(60)) * time.Second)
		s.happen()
	}
	s.heal()
	s.until("everything is as declared", simPeace, s.peace)
	s.pass(20 * time.Minute)
	s.check()
	s.k.stop()
}

// boot starts a kurad whose store and engines are not to be relied on.
func (s *simulation) boot() {
	s.k = s.start(options{
		onCommit: func(write fleet.TurnWrite, commit func() error) error {
			s.consistent(write)
			s.mu.Lock()
			overtaken := s.stale != nil && s.stale.Float64() < 0.05
			s.mu.Unlock()
			if overtaken {
				return &store.ConflictError{Key: "what somebody else wrote"}
			}
			_, err := faults.Change(context.Background(), s.writes, func() (struct{}, error) { return struct{}{}, commit() })
			return err
		},
		onTask: func(k fleet.ServerKey, task fleet.Task, execute func() fleet.Outcome) fleet.Outcome {
			o, err := faults.Change(context.Background(), s.answers, func() (fleet.Outcome, error) { return execute(), nil })
			if err != nil {
				return unanswered(err)
			}
			return o
		},
		onList: func(list func() ([]fleet.Container, error)) ([]fleet.Container, error) {
			// An engine answers from its present state: no answer is that of before.
			cs, err := faults.Change(context.Background(), s.answers, list)
			return cs, err
		},
	})
}

// happen lets one thing happen.
func (s *simulation) happen() {
	account := fmt.Sprintf("s%04d", s.rand.IntN(simServers))
	_, wanted := s.declared[account]
	if s.leaving[account] && s.gone(account) {
		delete(s.leaving, account)
	}
	s.engine().with(func() { s.engine().down = s.engine().down && s.rand.IntN(3) > 0 })
	switch n := s.rand.IntN(100); {
	case s.leaving[account]:
	case !wanted || n < 25:
		s.declared[account] = fmt.Sprintf("v%d", 1+s.rand.IntN(5))
		s.declare(account, s.declared[account])
	case n < 35:
		s.redeploy(account)
	case n < 42:
		s.destroy(account)
		delete(s.declared, account)
		s.leaving[account] = true
	case n < 45: // a document that changes for all
		s.version++
		s.region("eu", func(r *fleet.Region) {
			helper := r.Containers.Services["helper"]
			helper.Env = map[string]string{"VERSION": fmt.Sprint(s.version)}
			r.Containers.Services["helper"] = helper
		})
	case n < 55:
		s.setSick(account, fleet.ReasonHTTPNotReady)
	case n < 62:
		s.setSick(account, "")
	case n < 67:
		paused := s.rand.IntN(3) == 0
		s.change(account, func(in *fleet.Intent) { in.Paused = paused })
	case n < 77: // a service ends, or somebody takes it away
		s.engine().with(func() {
			for _, id := range slices.Sorted(maps.Keys(s.engine().boxes)) {
				if b := s.engine().boxes[id]; b.Account != account {
					continue
				} else if n < 72 && b.State == fleet.ContainerRunning {
					s.engine().exit(b, 1)
				} else if n >= 72 {
					s.engine().drop(b)
				}
				return
			}
		})
	case n < 82:
		s.engine().with(func() { s.engine().refuse = failsToCreate(account, "v3") })
	case n < 87:
		s.engine().with(func() { s.engine().down = true })
	case n < 92:
		s.k.kill()
		s.boot()
	case n < 95:
		s.k.stop()
		s.boot()
	}
}

func (s *simulation) heal() {
	s.answers.SetRates(faults.Rates{})
	s.writes.SetRates(faults.Rates{})
	s.mu.Lock()
	s.stale = nil
	s.mu.Unlock()
	s.engine().with(func() { s.engine().refuse, s.engine().down = nil, false })
	for i := range simServers {
		s.setSick(fmt.Sprintf("s%04d", i), "")
	}
	for i := range simServers { // a destroy waits too while its server is paused
		if account := fmt.Sprintf("s%04d", i); !s.gone(account) && s.server(account).Intent.Paused {
			s.change(account, func(in *fleet.Intent) { in.Paused = false })
		}
	}
}

func (s *simulation) peace() bool {
	s.world.mu.Lock()
	n := len(s.running)
	s.world.mu.Unlock()
	if n != len(s.declared) {
		return false
	}
	for account := range s.leaving {
		if !s.gone(account) {
			return false
		}
	}
	for account, image := range s.declared {
		if !s.converged(account, image) {
			return false
		}
	}
	return true
}

// consistent checks what is about to be stored (P20).
func (s *simulation) consistent(write fleet.TurnWrite) {
	st := write.Status
	switch {
	case st.Status == fleet.StatusActive && (st.PublishedURL == "" || st.ServingImageTag == ""):
		s.t.Errorf("%s is to be stored as active with url %q and image %q", write.Key, st.PublishedURL, st.ServingImageTag)
	case st.Status == fleet.StatusFailed && st.Reason == "":
		s.t.Errorf("%s is to be stored as failed without a reason", write.Key)
	case write.Remove && len(st.Containers) > 0:
		s.t.Errorf("%s is to be removed with containers %+v", write.Key, st.Containers)
	}
}

func (s *simulation) check() {
	if !s.peace() {
		s.t.Errorf("20 minutes later something is not as declared:\n%s", s.describe())
	}
	for i := range simServers {
		account := fmt.Sprintf("s%04d", i)
		want := 2
		if _, ok := s.declared[account]; !ok {
			want = 0
		}
		bs := s.engine().of(account)
		if len(bs) != want {
			s.t.Errorf("%s has %d containers, want %d: %+v", account, len(bs), want, bs)
		}
		for _, b := range bs {
			if b.State != fleet.ContainerRunning || b.Name != "kura-"+account+"-eu-"+b.Service+"-staging" {
				s.t.Errorf("container %+v, want it running under its name", b)
			}
		}
	}
	if twice := s.engine().twice; len(twice) > 0 {
		s.t.Errorf("containers of one service ran at once: %v", twice)
	}
	if most := s.mostUnsettled("eu"); most > simPlaces {
		s.t.Errorf("%d servers were unsettled at once, want at most %d", most, simPlaces)
	}
	commits, tasks := s.k.commits.Load(), s.k.tasks.Load()
	s.pass(time.Hour)
	if c, n := s.k.commits.Load()-commits, s.k.tasks.Load()-tasks; c != 0 || n != 0 {
		s.t.Errorf("%d writes and %d tasks in an hour of peace, want none", c, n)
	}
}
