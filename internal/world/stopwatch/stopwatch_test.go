package stopwatch_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/world/stopwatch"
)

func TestStopwatch_leavesOutByHowMuchTheMachineIsLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var takes atomic.Int64
		takes.Store(int64(10 * time.Millisecond))
		s := stopwatch.New(func(context.Context) error { time.Sleep(time.Duration(takes.Load())); return nil }) // the bubble's
		begun := time.Now()
		is := func(what string, least, most time.Duration) {
			t.Helper()
			if got := s.Since(begun); got < least || got > most {
				t.Errorf("%s: %s, want %s to %s", what, got, least, most)
			}
		}
		time.Sleep(10 * time.Second) // the bubble's
		is("a machine that keeps up", 10*time.Second, 10*time.Second)
		takes.Store(int64(3 * time.Second))
		time.Sleep(60 * time.Second) // the bubble's
		is("one that does a minute's chores in 3 s each", 14*time.Second, 16*time.Second)
		takes.Store(int64(time.Hour))
		time.Sleep(30 * time.Minute) // the bubble's
		is("one that stands still", 14*time.Second, 19*time.Second)
		begun = time.Now()
		time.Sleep(time.Minute) // the bubble's
		is("since it stands still", 0, 0)
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
		if late := s.Late(); late < 50*time.Minute {
			t.Errorf("late by %s in all, want some 76 minutes", late)
		}
		begun = time.Now()
		time.Sleep(time.Minute) // the bubble's
		is("a minute after the stop", time.Minute, time.Minute)
	})
}

func TestStopwatch_whoseChoreFailsLeavesOutNothingAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := errors.New("full disk")
		s := stopwatch.New(func(context.Context) error { return want })
		begun := time.Now()
		time.Sleep(time.Minute) // the bubble's
		if got := s.Since(begun); got != time.Minute {
			t.Errorf("%s, want a minute", got)
		}
		if err := s.Stop(); !errors.Is(err, want) {
			t.Errorf("err = %v, want %v", err, want)
		}
	})
}

// A child that a chore forks in this process would hold the lock a moment longer than its file is open.
func TestChore_keepsNoLockOfItsTest(t *testing.T) {
	chore := stopwatch.Chore(t.TempDir())
	path := filepath.Join(t.TempDir(), "lock")
	if err := chore(t.Context()); err != nil {
		t.Fatal(err)
	}
	var chores atomic.Int64
	ended := make(chan error, 1)
	go func() {
		for range 20 {
			if err := chore(t.Context()); err != nil {
				ended <- err
				return
			}
			chores.Add(1)
		}
		ended <- nil
	}()
	for locks := 0; ; locks++ {
		lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err == nil {
			err = errors.Join(syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB), lock.Close())
		}
		if err != nil {
			t.Errorf("after %d locks and %d chores: %v", locks, chores.Load(), err)
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
	}
}

func TestChore_isDone(t *testing.T) {
	chore := stopwatch.Chore(t.TempDir())
	for range 2 {
		if err := chore(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := stopwatch.Chore("/no/such/folder")(t.Context()); err == nil {
		t.Error("a chore in a folder that is not there is done")
	}
}
