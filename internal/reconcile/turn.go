package reconcile

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/projection"
)

// errLocked says that a turn which gives hosts back has to wait for a declaration's end.
var errLocked = errors.New("a declaration is under way")

// turn is one turn of one server: gather, decide, store. Where a task of a plan that was there
// before may begin, its claim is stored with the rest, and the task is run.
func (r *Reconciler) turn(ctx context.Context, key fleet.ServerKey) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	g, in, out, err := r.decide(ctx, key)
	var unlockedAt int64
	if err == nil && len(out.Freed) > 0 {
		// What is given back must not be what a rename just now counts on: decide anew,
		// from what is declared while none is under way.
		var ok bool
		if unlockedAt, ok, err = r.cfg.Store.Unlocked(ctx); err == nil && !ok {
			return errLocked
		} else if err == nil {
			g, in, out, err = r.decide(ctx, key)
		}
	}
	if fleet.CodeOf(err) == fleet.CodeNotFound {
		r.forget(key)
		return nil
	}
	if err != nil {
		return fmt.Errorf("gather %s: %w", key, err)
	}
	var effects []*effect
	begun := false
	defer func() {
		for _, e := range effects {
			if !begun {
				r.ends(e, nil)
				e.room.end()
			}
		}
	}()
	planned, out := r.claim(key, in, out, &effects)
	if err := r.store(ctx, key, g, out, len(effects) > 0, unlockedAt); err != nil {
		return err
	}
	r.settle(key, in, out.Status)
	r.cutShort(key, out.Status)
	if out.Remove {
		r.forget(key)
		return nil
	}
	r.afterwards(key, in, out)
	begun = true
	for _, e := range effects {
		r.begin(e)
	}
	if planned {
		r.Kick(key) // a stored plan with a runnable task makes the next turn due at once (S4)
	}
	return nil
}

// settle forgets what a turn that was stored has taken into account.
func (r *Reconciler) settle(key fleet.ServerKey, in projection.Input, s fleet.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, track := range r.tracks {
		w := work{key, track}
		if in.Opened.Has(track) && !r.opened[w].After(in.Now) {
			delete(r.opened, w)
		}
		if a, ok := r.answers[w]; ok && !claims(s.PlanOf(track), a.task) {
			delete(r.answers, w)
		}
	}
}

// store stores what a turn decided, in one write, or in none: of a try that is nothing new only
// the claim is written, and what it came to is kept in memory (G12).
func (r *Reconciler) store(ctx context.Context, key fleet.ServerKey, g fleet.Gathered, out projection.Output, claims bool, unlockedAt int64) error {
	if !out.Changed() {
		return nil
	}
	if out.Repeats(g.Status) {
		m := memo{g.StatusRevision, g.TryRevision, out.Status}
		if claims {
			var err error
			m.try, err = r.cfg.Store.CommitTry(ctx, fleet.TryWrite{
				Key: key, IntentRevision: g.IntentRevision, TryRevision: g.TryRevision, Try: out.Status.Try(*g.Status, g.StatusRevision),
			})
			if err != nil {
				return fmt.Errorf("store a claim of %s: %w", key, err)
			}
		}
		r.remember(key, m)
		r.cfg.Changed(key)
		return nil
	}
	err := r.cfg.Store.CommitTurn(ctx, fleet.TurnWrite{
		Key: key, IntentRevision: g.IntentRevision, StatusRevision: g.StatusRevision, Status: out.Status,
		Latest: out.Latest, LatestRevision: g.LatestRevision, Events: out.Events, Remove: out.Remove,
		Port: out.Port(), Freed: out.Freed, UnlockedAt: unlockedAt, KeptUntil: r.now().Add(r.cfg.AliasPeriod),
	})
	if err != nil {
		return fmt.Errorf("store the turn of %s: %w", key, err)
	}
	r.logEvents(out.Events)
	return nil
}

