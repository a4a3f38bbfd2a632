package declare

import (
	"context"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// attemptTime is how long a declaration that is to be tried again waits for a try that is
// under way.
const attemptTime = 15 * time.Second

// attemptPause is the time between two looks at it: an end that is no news is written nowhere.
const attemptPause = 500 * time.Millisecond

// triesAgain decides whether a version that is declared already takes another deployment
// (P12): whoever asks saw that it does not serve. What has come to something since is left
// alone (P9), and a try that is under way is waited for: a redeploy on top of that would
// restart what has just healed.
func (d *Declarer) triesAgain(ctx context.Context, g fleet.Gathered, equal bool) (bool, error) {
	if !cameToNothing(g, d.status(g), equal) {
		return false, nil
	}
	if !attempting(g, d.status(g)) {
		return true, nil
	}
	return ask(ctx, "how the try of server "+g.Intent.Key().String()+" ends", attemptTime, func(ctx context.Context) (bool, error) {
		return d.attempted(ctx, g.Intent.Key()), nil
	})
}

// status is the newest that is known of a server, stored or not.
func (d *Declarer) status(g fleet.Gathered) *fleet.Status {
	if st := d.turns.Beyond(g); st != nil {
		return st
	}
	return g.Status
}

// cameToNothing reports whether only a new deployment is another try of the declared version.
func cameToNothing(g fleet.Gathered, st *fleet.Status, equal bool) bool {
	if st == nil || g.Latest == nil {
		return false // no turn has seen it
	}
	seen := st.Generation >= g.Latest.Generation // else what is said is of the try before
	stalled := seen && (st.Verdict == fleet.VerdictStalled || st.VerdictReason == fleet.ReasonStalled)
	differs := st.Resource != nil && len(st.Resource.Differs) > 0
	switch {
	case g.Latest.Status.Open() && !stalled: // it is being tried
	case st.Verdict == fleet.VerdictConverged && st.ServingImageTag == g.Intent.ImageTag: // it serves
	case st.Resource != nil && st.Resource.Adopted: // it is as somebody else made it (K6)
	case differs && (!equal || drifted(g)) && g.Latest.Status == fleet.DeploymentSucceeded: // to write the declaration corrects it
	default:
		return true
	}
	return false
}

// attempting reports whether kurad tries a version that had failed just now again, or has
// made it and only waits for its answer: a region that changed in the same apply makes it try
// at once.
func attempting(g fleet.Gathered, st *fleet.Status) bool {
	is := func(t fleet.ConditionType) bool {
		return slices.ContainsFunc(st.Conditions, func(c fleet.Condition) bool { return c.Type == t && c.Status == fleet.True })
	}
	asDeclared := st.ObservedImageTag == g.Intent.ImageTag && is(fleet.ConditionImageConverged) && is(fleet.ConditionManifestConverged)
	return st.Verdict != fleet.VerdictConverged && st.Verdict != fleet.VerdictStalled && (st.Runtime.Plan != nil || asDeclared)
}

// attempted waits for the end of a try, and reports whether it came to nothing by then.
func (d *Declarer) attempted(ctx context.Context, key fleet.ServerKey) bool {
	moved := make(chan struct{}, 1)
	defer d.view.Subscribe(func(u store.Update) {
		if u.Key != key {
			return
		}
		select {
		case moved <- struct{}{}:
		default:
		}
	})()
	look := time.NewTicker(attemptPause)
	defer look.Stop()
	for {
		g, ok := d.view.Server(key)
		if !ok || g.Status == nil || !attempting(g, d.status(g)) {
			return ok && g.Status != nil && g.Status.Verdict != fleet.VerdictConverged
		}
		select {
		case <-moved:
		case <-look.C:
		case <-ctx.Done():
			return true
		}
	}
}
