package main

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// An engine that hangs holds up whoever asks first until he gives up, those who ask later not
// at all, and nobody once it answers.
func TestG9_aListingThatHangsHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		l := &lister{name: "eu-1", list: func(ctx context.Context) ([]fleet.Container, error) {
			select {
			case <-answers:
				return []fleet.Container{{Name: "cache"}}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}}
		took := func(within, maxAge time.Duration) (fleet.Listing, time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			begun := time.Now()
			return l.listing(ctx, maxAge), time.Since(begun)
		}
		for _, c := range []struct{ within, maxAge, want time.Duration }{
			{2 * time.Second, time.Second, 2 * time.Second},
			{5 * time.Second, 0, 5 * time.Second},
			{5 * time.Second, time.Second, 0},  // it has hung for 7 s
			{time.Minute, 0, 13 * time.Second}, // what hangs ends, and so does what is asked anew
			{5 * time.Second, time.Second, 0},
		} {
			if got, d := took(c.within, c.maxAge); d != c.want || got.Unreadable == nil || got.Unreadable.Reason != fleet.ReasonEndpointUnreachable {
				t.Errorf("within %s, no older than %s: %+v after %s, want a failure after %s", c.within, c.maxAge, got, d, c.want)
			}
		}
		close(answers)
		if got, d := took(time.Second, 0); d != 0 || len(got.Containers) != 1 || got.Unreadable != nil {
			t.Errorf("once it answers: %+v after %s", got, d)
		}
	})
}