// decide gathers what is known of the server and decides what follows.
func (r *Reconciler) decide(ctx context.Context, key fleet.ServerKey) (fleet.Gathered, projection.Input, projection.Output, error) {
	g, err := r.cfg.Store.Gather(ctx, key)
	if err != nil {
		return g, projection.Input{}, projection.Output{}, err
	}
	in := r.gather(key, g)
	out := projection.Decide(in)
	if out.WantsPort != nil && r.cfg.NewPort != nil {
		ctx, cancel := context.WithTimeout(ctx, storeTimeout/2) // to store what follows needs time, too
		in.NewPort, err = r.cfg.NewPort(ctx, g, *out.WantsPort)
		cancel()
		if err != nil {
			r.log.Warn("no other port for a server", "server", key, "port", out.WantsPort.From, "error", err)
		}
		out = projection.Decide(in)
	}
	if out.WantsAdmission && r.admission.request(key, out.Urgent, in.Region.MaxUnsettled) {
		in.Admit = true
		out = projection.Decide(in)
	}
	for _, f := range out.Trace {
		r.log.Trace("turn", "server", key.String(), "rule", f.String())
	}
	return g, in, out, nil
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

// afterwards arranges what the turn waits for: a place, a look, a time.
func (r *Reconciler) afterwards(key fleet.ServerKey, in projection.Input, out projection.Output) {
	r.kick(r.admission.report(key, out, in.Region.MaxUnsettled))
	for _, o := range r.observers(r.site(in.Region)) {
		o.Follow(in, out)
	}
	next := out.Due
	r.mu.Lock()
	for _, track := range r.tracks {
		if at, ok := r.opened[work{key, track}]; ok && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	r.mu.Unlock()
	if !next.IsZero() {
		r.queue.AddAfter(key, max(next.Sub(r.now()), time.Millisecond))
	}
}

// gather puts together what is known of the server.
func (r *Reconciler) gather(key fleet.ServerKey, g fleet.Gathered) projection.Input {
	in := projection.Input{Now: r.now(), Intent: g.Intent, Tracks: r.cfg.Tracks, AliasPeriod: r.cfg.AliasPeriod, Trace: r.log.IsTrace()}
	in.Prev, in.Answered = r.prev(key, g)
	r.mu.Lock()
	for _, track := range r.tracks {
		if at, ok := r.opened[work{key, track}]; ok && !at.After(in.Now) {
			in.Opened = append(in.Opened, track)
		}
	}
	r.mu.Unlock()
	if g.Latest != nil {
		in.Latest = *g.Latest
	}
	if r.cfg.Paused {
		in.Holds = append(in.Holds, fleet.Hold{Kind: fleet.HoldPaused, Message: "kurad is paused (--paused)"})
	}
	if g.Region == nil || g.Account == nil && g.Intent.Deleting == nil {
		in.NotRenderable = &fleet.ReadFailure{Reason: fleet.ReasonUnknownRegion, Message: fmt.Sprintf("account %s or region %s is no longer in the store", key.Account, key.Region)}
		return in
	}
	in.Region = g.Region.WithDefaults()
	desired, err := r.desired(in, g)
	if err != nil {
		in.NotRenderable = &fleet.ReadFailure{Reason: fleet.ReasonNotRenderable, Message: err.Error()}
		return in
	}
	in.Desired = desired
	at := r.locate(key, in.Region, desired, g.Status)
	if at == nil {
		in.Seen.Instance.Unreadable = missingSite(in.Region)
	}
	for _, o := range r.observers(at) {
		o.Observe(&in)
	}
	return in
}

// desired renders the server; of one that is destroyed what is there goes also where that
// is not possible any more: by its names and labels (P18).
func (r *Reconciler) desired(in projection.Input, g fleet.Gathered) (d fleet.Desired, err error) {
	if g.Account != nil {
		d, err = fleet.Render(r.cfg.Environment, g)
	}
	if g.Intent.Deleting == nil || g.Account != nil && err == nil {
		return d, err
	}
	if d, err = fleet.Remains(r.cfg.Environment, g.Intent.Account, in.Region); err == nil && g.Status != nil {
		d.Revision = g.Status.Revision // what was applied last
		if d.Kubernetes != nil {
			d.Kubernetes.Revision = d.Revision
		}
	}
	return d, err
}

// locate remembers where the server is and what there is its, by name and by id, and
// returns where.
func (r *Reconciler) locate(key fleet.ServerKey, region fleet.Region, d fleet.Desired, status *fleet.Status) site {
	at := location{site: r.site(region), target: region.Target(), names: namesOf(d)}
	if status != nil {
		at.adopted = status.Adopted
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetNames(key)
	r.known[key] = at
	for _, name := range at.names {
		r.names[targetName{at.target, name}] = key
	}
	for _, a := range at.adopted {
		r.adopted[a.ID] = key
	}
	return at.site
}

// namesOf are the names of the server's instance or of its containers, unique in its target.
func namesOf(d fleet.Desired) (names []string) {
	if d.Kubernetes != nil {
		names = append(names, d.Kubernetes.Name)
	}
	if d.Containers != nil {
		for _, s := range d.Containers.Services {
			names = append(names, s.Name, s.TemporaryName(), s.RetiredName())
		}
	}
	return names
}

// forgetNames drops the names and the adopted ids of a server; r.mu is held.
func (r *Reconciler) forgetNames(key fleet.ServerKey) {
	at := r.known[key]
	for _, name := range at.names {
		if s := (targetName{at.target, name}); r.names[s] == key {
			delete(r.names, s)
		}
	}
	for _, a := range at.adopted {
		if r.adopted[a.ID] == key {
			delete(r.adopted, a.ID)
		}
	}
}

// serversAt names the servers of a target that had a turn.
func (r *Reconciler) serversAt(target string) []fleet.ServerKey {
	r.mu.Lock()
	defer r.mu.Unlock()
	var keys []fleet.ServerKey
	for key, at := range r.known {
		if at.target == target {
			keys = append(keys, key)
		}
	}
	return keys
}

// serverAt names the server to which a name belongs.
func (r *Reconciler) serverAt(s targetName) (fleet.ServerKey, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key, ok := r.names[s]
	return key, ok
}

// isKnown reports whether the server had a turn and is still there.
func (r *Reconciler) isKnown(key fleet.ServerKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.known[key]
	return ok
}

// forget drops what is remembered of a server that is no more.
func (r *Reconciler) forget(key fleet.ServerKey) {
	for _, o := range r.observers(r.location(key).site) {
		o.Follow(projection.Input{Intent: fleet.Intent{Server: fleet.Server{Account: key.Account, Region: key.Region}}}, projection.Output{})
	}
	r.kick(r.admission.forget(key))
	r.forgetWaiting(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.forgetNames(key)
	delete(r.known, key)
	delete(r.memos, key)
	for _, track := range r.tracks {
		delete(r.answers, work{key, track})
		delete(r.opened, work{key, track})
	}
}

func (r *Reconciler) location(key fleet.ServerKey) location {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[key]
}

// countHeld takes up the places of servers that were being settled when the last one who
// led ended. A server that cannot be read holds no place until its turn says otherwise (P19).
func (r *Reconciler) countHeld() {
	for _, key := range r.cfg.Store.ServerKeys() {
		if g, ok := r.cfg.Store.Stored(key); ok && g.Status != nil && projection.Unsettled(*g.Status) {
			r.admission.report(key, projection.Output{Unsettled: true}, 0)
		}
	}
}

func (r *Reconciler) now() time.Time { return r.cfg.Now().UTC().Round(0) }

func (r *Reconciler) isLive(w work) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[w] != nil
}

// logEvents logs the events of a turn.
func (r *Reconciler) logEvents(events []fleet.Event) {
	for _, e := range events {
		log := r.log.Info
		if e.Type == fleet.EventWarning {
			log = r.log.Warn
		}
		log(e.Reason, "server", e.Account+"/"+e.Region, "message", e.Message)
	}
}
