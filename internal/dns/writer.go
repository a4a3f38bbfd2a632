package dns

import (
	"context"
	"sync"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Writer is all that changes one zone in this process, whoever asks for it.
type Writer struct {
	Publisher Publisher
	Balancers Balancers
}

// NewWriter returns the Writer of a zone.
func NewWriter(z Zone, e fleet.Environment, api API) *Writer {
	return &Writer{Publisher{Zone: z, Environment: e, API: api}, Balancers{Zone: z, Environment: e, API: api}}
}

// alone waits until nothing else changes the zone, and keeps it so until end.
func (w *Writer) alone(ctx context.Context) (end func(), err error) {
	if err := w.Balancers.turn.take(ctx); err != nil {
		return nil, err
	}
	if err := w.Publisher.turn.take(ctx); err != nil {
		w.Balancers.turn.end()
		return nil, err
	}
	return func() { w.Publisher.turn.end(); w.Balancers.turn.end() }, nil
}

// turn is had by one at a time, from the listing that decides to the last write. The zero one is free.
type turn struct {
	once  sync.Once
	taken chan struct{}
}

// take waits for it until ctx ends. Its error is an *Error.
func (t *turn) take(ctx context.Context) error {
	t.once.Do(func() { t.taken = make(chan struct{}, 1) })
	select {
	case t.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		return &Error{
			Class: fleet.ClassTransient, Reason: fleet.ReasonZoneUnreachable, Answered: true,
			Message: "not begun: kurad was still changing the zone for others when the time was over; it is tried again, or try again",
		}
	}
}

func (t *turn) end() { <-t.taken }
