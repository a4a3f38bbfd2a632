package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
)

// turn is one turn of one server: gather, decide, store; or, where nothing is to be
// stored, the claim of the current task.
func (r *Reconciler) turn(ctx context.Context, key fleet.ServerKey) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	g, err := r.cfg.Store.Gather(ctx, key)
	if fleet.CodeOf(err) == fleet.CodeNotFound {
		r.forget(key)
		return nil
	}
	if err != nil {
		return fmt.Errorf("gather %s: %w", key, err)
	}
	in := r.gather(key, g)
	out := projection.Decide(in)
	most := in.Region.MaxUnsettled
	if out.WantsAdmission && r.admission.ask(key, out.Urgent, most) {
		in.Admit = true
		out = projection.Decide(in)
	}
	if out.Changed() {
		err := r.cfg.Store.CommitTurn(ctx, fleet.TurnWrite{
			Key: key, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: out.Status,
			Latest: out.Latest, LatestRevision: g.LatestRevision, Events: out.Events, Remove: out.Remove,
		})
		if err != nil {
			return fmt.Errorf("store the turn of %s: %w", key, err)
		}
		r.tell(out.Events)
	}
	r.afterwards(key, in, out, most)
	switch {
	case out.Remove:
		r.forget(key)
	case out.Changed():
		if out.MayAct && due(out.Status.Plan, r.now(), r.isLive(key)) {
			r.Kick(key) // a stored plan with a runnable task makes the next turn due at once (S4)
		}
	case out.MayAct && due(out.Status.Plan, r.now(), r.isLive(key)):
		return r.claim(ctx, key, g, in, out)
	}
	return nil
}

// due reports whether the plan's current task is to be run now: it is runnable, or it
// was claimed by a process that is no more.
func due(p *fleet.Plan, now time.Time, live bool) bool {
	if p == nil || live {
		return false
	}
	i := p.Current()
	return p.Runnable(now) >= 0 || i >= 0 && p.Tasks[i].State == fleet.TaskRunning
}

// afterwards arranges what the turn waits for: probes, a fresh read, a time, a place.
func (r *Reconciler) afterwards(key fleet.ServerKey, in projection.Input, out projection.Output, most int) {
	for _, next := range r.admission.report(key, out.Unsettled, out.WantsAdmission, most) {
		r.Kick(next)
	}
	if out.Remove {
		return
	}
	r.cfg.Probes.Set(key, targets(in, out), out.Pending)
	if e := r.endpoints[place(in.Region)]; e != nil && out.NeedFreshRead {
		if until := out.Status.EffectsUntil; until == nil || !until.After(r.now()) {
			e.freshTurn(key)
		}
	}
	if !out.Due.IsZero() {
		r.queue.AddAfter(key, max(out.Due.Sub(r.now()), time.Millisecond))
	}
	if place(in.Region) != "" && r.endpoints[place(in.Region)] == nil {
		r.queue.AddAfter(key, noRuntimeRetry)
	}
}

// targets are the urls that are probed: the declared one, the global one, and the
// published one while a move is under way.
func targets(in projection.Input, out projection.Output) []Target {
	if in.Intent.Deleting != nil || in.NotRenderable != nil {
		return nil
	}
	var ts []Target
	for _, url := range []string{in.Desired.URL, in.Desired.GlobalURL, out.Status.PublishedURL} {
		if url != "" && !slices.ContainsFunc(ts, func(t Target) bool { return t.URL == url }) {
			ts = append(ts, Target{URL: url, Path: in.Region.Readiness.Path, Timeout: in.Region.Readiness.Timeout.Std()})
		}
	}
	return ts
}

