package reconcile_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
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
// no moment may a rule of docs/design be broken.
func TestSimulation_faultsThenPeaceConverges(t *testing.T) {
	for seed := uint64(1); seed <= 4; seed++ {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			virtual(t, func(w *world) { newSimulation(w, seed, onEngine{w}).run() })
		})
		t.Run(fmt.Sprintf("on Kubernetes, seed %d", seed), func(t *testing.T) {
			virtual(t, func(w *world) { newSimulation(w, seed, onCluster{w}).run() })
		})
	}
}

// ground is what a simulation takes place on.
type ground interface {
	region(*fleet.Region)           // makes eu a region of it
	version(r *fleet.Region, n int) // changes the document of all servers
	breathe(*rand.Rand)             // ends or changes what is wrong with it
	outage(*rand.Rand)              // it answers nothing for a while
	harm(account string, n int)     // takes something away; n is below 10
	refuse(account string)          // it refuses something of the server
	heal()
	missing(account, image string) string // what a declared server lacks, or what a destroyed one left
	wrong() string                        // what must never have been
}

type simulation struct {
	*world
	ground   ground
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

func newSimulation(w *world, seed uint64, g ground) *simulation {
	w.region("eu", func(r *fleet.Region) {
		r.MaxUnsettled = simPlaces
		g.region(r)
	})
	return &simulation{
		world: w, ground: g, rand: rand.New(rand.NewPCG(seed, 0)), stale: rand.New(rand.NewPCG(seed, 1)), declared: map[string]string{}, leaving: map[string]bool{},
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
				return &kv.ConflictError{Key: "what somebody else wrote"}
			}
			_, err := faults.Change(context.Background(), s.writes, func() (struct{}, error) {
				err := commit()
				if err == nil && write.Remove { // a late effect would make an orphan (P18)
					if what := s.ground.missing(write.Key.Account, ""); what != "" {
						s.t.Errorf("%s was removed: %s", write.Key, what)
					}
				}
				return struct{}{}, err
			})
			return err
		},
		onTry: func(_ fleet.TryWrite, commit func() error) error {
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
		onRead: func(read func() error) error {
			_, err := faults.Change(context.Background(), s.answers, func() (struct{}, error) { return struct{}{}, read() })
			return err
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
	s.ground.breathe(s.rand)
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
		s.region("eu", func(r *fleet.Region) { s.ground.version(r, s.version) })
	case n < 55:
		s.setSick(account, fleet.ReasonHTTPNotReady)
	case n < 62:
		s.setSick(account, "")
	case n < 67:
		paused := s.rand.IntN(3) == 0
		s.change(account, func(in *fleet.Intent) { in.Paused = paused })
	case n < 77: // a service ends, or somebody takes it away
		s.ground.harm(account, n-67)
	case n < 82:
		s.ground.refuse(account)
	case n < 87:
		s.ground.outage(s.rand)
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
	s.ground.heal()
	for i := range simServers {
		s.setSick(fmt.Sprintf("s%04d", i), "")
	}
	for i := range simServers { // a destroy waits too while its server is paused, and one that is not may end now
		account := fmt.Sprintf("s%04d", i)
		g, err := s.records.Gather(context.Background(), key(account))
		if fleet.CodeOf(err) == fleet.CodeNotFound {
			continue
		}
		s.must(err)
		if g.Intent.Paused {
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
	case write.Remove && (len(st.Containers) > 0 || st.Resource != nil):
		s.t.Errorf("%s is to be removed with containers %+v and resource %+v", write.Key, st.Containers, st.Resource)
	}
}

func (s *simulation) check() {
	if !s.peace() {
		s.t.Errorf("20 minutes later something is not as declared:\n%s", s.describe())
	}
	for i := range simServers {
		account := fmt.Sprintf("s%04d", i)
		if what := s.ground.missing(account, s.declared[account]); what != "" {
			s.t.Errorf("%s on %q: %s", account, s.declared[account], what)
		}
	}
	if what := s.ground.wrong(); what != "" {
		s.t.Error(what)
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
