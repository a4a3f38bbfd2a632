package declare

import (
	"context"
	"errors"
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

// Retry runs a write again while it loses against others.
func Retry(write func() error) error {
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

// alone runs a write that changes what servers of others render to, while no other
// replica writes a declaration; a dry run takes nobody's turn.
func (d *Declarer) alone(ctx context.Context, dry bool, write func(context.Context, *store.Lock) error) error {
	if dry {
		return d.dryRun(ctx, write)
	}
	return answering(ctx, func(ctx context.Context) error { return d.inTurnAlone(ctx, write) })
}

// beside runs a write of one server, beside others of its kind; where it loses against
// those again and again, alone.
func (d *Declarer) beside(ctx context.Context, dry bool, write func(context.Context, *store.Lock) error) error {
	if dry {
		return d.dryRun(ctx, write)
	}
	return answering(ctx, func(ctx context.Context) error {
		if err := d.inTurnBeside(ctx, write); !errors.Is(err, errLost) {
			return err
		}
		return d.inTurnAlone(ctx, write)
	})
}

// dryRun runs a write that writes nothing. Nobody waits for it, and it for nobody: what it says
// may be outdated by the next write anyway.
func (d *Declarer) dryRun(ctx context.Context, write func(context.Context, *store.Lock) error) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return Retry(func() error { return write(ctx, &store.Lock{}) })
}

// inTurn runs a write when it has its turn in this process.
func (d *Declarer) inTurn(ctx context.Context, places int64, write func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	leave, err := d.turn.take(ctx, places)
	if err != nil {
		return err
	}
	defer leave()
	return Retry(func() error { return write(ctx) })
}

func (d *Declarer) inTurnAlone(ctx context.Context, write func(context.Context, *store.Lock) error) error {
	return d.inTurn(ctx, turnAlone, func(ctx context.Context) error {
		lock, err := d.records.Lock(ctx)
		if err != nil {
			return err
		}
		defer func() {
			until, end := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
			defer end()
			if failed := lock.Unlock(until); failed != nil {
				d.log.Warn("others wait a few seconds until they may write", "error", failed)
			}
		}()
		return write(ctx, lock)
	})
}

func (d *Declarer) inTurnBeside(ctx context.Context, write func(context.Context, *store.Lock) error) error {
	lost := 0
	return d.inTurn(ctx, turnBeside, func(ctx context.Context) error {
		if lost == losses {
			return errLost
		}
		lock, err := d.records.RLock(ctx)
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