// gather puts together what is known of the server.
func (r *Reconciler) gather(key fleet.ServerKey, g fleet.Gathered) projection.Input {
	in := projection.Input{Now: r.now(), Intent: g.Intent, Prev: g.Status}
	if g.Latest != nil {
		in.Latest = *g.Latest
	}
	if r.cfg.Paused {
		in.Holds = append(in.Holds, fleet.Hold{Kind: fleet.HoldPaused, Message: "kurad is paused (--paused)"})
	}
	if g.Region == nil || g.Account == nil {
		in.NotRenderable = &fleet.ReadFailure{Reason: fleet.ReasonUnknownRegion, Message: fmt.Sprintf("account %s or region %s is no longer in the store", key.Account, key.Region)}
		return in
	}
	in.Region = g.Region.WithDefaults()
	desired, err := fleet.Render(r.cfg.Environment, *g.Account, in.Region, g.Templates, g.Intent, in.Latest)
	if err != nil {
		in.NotRenderable = &fleet.ReadFailure{Reason: fleet.ReasonNotRenderable, Message: err.Error()}
		return in
	}
	in.Desired = desired
	names := r.know(key, in.Region, desired)
	if e := r.endpoints[place(in.Region)]; e != nil {
		in.Seen.Instance = e.seen(key, names)
	} else {
		in.Seen.Instance.Unreadable = &fleet.ReadFailure{
			Reason:  fleet.ReasonEndpointUnreachable,
			Message: fmt.Sprintf("this kurad was given no endpoint named %q: start it with --container-endpoint %s=…", place(in.Region), place(in.Region)),
		}
	}
	latest := func(url string) fleet.ProbeObservation {
		p, _ := r.cfg.Probes.Latest(key, url)
		return p
	}
	in.Seen.Endpoint = latest(desired.URL)
	if desired.GlobalURL != "" {
		in.Seen.Global = latest(desired.GlobalURL)
	}
	if g.Status != nil && g.Status.PublishedURL != "" && g.Status.PublishedURL != desired.URL {
		in.Seen.Published = latest(g.Status.PublishedURL)
	}
	return in
}

// place names the endpoint of a container region.
func place(r fleet.Region) string {
	if r.Containers == nil {
		return ""
	}
	return r.Containers.Endpoint
}

// know remembers where the server is and which container names are its, and returns
// these.
func (r *Reconciler) know(key fleet.ServerKey, region fleet.Region, d fleet.Desired) []string {
	var names []string
	if d.Containers != nil {
		for _, s := range d.Containers.Services {
			names = append(names, s.Name, s.TemporaryName(), s.RetiredName())
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.places[key] = place(region)
	for _, name := range names {
		r.names[name] = key
	}
	return names
}

// forget drops what is remembered of a server that is no more.
func (r *Reconciler) forget(key fleet.ServerKey) {
	r.cfg.Probes.Set(key, nil, false)
	for _, next := range r.admission.report(key, false, false, fleet.DefaultMaxUnsettled) {
		r.Kick(next)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.places, key)
	for name, owner := range r.names {
		if owner == key {
			delete(r.names, name)
		}
	}
}

// recount takes up the places of servers that were being settled when kurad ended.
func (r *Reconciler) recount(ctx context.Context) error {
	for _, key := range r.cfg.Store.ServerKeys() {
		g, err := r.cfg.Store.Gather(ctx, key)
		if fleet.CodeOf(err) == fleet.CodeNotFound {
			continue
		}
		if err != nil {
			return err
		}
		if g.Status != nil && projection.Unsettled(*g.Status) {
			r.admission.report(key, true, false, 0)
		}
	}
	return nil
}

func (r *Reconciler) now() time.Time { return r.cfg.Now().UTC().Round(0) }

func (r *Reconciler) isLive(key fleet.ServerKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[key]
}

// tell logs the events of a turn.
func (r *Reconciler) tell(events []fleet.Event) {
	for _, e := range events {
		log := r.log.Info
		if e.Type == fleet.EventWarning {
			log = r.log.Warn
		}
		log(e.Reason, "server", e.Account+"/"+e.Region, "message", e.Message)
	}
}

func sortByName(cs []fleet.Container) {
	slices.SortFunc(cs, func(a, b fleet.Container) int { return cmp.Compare(a.Name, b.Name) })
}
