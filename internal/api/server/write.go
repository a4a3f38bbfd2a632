package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

const (
	// writeTimeout bounds a write as a whole, tries included.
	writeTimeout = 30 * time.Second
	// releaseTimeout bounds how long it takes to let others write again; they get on by
	// themselves a little later (store.Lock).
	releaseTimeout = 5 * time.Second
	// maxTries bounds how often a write that lost against another begins again. Each
	// time, the other one has got on.
	maxTries = 32
	// losses is how often a write may lose against others before it runs alone: another
	// replica may write without a pause.
	losses = 8
)

// retry runs a write again while it loses against others.
func retry(write func() error) error {
	for try := 1; ; try++ {
		err := write()
		if !kv.IsConflict(err) {
			return err
		}
		if try == maxTries {
			return &fleet.Error{Code: fleet.CodeUnavailable, Message: "others write the same at the same time; try again", Err: err}
		}
	}
}

// Match is the condition of every write of an object.
type Match struct {
	IfMatch string `header:"If-Match" maxLength:"64" doc:"Generation that the object must have, in quotes."`
}

// Condition is what a PUT takes besides its body.
type Condition struct {
	Match
	IfNoneMatch string `header:"If-None-Match" maxLength:"64" doc:"*: create only; an object that exists is a conflict."`
	DryRun      bool   `query:"dry_run" doc:"Validate and warn, write nothing."`
}

// check compares the condition with the present generation, 0 where there is none.
func (c Condition) check(what string, generation int64) error {
	if c.IfNoneMatch != "" {
		if c.IfNoneMatch != "*" {
			return fleet.Errorf(fleet.CodeInvalid, "%s: If-None-Match of a PUT can only be *", what)
		}
		if generation != 0 {
			return fleet.Errorf(fleet.CodeConflict, "%s exists already, at generation %d; import it, or choose another name", what, generation)
		}
	}
	return c.Match.check(what, generation)
}

// check compares the generation that is asked for with the present one.
func (m Match) check(what string, generation int64) error {
	if m.IfMatch == "" {
		return nil
	}
	want, err := strconv.ParseInt(strings.Trim(m.IfMatch, `"`), 10, 64)
	if err != nil || want < 1 {
		return fleet.Errorf(fleet.CodeInvalid, "%s: If-Match %s is no generation such as \"3\"", what, m.IfMatch)
	}
	switch {
	case generation == 0:
		return fleet.Errorf(fleet.CodePrecondition, "%s does not exist, so it has no generation %d; somebody deleted it meanwhile: read it again", what, want)
	case generation != want:
		return fleet.Errorf(fleet.CodePrecondition, "%s is at generation %d, not %d: somebody changed it meanwhile; read it again (refresh, plan) and decide anew", what, generation, want)
	}
	return nil
}

// sameName checks that the body is about the object of the URL.
func sameName(v *fleet.Invalid, pointer, inURL, inBody string) {
	if inURL != inBody {
		v.Add(pointer, "must be %q, as in the URL, and is %q", inURL, inBody)
	}
}

// present makes a missing record the zero one, which stands for it.
func present[T any](v store.Versioned[T], err error) (store.Versioned[T], error) {
	if fleet.CodeOf(err) == fleet.CodeNotFound {
		return store.Versioned[T]{}, nil
	}
	return v, err
}

// equal compares two declarations as they are written.
func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

func compareKeys(a, b fleet.ServerKey) int {
	return cmp.Or(cmp.Compare(a.Region, b.Region), cmp.Compare(a.Account, b.Account))
}

// inUse words a store's refusal to remove what somebody needs.
func inUse(err error, next string) error {
	if used, ok := errors.AsType[*store.UsedError](err); ok {
		return fleet.Errorf(fleet.CodeConflict, "%v; %s", used, next)
	}
	return err
}

// alone runs a write that changes what servers of others render to, while no other
// replica writes a declaration; a dry run takes nobody's turn.
func (s *Server) alone(ctx context.Context, dry bool, write func(context.Context, *store.Lock) error) error {
	if dry {
		return s.dryRun(ctx, write)
	}
	return answering(ctx, func(ctx context.Context) error { return s.inTurnAlone(ctx, write) })
}

// beside runs a write of one server, beside others of its kind; where it loses against
// those again and again, alone.
func (s *Server) beside(ctx context.Context, dry bool, write func(context.Context, *store.Lock) error) error {
	if dry {
		return s.dryRun(ctx, write)
	}
	return answering(ctx, func(ctx context.Context) error {
		if err := s.inTurnBeside(ctx, write); !errors.Is(err, errLost) {
			return err
		}
		return s.inTurnAlone(ctx, write)
	})
}

// dryRun runs a write that writes nothing. Nobody waits for it, and it for nobody: what it says
// may be outdated by the next write anyway.
func (s *Server) dryRun(ctx context.Context, write func(context.Context, *store.Lock) error) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return retry(func() error { return write(ctx, &store.Lock{}) })
}

func (s *Server) inTurnAlone(ctx context.Context, write func(context.Context, *store.Lock) error) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	leave, err := s.turn.take(ctx, turnAlone)
	if err != nil {
		return err
	}
	defer leave()
	return retry(func() (err error) {
		lock, err := s.records.Lock(ctx)
		if err != nil {
			return err
		}
		defer func() {
			until, end := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
			defer end()
			if failed := lock.Unlock(until); failed != nil {
				s.log.Warn("others wait a few seconds until they may write", "error", failed)
			}
		}()
		return write(ctx, lock)
	})
}

func (s *Server) inTurnBeside(ctx context.Context, write func(context.Context, *store.Lock) error) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	leave, err := s.turn.take(ctx, turnBeside)
	if err != nil {
		return err
	}
	defer leave()
	lost := 0
	return retry(func() error {
		if lost == losses {
			return errLost
		}
		lock, err := s.records.RLock(ctx)
		if err == nil {
			err = write(ctx, lock)
		}
		if kv.IsConflict(err) {
			lost++
		}
		return err
	})
}

// errLost says that a write has lost against others too often.
var errLost = errors.New("the write must run alone")
