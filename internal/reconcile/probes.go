package reconcile

import (
	"context"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
)

// endpoints observes what answers at servers' urls.
type endpoints struct{ Probes }

// Observe implements Observer.
func (p endpoints) Observe(in *projection.Input) {
	latest := func(url string) fleet.ProbeObservation {
		seen, _ := p.Latest(in.Intent.Key(), url)
		return seen
	}
	in.Seen.Endpoint = latest(in.Desired.URL)
	if in.Desired.GlobalURL != "" {
		in.Seen.Global = latest(in.Desired.GlobalURL)
	}
	if in.Prev != nil && in.Prev.PublishedURL != "" && in.Prev.PublishedURL != in.Desired.URL {
		in.Seen.Published = latest(in.Prev.PublishedURL)
	}
}

// Follow probes the declared url, the global one, and the published one while a move is
// under way. Only a probe begun after the instance converged opens the gate: until then fast
// probing, and a turn for each of its answers, would be for nothing.
func (p endpoints) Follow(in projection.Input, out projection.Output) {
	var targets []fleet.ProbeTarget
	for _, url := range []string{in.Desired.URL, in.Desired.GlobalURL, out.Status.PublishedURL} {
		if url != "" && !slices.ContainsFunc(targets, func(t fleet.ProbeTarget) bool { return t.URL == url }) {
			targets = append(targets, fleet.ProbeTarget{URL: url, Path: in.Region.Readiness.Path, Timeout: in.Region.Readiness.Timeout.Std()})
		}
	}
	if in.Intent.Deleting != nil || in.NotRenderable != nil {
		targets = nil
	}
	p.Set(in.Intent.Key(), targets, out.Pending && out.Status.ConvergedAt != nil || out.Doubtful(in))
}

// Fresh implements Observer. Without targets there is nothing to probe; that is no fault.
func (p endpoints) Fresh(ctx context.Context, g fleet.Gathered) error {
	if err := p.Now(ctx, g.Intent.Key()); err != nil && ctx.Err() != nil {
		return err
	}
	return nil
}
