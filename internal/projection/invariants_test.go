package projection

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// conditionOrder is the table's.
var conditionOrder = func() (order []fleet.ConditionType) {
	for _, rule := range fleet.ConditionRules() {
		order = append(order, rule.Type)
	}
	return order
}()

var knownReasons = func() map[fleet.ConditionType]map[fleet.Reason]bool {
	all := map[fleet.ConditionType]map[fleet.Reason]bool{}
	for _, rule := range fleet.ConditionRules() {
		all[rule.Type] = map[fleet.Reason]bool{}
		for _, reason := range rule.Reasons {
			all[rule.Type][reason] = true
		}
	}
	return all
}()

// check holds what must be true of every turn, whatever the world does.
func (x *explorer) check(s *sim, in Input, out Output, outChanged bool) {
	x.turns++
	st := out.Status
	x.apart(s, in, out)
	x.checkZone(s, in, out)
	if x.turns%4 == 0 && !s.zone && !s.toy && (!s.global || s.ownership == fleet.OwnershipNotChecked) {
		with := in
		with.Tracks = []Track{Records{"staging"}, Balancer{"staging"}}
		if got := Decide(with); !reflect.DeepEqual(got, out) {
			x.complain(s, "tracks of which the server has nothing make a difference: %s", diffText(out.Status, got.Status))
		}
	}
	prev := fleet.Status{Status: fleet.StatusProvisioning}
	if in.Prev != nil {
		prev = *in.Prev
	}
	is := func(ct fleet.ConditionType) fleet.Condition { return condition(st, ct) }
	fail := func(bad bool, format string, args ...any) {
		if bad {
			x.complain(s, format, args...)
		}
	}
	deleting := in.Intent.Deleting != nil
	fresh := !s.seenFails && !s.seenBegun.IsZero() && (st.Runtime.EffectsUntil == nil || !s.seenBegun.Before(*st.Runtime.EffectsUntil)) && s.late == nil
	unseen := s.kube && prev.AdoptedResource != nil && s.seenObj == nil && !in.Seen.Instance.Direct // a watch may be behind (K6)
	fail(unseen && (st.AdoptedResource == nil || newPlan(st, prev) || st.Resource == nil && prev.Resource != nil), "a watch's word about what was taken over is trusted")
	fresh = fresh && !unseen
	if i := st.Runtime.Plan.Current(); i >= 0 && unansweredTask(st.Runtime.Plan.Tasks[i]) && s.seenBegun.Before(*st.Runtime.Plan.Tasks[i].Deadline) {
		fresh = false
	}

	// same input, same output (a sample); and what was stored, fed back, changes nothing
	if x.turns%16 == 0 {
		fail(!reflect.DeepEqual(Decide(in).Status, st), "the same input gives another output")
	}
	again := in
	again.Prev = &st
	if out.Latest != nil {
		again.Latest = *out.Latest
	}
	rendered := *s
	rendered.status, rendered.latest = &st, again.Latest
	if again.Desired = rendered.desired(); again.Desired.Revision != in.Desired.Revision && in.NotRenderable == nil {
		fail(out.Due.IsZero() || out.Due.After(in.Now), "the stored status renders otherwise, and no turn is due")
	} else if second := Decide(again); !out.Remove && changed(second) {
		x.complain(s, "the output, fed back, changes: %s", diffText(st, second.Status))
	}

	if s.silent {
		if outChanged && in.Prev != nil && deleting == (prev.Status == fleet.StatusDestroying) {
			x.complain(s, "a restart rewrites: %s", diffText(prev, st))
		}
		return
	}

	// nothing that is stored is unbounded
	for _, text := range texts(out) {
		fail(len(text) > 1024, "a text of %d bytes is stored: %s", len(text), text)
	}

	// no contradictory pair (P20)
	fail(st.Status == fleet.StatusFailed && st.Reason == "", "failed without a reason")
	fail(st.Status == fleet.StatusActive && (st.PublishedURL == "" || st.ServingImageTag == ""), "active without url or image")
	fail(st.Verdict == "", "no verdict")
	fail(st.Verdict == fleet.VerdictConverged && (st.Status != fleet.StatusActive || is(fleet.ConditionImageConverged).Status != fleet.True ||
		is(fleet.ConditionManifestConverged).Status != fleet.True || is(fleet.ConditionURLConverged).Status != fleet.True || st.Runtime.Refusal != nil),
		"converged contradicts its conditions")
	fail(is(fleet.ConditionReady).Status == fleet.True && (st.Verdict != fleet.VerdictConverged || is(fleet.ConditionEndpointReady).Status != fleet.True), "Ready contradicts the verdict")
	fail((st.Status == fleet.StatusDestroying || st.Status == fleet.StatusDestroyed) != deleting, "status %s, deleting %v", st.Status, deleting)
	fail(deleting && st.PublishedURL != "", "a server that is destroyed is published")
	for i, c := range st.Conditions {
		fail(c.Type != conditionOrder[i], "condition %s is not in the table's order", c.Type)
		fail(!knownReasons[c.Type][c.Reason], "reason %q of %s is not in the table", c.Reason, c.Type)
	}
	fail(len(st.Conditions) != len(conditionOrder), "%d conditions, the table has %d", len(st.Conditions), len(conditionOrder))

	// what is tried again is named where people look, and a stall says its cause (P21)
	for _, f := range []*fleet.Failing{st.Runtime.Failing, st.Outage.Failing} {
		if f == nil {
			continue
		}
		fail(f.Count < 1 || f.Since.IsZero() || f.Reason == "" || f.Class == fleet.ClassOK, "what fails is said badly: %+v", *f)
		progressing := is(fleet.ConditionProgressing)
		fail(fresh && progressing.Reason != fleet.ReasonHeld && !strings.Contains(progressing.Message, f.String()), "%s fails, and Progressing says %s: %s", f.What, progressing.Reason, progressing.Message)
		loud := st.Verdict == fleet.VerdictStalled || st.Verdict == fleet.VerdictProgressing
		fail(fresh && loud && !strings.Contains(is(fleet.ConditionReady).Message, f.String()), "%s fails, and the verdict %s says: %s", f.What, st.Verdict, is(fleet.ConditionReady).Message)
	}
	fail(st.Verdict == fleet.VerdictStalled && st.VerdictReason == fleet.ReasonDrifted, "a stalled server names no cause")

	// active is entered only through ready and owned endpoints, probed after convergence
	entered := st.Status == fleet.StatusActive && (prev.Status != fleet.StatusActive || prev.ServingImageTag != st.ServingImageTag || prev.PublishedURL != st.PublishedURL)
	gateURL := in.Desired.URL
	if in.entryClaim().foreign() {
		gateURL = prev.PublishedURL
		fail(entered && (prev.PublishedURL == "" || st.PublishedURL != prev.PublishedURL || prev.PublishedURL == in.Desired.URL), "active entered on a foreign host")
	}
	fail(entered && in.Desired.GlobalURL != "" && !s.advisory && !in.Seen.Global.Ready && !in.entryClaim().foreign(), "active entered while the global endpoint does not answer")
	fail(entered && !s.probe(gateURL).Ready, "active entered while the endpoint does not answer")
	fail(entered && (st.ConvergedAt == nil || s.now.Before(*st.ConvergedAt)), "active entered before the instance converged")
	for _, host := range []string{in.Desired.Hosts.Public, in.Desired.Hosts.GRPC} {
		r, asked := in.Seen.Hosts[host]
		ours := r.Ownership == fleet.OwnershipOurs && r.Failure == nil
		fail(entered && asked && !ours && st.PublishedURL == in.Desired.URL, "active entered on %s, which is %s", host, r.Ownership)
	}
	fail(entered && crashLoop(st), "active entered in a crash loop")
	old := in
	old.Seen.Endpoint.Begun, old.Seen.Published.Begun = s.now.Add(-time.Hour), s.now.Add(-time.Hour)
	if entered && (st.ConvergedAt != nil && s.now.Add(-time.Hour).Before(*st.ConvergedAt)) {
		o := Decide(old).Status
		fail(o.Status == fleet.StatusActive && (o.PublishedURL != prev.PublishedURL || o.ServingImageTag != prev.ServingImageTag || prev.Status != fleet.StatusActive), "active entered by a probe from before the instance converged")
	}

	// P2: a read that did not answer changes nothing but what it says of itself
	if s.seenFails && !deleting {
		fail(st.Status != prev.Status || st.ObservedImageTag != prev.ObservedImageTag || st.ServingImageTag != prev.ServingImageTag || out.Latest != nil, "a read that did not answer changed the status")
		fail(is(fleet.ConditionInstanceObserved).Status != fleet.Unknown || st.Verdict != fleet.VerdictUnobserved, "a read that did not answer is not shown")
	}

	// no effect while unreadable or held, and none that the last turn did not store
	stored := newPlan(st, prev)
	held := s.paused || s.allPaused || s.full && !prev.Admitted && !deleting
	mends := slices.Contains(slices.Collect(maps.Values(s.stopped)), true) // what kurad itself stopped (C14)
	fail(stored && s.seenFails, "a plan is made while unreadable")
	fail(stored && !deleting && s.forgotten(), "a plan is made before the mark of a lost record is known")
	fail(stored && !fresh, "a plan is made from a read that is older than an effect")
	fail(stored && held && (needsPlace(*st.Runtime.Plan) || (s.paused || s.allPaused) && !mends), "a plan is stored while held")
	fail(st.Runtime.Plan != nil && s.paused && !busyPlan(st.Runtime.Plan) && st.Runtime.Plan.Cause != fleet.CauseOutage && !s.seenFails && !s.seenBegun.IsZero(), "a stored plan survives a pause")
	fail(out.MayAct.Has(fleet.TrackRuntime) && s.paused && !mends && !mending(prev), "an effect may start while paused")
	fail(out.MayAct.Has(fleet.TrackRuntime) && s.seenFails, "an effect may start while unreadable")
	settled := prev.Settled == (fleet.Settled{Generation: in.Intent.Generation, Revision: in.Desired.Revision}) && !in.Latest.Status.Open()
	fail(stored && s.observe && settled && !deleting && st.Runtime.Plan.Cause != fleet.CauseCleanup && !mends, "an observing region starts work by itself")
	fail(Unsettled(st) && !Unsettled(prev) && (s.full || !stored), "a place is taken that admission did not give")
	fail(stored && prev.Runtime.Plan != nil && awaited(prev.Runtime.Plan), "a plan replaces one whose task runs")
	fail(st.Runtime.Plan != nil && !awaited(st.Runtime.Plan) && !s.seenFails && !s.seenBegun.IsZero() && (st.Runtime.Plan.Generation != in.Intent.Generation || st.Runtime.Plan.Revision != in.Desired.Revision && !deleting), "a plan for another generation survives")

	// the rules of the status, each said another way
	if fresh && !deleting && !s.seenBegun.IsZero() {
		fail(st.Generation != in.Intent.Generation || st.Revision != in.Desired.Revision, "a new generation is not taken up")
		if s.kube {
			x.checkResource(s, in, out, prev)
		}
		carriers, foreigner := 0, false
		other, stopped, parsable := false, false, true
		for _, c := range s.seen {
			if c.Foreign != "" {
				foreigner = foreigner || c.Name == "kura-acme-eu-cache"
				continue
			}
			if c.Service == "cache" {
				carriers++
				tag, ok := fleet.TagOf(c.Image)
				parsable = parsable && ok
				other = other || tag != in.Intent.ImageTag
				stopped = stopped || c.State != fleet.ContainerRunning
			}
		}
		if r := s.seenObj; r != nil {
			foreigner = r.Foreign != ""
			if !foreigner && r.ObservedImage != "" {
				carriers = 1
				_, ok := fleet.TagOf(r.ObservedImage)
				parsable, other = ok, r.ObservedImage != imageOf(in.Desired.Revision)
			}
		}
		fail(carriers == 0 && st.ObservedImageTag != "", "an absent instance has an image")
		fail(carriers == 0 && st.Status == fleet.StatusActive, "an absent instance is active")
		gone := carriers == 0 && !foreigner && prev.ObservedImageTag != ""
		if s.kube {
			gone = s.seenObj == nil && prev.Resource != nil
		}
		fail(gone && st.Runtime.Plan == nil && st.Runtime.NextAttempt != nil && st.Runtime.NextAttempt.After(s.now), "the instance is gone, and its recreation waits")
		fail(carriers > 0 && parsable && st.ObservedImageTag == "", "a present instance has no image")
		fail(carriers == 1 && !parsable && st.VerdictReason == fleet.ReasonDrifted, "what cannot be read is called drift")
		fail(foreigner && st.Status != fleet.StatusFailed, "a foreign container's name is not a failure")
		fail(st.Runtime.Refusal != nil && st.Status != fleet.StatusFailed, "a refusal is not a failure")
		fail(s.quick > fleet.CrashLoopFrom && carriers > 0 && st.Runtime.Plan == nil && prev.Runtime.Plan == nil && st.Status != fleet.StatusFailed && stopped && !foreigner && !s.paused && !s.observe, "a crash loop is not a failure")
		fail(other && carriers == 1 && !foreigner && st.Runtime.Refusal == nil && in.Latest.Status == fleet.DeploymentFailed && in.Latest.Generation == in.Intent.Generation &&
			st.ServingImageTag != in.Intent.ImageTag && st.Status != fleet.StatusFailed, "the latest deployment failed, another image runs, and the server is %s", st.Status)
		limit := in.Region.StallAfter.Std()
		fail(st.Clock.Since != nil && !st.Clock.Expired && st.Runtime.Refusal == nil && s.now.Sub(*st.Clock.Since)+st.Clock.Accrued.Std() >= limit && st.Status != fleet.StatusFailed, "the stall clock has run out unnoticed")
		fail(st.Clock.Expired && st.ServingImageTag != in.Intent.ImageTag && st.Status != fleet.StatusFailed, "a stalled server that never served the image is %s", st.Status)
	}
	kept := []string{fleet.HostOf(st.PublishedURL), in.Desired.Hosts.Public}
	for _, a := range st.Aliases {
		kept = append(kept, a.Host)
		fail(a.Until == nil || !a.Until.After(s.now) != a.Ended || a.Ended && !s.kube || a.Host == fleet.HostOf(st.PublishedURL), "alias %s of a server that publishes %s is kept until %v", a.Host, st.PublishedURL, a.Until)
	}
	for _, host := range out.Freed {
		fail(slices.Contains(kept, host) || deleting, "%s is given back and still used", host)
		fail(s.kube && s.ours() && !s.obj.edited && strings.Contains(s.obj.spec, host), "%s is given back and still routed", host)
	}
	for _, a := range prev.Aliases {
		fail(!slices.Contains(kept, a.Host) && !slices.Contains(out.Freed, a.Host) && !deleting, "the host of alias %s is kept for nothing", a.Host)
	}
	fail(st.Runtime.NextAttempt != nil && st.Runtime.NextAttempt.After(s.now.Add(maxRetry)), "the next attempt is more than 10 minutes away")
	latest := in.Latest
	if out.Latest != nil {
		latest = *out.Latest
		fail(!in.Latest.Status.Open(), "a closed deployment changes: history is not edited")
	}
	fail(latest.Status == fleet.DeploymentPending && !s.seenFails && began(st.Runtime.Plan, latest), "a deployment is pending after an effect")
	seen := resume(in, out).seen
	adopted := seen.document && seen.image.equal()
	fail(in.Latest.Status == fleet.DeploymentPending && latest.Status == fleet.DeploymentRunning && !began(prev.Runtime.Plan, latest) && st.Runtime.Refusal == nil && !adopted, "a deployment runs before any effect of its own")
	fail(latest.Status == fleet.DeploymentPending && !s.seenFails && prev.Runtime.Plan != nil && prev.Runtime.Plan.Tasks[0].Tries > 0 && prev.Runtime.Plan.Generation == in.Intent.Generation, "a deployment is pending after the plan that began it")
	fail(st.Runtime.Refusal != nil && st.Runtime.Refusal.Generation == in.Intent.Generation && latest.Status.Open() && !s.seenFails, "a refusal leaves the deployment open")
	fail(st.Clock.Since != nil && (s.paused || s.full && len(st.Holds) > 0) && len(st.Holds) > 0, "the stall clock runs under a hold")
	if out.Remove {
		for name, b := range s.boxes {
			fail(!b.foreign, "destroyed while %s is there", name)
		}
		fail(s.late != nil, "destroyed while an effect may still land")
		fail(s.kube && !in.Seen.Instance.Direct, "destroyed on the word of a watch")
		fail(s.kube && in.Seen.Instance.Resource != nil && in.Seen.Instance.Resource.Foreign == "", "destroyed while its KuraInstance is there")
	}

	// no lost wake-up: where no time is due, time alone changes nothing
	if !outChanged && out.Due.IsZero() && !out.NeedFreshRead.Has(fleet.TrackRuntime) && (st.Runtime.Plan == nil || !out.MayAct.Has(fleet.TrackRuntime)) {
		for _, d := range []time.Duration{20 * time.Minute, 200 * time.Hour} {
			later := in
			later.Now = in.Now.Add(d)
			if o := Decide(later); changed(o) {
				x.complain(s, "nothing is due, yet %s later something changes: %s", d, diffText(st, o.Status))
			}
		}
	}
}

