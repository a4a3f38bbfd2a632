// Package stopwatch measures time in which the machine keeps up. The machines that tests run
// on are shared and stand still now and then; a test that bounds how long something takes
// bounds it by a stopwatch, which leaves out by how much a small chore was late in the same
// time. On a machine that keeps up that is nothing.
package stopwatch

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

const (
	choreEvery = 200 * time.Millisecond
	// choreTakes is what a chore and the wake-up before it may take on a machine that keeps up.
	choreTakes = 50 * time.Millisecond
)

// Stopwatch runs until it is stopped.
type Stopwatch struct {
	cancel  context.CancelFunc
	ended   chan struct{}
	mu      sync.Mutex
	delays  []delay
	running bool // until it is stopped, or a chore fails
	err     error
	asked   time.Time
}

// A delay is a span of time in which the machine was late.
type delay struct{ from, to time.Time }

// Start returns a stopwatch that ends with its test, logs what it left out, and fails the
// test if the chore cannot be done.
func Start(t testing.TB) *Stopwatch {
	s := New(Chore(t.TempDir()))
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if late := s.Late(); late > 0 {
			t.Logf("the machine was late by %s in all", late)
		}
	})
	return s
}

// New returns a stopwatch that Stop ends. The chore is what such a machine does all day:
// Chore, where nothing else fits better.
func New(chore func(context.Context) error) *Stopwatch {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Stopwatch{cancel: cancel, ended: make(chan struct{}), running: true, asked: time.Now()}
	go s.run(ctx, chore)
	return s
}

func (s *Stopwatch) run(ctx context.Context, chore func(context.Context) error) {
	defer close(s.ended)
	defer s.end()
	wake := time.NewTimer(choreEvery)
	defer wake.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-wake.C:
		}
		err := chore(ctx)
		s.mu.Lock()
		s.note(time.Now())
		if err != nil && ctx.Err() == nil {
			s.err = errors.Join(s.err, err)
		}
		s.mu.Unlock()
		if err != nil {
			return
		}
		wake.Reset(choreEvery)
	}
}

// end makes that nothing is left out any more.
func (s *Stopwatch) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = false
}

// note ends the chore that was asked for at s.asked.
func (s *Stopwatch) note(now time.Time) {
	if late := s.asked.Add(choreEvery + choreTakes); now.After(late) {
		s.delays = append(s.delays, delay{late, now})
	}
	s.asked = now
}

// Since returns how much of the time since begun the machine kept up.
func (s *Stopwatch) Since(begun time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	delays := s.delays
	if late := s.asked.Add(choreEvery + choreTakes); s.running && now.After(late) { // a chore is late just now
		delays = append(delays[:len(delays):len(delays)], delay{late, now})
	}
	kept := now.Sub(begun)
	for _, d := range delays {
		if d.from.Before(begun) {
			d.from = begun
		}
		if d.to.After(d.from) {
			kept -= d.to.Sub(d.from)
		}
	}
	return kept
}

// Late returns by how much the chores were late in all.
func (s *Stopwatch) Late() (sum time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.delays {
		sum += d.to.Sub(d.from)
	}
	return sum
}

// Stop ends the stopwatch, and returns why its chore failed, if it did. From then on nothing
// is left out any more.
func (s *Stopwatch) Stop() error {
	s.cancel()
	<-s.ended
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Chore returns a chore that writes a file of the folder down to the disk and starts a process.
// A shell starts it, which ends with the context of the first call: a child shares the open
// files of who forks it until it runs its program, and with them the locks of stores that the
// test has closed meanwhile.
func Chore(dir string) func(context.Context) error {
	path := filepath.Join(dir, "chore")
	var shell *exec.Cmd
	var ask io.Writer
	var answer io.Reader
	return func(ctx context.Context) error {
		f, err := os.Create(path)
		if err != nil {
			return err
		}
		_, err = f.Write(make([]byte, 4096))
		if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
			return err
		}
		if shell == nil {
			shell = exec.CommandContext(ctx, "sh", "-c", "while read -r _; do /bin/true && echo; done")
			in, inErr := shell.StdinPipe()
			out, outErr := shell.StdoutPipe()
			if err := errors.Join(inErr, outErr, shell.Start()); err != nil {
				return err
			}
			go func() { _ = shell.Wait() }() // it is killed
			ask, answer = in, out
		}
		if _, err := ask.Write([]byte("\n")); err != nil {
			return err
		}
		_, err = answer.Read(make([]byte, 1))
		return err
	}
}
