package projection

import (
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// checkResource holds what must be true of every turn of a server of a Kubernetes region
// that has a fresh read.
func (x *explorer) checkResource(s *sim, in Input, out Output, prev fleet.Status) {
	fail := func(bad bool, format string, args ...any) {
		if bad {
			x.complain(s, format, args...)
		}
	}
	st, r := out.Status, s.seenObj
	fail((r == nil) != (st.Resource == nil) || r != nil && st.Resource.UID != r.UID, "what was seen of the object is not stored")
	fail(st.Crashes != nil || st.Containers != nil || st.VolumesRemoved, "a KuraInstance is treated as containers")
	ours := r != nil && r.Foreign == ""
	differs := ours && (r.Revision != in.Desired.Revision || len(r.Differs) > 0)

	// what is planned is for the very object that was seen
	if p := st.Runtime.Plan; p != nil && !busyPlan(p) {
		task := p.Tasks[0]
		fail(len(p.Tasks) != 1 || task.Kind != fleet.TaskApply || task.Digest != in.Desired.Revision, "the plan is not one apply of the document: %s", brief(p))
		fail(r != nil && !ours, "a plan for an object that is somebody else's")
		fail(ours && task.UID != r.UID || r == nil && task.UID != "", "a plan for another object than there is")
		fail(ours && !differs, "an apply of what is there already")
		fail(ours && r.Deleting, "an apply to an object that is being deleted")
		fail(ours && task.Adopted != r.Adopted, "a plan that does not say whether the object carries our labels")
	}
	// P14: what differs is planned, or something says why not
	marked := out.Latest != nil && out.Latest.RestartMark != in.Latest.RestartMark && !out.Due.After(in.Now) // the next turn renders with it
	waits := s.forgotten() || marked || len(st.Holds) > 0 || st.Runtime.NextAttempt != nil && st.Runtime.NextAttempt.After(s.now)
	fail((r == nil || differs && !r.Deleting) && st.Runtime.Plan == nil && !waits && !in.Latest.CreatedAt.IsZero(), "the object is not as desired, and nothing is planned")

	// K6
	unconfirmed := ours && r.Adopted && in.Prev != nil && in.Prev.AdoptedResource != nil && in.Prev.AdoptedResource.Generation == in.Intent.Generation &&
		slices.ContainsFunc(slices.Concat(r.Differs, r.Held), func(d fleet.FieldDifference) bool { return strings.HasPrefix(d.Path, "spec.") })
	fail(unconfirmed && st.Runtime.Plan != nil && !busyPlan(st.Runtime.Plan), "what was taken over is changed before anybody applied it")
	held := slices.IndexFunc(st.Holds, func(h fleet.Hold) bool { return h.Kind == fleet.HoldAdoption })
	fail(unconfirmed != (held >= 0), "held for adoption: %v, want %v", held >= 0, unconfirmed)
	fail(held >= 0 && (len(r.Held) > 0 && !strings.Contains(st.Holds[held].Message, r.Held[0].Path) || len(r.Held) == 0 && !strings.Contains(st.Holds[held].Message, "spec.storageSize")), "the hold does not say what differs: %s", st.Holds)
	if a := prev.AdoptedResource; a != nil {
		fail((st.AdoptedResource != nil) != (r != nil && r.UID == a.UID && (r.Adopted || r.Foreign != "")), "the record of the adoption: %v", st.AdoptedResource)
	}

	// what the conditions say
	manifest := condition(st, fleet.ConditionManifestConverged)
	want := fleet.ReasonConverged
	switch {
	case r == nil:
		want = fleet.ReasonAbsent
	case !ours:
		want = fleet.ReasonForeignInstance
	case r.Deleting:
		want = fleet.ReasonTerminating
	case differs:
		want = fleet.ReasonDocumentDiffers
	case len(r.Held) > 0:
		want = fleet.ReasonFieldConflict
	case len(r.Dropped) > 0:
		want = fleet.ReasonSchemaTooOld
	}
	good := want == fleet.ReasonConverged || want == fleet.ReasonFieldConflict || want == fleet.ReasonSchemaTooOld
	fail(manifest.Reason != want || (manifest.Status == fleet.True) != good, "ManifestConverged is %s/%s, want %s", manifest.Status, manifest.Reason, want)
	for _, e := range out.Events {
		fail(e.Reason == string(fleet.ReasonSchemaTooOld) && prev.Resource != nil && len(prev.Conditions) > 0 && slices.Equal(prev.Resource.Dropped, r.Dropped), "the schema's lack is told again")
	}

	// P4, P5
	fail(ours && r.ObservedImage == "" && st.Status == fleet.StatusActive, "active before a roll-out is complete")
	image, other := condition(st, fleet.ConditionImageConverged), ours && r.ObservedImage != imageOf(in.Desired.Revision)
	fail(other && (image.Status != fleet.False || st.Verdict == fleet.VerdictConverged), "another image runs: ImageConverged is %s/%s, the verdict %s", image.Status, image.Reason, st.Verdict)
	entered := st.Status == fleet.StatusActive && (prev.Status != fleet.StatusActive || prev.Settled != st.Settled)
	fail(entered && (differs || !ours || r.Deleting), "active on an object that is not as desired")
	settles := st.Settled != prev.Settled || in.Latest.Status.Open() && out.Latest != nil && out.Latest.Status == fleet.DeploymentSucceeded
	gave := prev.Admitted && !st.Admitted && st.Status == fleet.StatusActive && prev.Generation == st.Generation && !prev.Clock.Expired
	anew := (prev.Generation != st.Generation || prev.Revision != st.Revision) && (prev.Status == fleet.StatusFailed || prev.Clock.Expired) // its place was given back
	rolledOut := s.obj == nil || s.obj.rolled.generation >= s.obj.applied                                                                   // the controller's own record
	fail((settles || gave || st.Verdict == fleet.VerdictConverged) && !anew && !rolledOut, "settled before the controller has rolled out what was applied (K8)")
	fail(st.RollOut != nil && st.Verdict == fleet.VerdictConverged, "converged while something is rolled out")
	silent := st.RollOut != nil && st.RollOut.Applied != nil && st.RollOut.Writes == 0 && !s.now.Before(st.RollOut.At.Add(silentAfter)) && ours && !differs && !r.Deleting
	progressing := condition(st, fleet.ConditionProgressing)
	shown := st.Runtime.Plan != nil || st.Clock.Expired || blocked(st.Holds)
	fail(!shown && silent != (progressing.Reason == fleet.ReasonSilent), "silent %v, and Progressing is %s/%s", silent, progressing.Status, progressing.Reason)
	fail(entered && s.obj != nil && st.ConvergedAt != nil && s.obj.uid == r.UID && st.ConvergedAt.Before(s.obj.made), "the object converged before it was made")
}