// newPlan reports whether the turn stores a plan.
func newPlan(st, prev fleet.Status) bool {
	return st.Runtime.Plan != nil && (prev.Runtime.Plan == nil || prev.Runtime.Plan.ID != st.Runtime.Plan.ID)
}

// mending reports whether what kurad stopped is being put back: its name comes after the start.
func mending(st fleet.Status) bool {
	return st.Runtime.Plan != nil && st.Runtime.Plan.Cause == fleet.CauseOutage && len(st.Outage.Interrupted) > 0
}

// texts are those that a turn stores and that somebody else may have written.
func texts(out Output) []string {
	list := []string{out.Status.Message}
	if r := out.Status.Runtime.Refusal; r != nil {
		list = append(list, r.Message)
	}
	for _, h := range out.Status.Holds {
		list = append(list, h.Message)
	}
	for _, e := range out.Events {
		list = append(list, e.Message)
	}
	if out.Latest != nil {
		list = append(list, out.Latest.Message)
	}
	return list
}

// awaited reports whether a task of the plan runs that may not be given up.
func awaited(p *fleet.Plan) bool { return busyPlan(p) && !p.Tasks[p.Current()].Cancellable() }

// began reports whether a task of the plan was begun for the deployment.
func began(p *fleet.Plan, d fleet.Deployment) bool {
	return p != nil && p.Tasks[0].Tries > 0 && p.Generation >= d.Generation
}

func busyPlan(p *fleet.Plan) bool {
	i := p.Current()
	return i >= 0 && p.Tasks[i].State == fleet.TaskRunning
}

// crashLoop reports whether kurad has counted a crash loop of any service.
func crashLoop(st fleet.Status) bool {
	for _, c := range st.Crashes {
		if c.Quick >= fleet.CrashLoopFrom {
			return true
		}
	}
	return false
}
