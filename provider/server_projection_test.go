package provider

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// view is a server that wants version 2 and stands as the arguments say.
func view(verdict fleet.Verdict, reason fleet.Reason, serving, observed string, deployment fleet.DeploymentStatus) fleet.ServerView {
	seen := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return fleet.ServerView{
		Account: "acme", Region: "eu", Generation: 7, Verdict: verdict, Reason: reason, Message: "the engine says so",
		ServingImageTag: serving, ObservedImageTag: observed, LastObservedAt: &seen,
		Intent:     fleet.Intent{Server: fleet.Server{Account: "acme", Region: "eu", ImageTag: "2"}, Generation: 7},
		Deployment: &fleet.Deployment{Seq: 3, ImageTag: "2", Generation: 7, Status: deployment},
	}
}

// unreadable is a server that was made as declared and runs an image without a tag (P23).
func unreadable(verdict fleet.Verdict, serving string, deployment fleet.DeploymentStatus) fleet.ServerView {
	v := view(verdict, fleet.ReasonUnparsableImage, serving, "", deployment)
	if v.Conditions = []fleet.Condition{
		{Type: fleet.ConditionImageConverged, Status: fleet.False, Reason: fleet.ReasonUnparsableImage, Message: "runs registry.test/kura@sha256:0123, whose tag cannot be read, wants 2"},
		{Type: fleet.ConditionManifestConverged, Status: fleet.True, Reason: fleet.ReasonConverged},
	}; verdict == fleet.VerdictHeld {
		v.Reason, v.Holds = fleet.ReasonPaused, []fleet.Hold{{Kind: fleet.HoldPaused}}
	}
	v.Message = ""
	return v
}

func TestVerdict_whatReadPutsIntoImageTag(t *testing.T) {
	ours := before{imageTag: types.StringValue("2"), declared: "2"}
	tag, none := types.StringValue, types.StringNull()
	open, failed, done := fleet.DeploymentRunning, fleet.DeploymentFailed, fleet.DeploymentSucceeded
	for _, c := range []struct {
		name    string
		view    fleet.ServerView
		was     before
		want    types.String
		warning string // part of its text; "" for none
	}{
		{"intent was changed by somebody else", view(fleet.VerdictConverged, "", "2", "2", done), before{tag("1"), "1"}, tag("2"), ""},
		{"changed by somebody else, and it failed", view(fleet.VerdictFailed, fleet.ReasonCrashLoop, "1", "", failed), before{tag("1"), "1"}, tag("2"), "version 2 failed (CrashLoop)"},
		{"changed by somebody else, seen before and refreshed into state", view(fleet.VerdictFailed, fleet.ReasonCrashLoop, "1", "", failed), before{tag("2"), "1"}, tag("2"), "version 2 failed"},
		{"converged", view(fleet.VerdictConverged, "", "2", "2", done), ours, tag("2"), ""},
		{"converged after the state had said what serves", view(fleet.VerdictConverged, "", "2", "2", done), before{tag("1"), "2"}, tag("2"), ""},
		{"progressing", view(fleet.VerdictProgressing, fleet.ReasonRollingOut, "1", "1", open), ours, tag("2"), ""},
		{"held", view(fleet.VerdictHeld, fleet.ReasonPaused, "1", "1", open), ours, tag("2"), "changes are held (Paused)"},
		{"failed, another version serves", view(fleet.VerdictFailed, fleet.ReasonImagePullFailed, "1", "1", failed), ours, tag("1"), "version 2 failed (ImagePullFailed)"},
		{"failed, nothing has served", view(fleet.VerdictFailed, fleet.ReasonCrashLoop, "", "2", failed), ours, none, "No version of it has served yet"},
		{"failed, this version served before", view(fleet.VerdictFailed, fleet.ReasonCrashLoop, "2", "2", failed), ours, none, "version 2 failed (CrashLoop)"},
		{"failed, and a newer try is open", view(fleet.VerdictFailed, fleet.ReasonForeignInstance, "1", "1", open), ours, tag("2"), "version 2 failed (ForeignInstance)"},
		{"failed by its time", view(fleet.VerdictFailed, fleet.ReasonStalled, "", "2", open), ours, none, "does not get ready"},
		{"stalled, past its time", view(fleet.VerdictStalled, fleet.ReasonTimeout, "1", "2", open), ours, tag("1"), "does not get ready (Timeout)"},
		{"drifted in a region that only observes", view(fleet.VerdictDrifted, fleet.ReasonDrifted, "2", "1", done), ours, tag("1"), ""},
		{"drifted to something without a tag, which an apply replaces", view(fleet.VerdictDrifted, fleet.ReasonUnparsableImage, "2", "", done), ours, none, ""},
		{"drifted to something without a tag, which an apply leaves alone", unreadable(fleet.VerdictDrifted, "2", done), ours, tag("2"), "which version runs cannot be read"},
		{"settled once, and what runs has no tag", unreadable(fleet.VerdictProgressing, "2", done), ours, tag("2"), "which version runs cannot be read"},
		{"being rolled out, and what runs has no tag", unreadable(fleet.VerdictProgressing, "1", open), ours, tag("2"), ""},
		{"stalled, for what runs has no tag", unreadable(fleet.VerdictStalled, "1", open), ours, tag("2"), "registry.test/kura@sha256:0123, whose tag cannot be read, wants 2"},
		{"held, and what runs has no tag", unreadable(fleet.VerdictHeld, "1", done), ours, tag("2"), "changes are held"},
		{"absent in a region that only observes", view(fleet.VerdictAbsent, fleet.ReasonAbsent, "2", "", done), ours, none, ""},
		{"unobserved", view(fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable, "1", "1", open), ours, tag("2"), "What is known is 1m0s old (from 2026-01-02T03:04:05Z)"},
		{"unobserved, and the state says what serves", view(fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable, "1", "1", failed), before{tag("1"), "2"}, tag("1"), "Region \"eu\" cannot be seen"},
		{"unobserved after an import", view(fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable, "1", "1", open), before{none, ""}, tag("2"), "cannot be seen"},
		{"destroying", view(fleet.VerdictDestroying, fleet.ReasonDeleting, "1", "1", fleet.DeploymentCancelled), before{tag("1"), "2"}, tag("1"), "Somebody else asked for it"},
		{"destroying after an import", view(fleet.VerdictDestroying, fleet.ReasonDeleting, "1", "1", fleet.DeploymentCancelled), before{none, ""}, tag("2"), "is being destroyed"},
	} {
		got := project(c.view, c.was, time.Date(2026, 1, 2, 3, 5, 5, 0, time.UTC))
		if !got.imageTag.Equal(c.want) {
			t.Errorf("%s: image_tag = %s, want %s", c.name, got.imageTag, c.want)
		}
		pending := tag("2") // what the daemon wants, unless image_tag says so or it wants nothing any more
		if c.want.Equal(pending) || c.view.Verdict == fleet.VerdictDestroying {
			pending = none
		}
		if !got.pending.Equal(pending) {
			t.Errorf("%s: pending_image_tag = %s, want %s", c.name, got.pending, pending)
		}
		said := ""
		if got.warning != nil {
			said = got.warning.summary + " " + got.warning.detail
		}
		if c.warning == "" && said != "" || !strings.Contains(said, c.warning) {
			t.Errorf("%s: warning %q, want %q in it", c.name, said, c.warning)
		}
		if said != "" && c.view.Verdict != fleet.VerdictDestroying && c.view.Message != "" && !strings.Contains(said, "he engine says so") && c.view.Verdict != fleet.VerdictHeld {
			t.Errorf("%s: warning %q leaves out the daemon's own words", c.name, said)
		}
	}
}

// What is tried again and again is said in the plan, though that changes nothing: once for
// a region and cause, with the last answer, how often and since when (P21).
func TestP21_aPlanSaysWhatFailsAgainAndAgain(t *testing.T) {
	ours := before{imageTag: types.StringValue("2"), declared: "2"}
	const answer = "apply KuraInstance kura-acme-eu: create not allowed while custom resource definition is terminating (7 times since 2026-01-02 03:00:00 UTC)"
	failing := func(verdict fleet.Verdict, reason fleet.Reason) fleet.ServerView {
		v := view(verdict, reason, "2", "", fleet.DeploymentSucceeded)
		v.Message, v.Failing = "", &fleet.Failing{Reason: fleet.ReasonTypeNotServed, Count: 7}
		v.Conditions = []fleet.Condition{{Type: fleet.ConditionProgressing, Status: fleet.True, Reason: fleet.ReasonRetrying, Message: answer}}
		return v
	}
	gone := view(fleet.VerdictProgressing, fleet.ReasonDrifted, "2", "2", fleet.DeploymentSucceeded)
	gone.Conditions = []fleet.Condition{{Type: fleet.ConditionManifestConverged, Status: fleet.False, Reason: fleet.ReasonTerminating, Message: "KuraInstance kura/kura-acme-eu is being deleted; it is made again when it is gone"}}
	leaving := failing(fleet.VerdictDestroying, fleet.ReasonDeleting)
	leaving.Message = answer
	for name, c := range map[string]struct {
		view fleet.ServerView
		says []string // nil: nothing
	}{
		"absent, and it cannot be made": {failing(fleet.VerdictProgressing, fleet.ReasonAbsent), []string{`Region "eu"`, "(TypeNotServed)", "acme/eu", "progressing (Absent)", "Apply" + answer[len("apply"):]}},
		"leftovers cannot be removed":   {failing(fleet.VerdictConverged, ""), []string{"it is converged. Apply"}},
		"about to be gone":              {gone, []string{`Region "eu"`, "(Terminating)", "progressing (Drifted)", "KuraInstance kura/kura-acme-eu is being deleted"}},
		"being destroyed":               {leaving, []string{"Somebody else asked for it", answer[len("apply"):]}},
		"written since":                 {failing(fleet.VerdictProgressing, fleet.ReasonAccepted), nil},
	} {
		got := project(c.view, ours, time.Now())
		if !got.imageTag.Equal(types.StringValue("2")) || !got.pending.IsNull() || (got.warning != nil) != (c.says != nil) {
			t.Errorf("%s: image_tag %s, pending %s, warning %+v", name, got.imageTag, got.pending, got.warning)
		}
		for _, want := range c.says {
			if said := got.warning.summary + " " + got.warning.detail; !strings.Contains(said, want) {
				t.Errorf("%s: %q lacks %q", name, said, want)
			}
		}
	}
	a, b := failing(fleet.VerdictProgressing, fleet.ReasonAbsent), failing(fleet.VerdictProgressing, fleet.ReasonAbsent)
	b.Account = "bravo"
	if triedAgain(a).key != triedAgain(b).key {
		t.Error("one cause in a region is said twice")
	}
}

// What an endpoint said last is what a person needs who looks for the cause.
func TestVerdict_aServerThatDoesNotAnswerSaysWhatItsEndpointSaid(t *testing.T) {
	v := view(fleet.VerdictStalled, fleet.ReasonEndpointNotReady, "1", "2", fleet.DeploymentRunning)
	v.Message = "not settled after 15m0s: https://x is not ready (HTTPNotReady)"
	v.Conditions = []fleet.Condition{{Type: fleet.ConditionEndpointReady, Status: fleet.False, Reason: fleet.ReasonHTTPNotReady, Message: "GET https://x/up answered 503"}}
	if got, want := why(v), "Not settled after 15m0s: https://x is not ready (HTTPNotReady). The last probe (HTTPNotReady): GET https://x/up answered 503."; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	v.Reason = fleet.ReasonDrifted
	if got := why(v); strings.Contains(got, "probe") {
		t.Errorf("the endpoint is not what it waits for: %q", got)
	}
}

func TestVerdict_aServerThatWasNeverSeenSaysHowOftenThatFailed(t *testing.T) {
	v := view(fleet.VerdictUnobserved, fleet.ReasonRuntimeRefused, "", "", fleet.DeploymentPending)
	v.LastObservedAt = nil
	for failed, want := range map[int]string{0: "since kurad started. The plan", 1: "since kurad started; 1 read failed. The plan", 12: "since kurad started; 12 reads failed. The plan"} {
		v.FailedReads = failed
		if got := trouble(v, time.Now()).detail; !strings.Contains(got, want) {
			t.Errorf("%d failed: %q does not say %q", failed, got, want)
		}
	}
}

func TestVerdict_oneRegionsTroubleIsSaidOnce(t *testing.T) {
	a, b := view(fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable, "", "", fleet.DeploymentRunning), view(fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable, "", "", fleet.DeploymentRunning)
	b.Account = "bravo"
	if trouble(a, time.Now()).key != trouble(b, time.Now()).key {
		t.Error("two servers of a region that cannot be seen are two warnings")
	}
	a.Verdict, b.Verdict = fleet.VerdictFailed, fleet.VerdictFailed
	if trouble(a, time.Now()).key == trouble(b, time.Now()).key {
		t.Error("two servers that failed are one warning")
	}
}

func TestWait_howItEnds(t *testing.T) {
	mine := target{key: fleet.ServerKey{Account: "acme", Region: "eu"}, generation: 7, deployment: 3}
	with := func(v fleet.ServerView, change func(*fleet.ServerView)) *fleet.ServerView {
		change(&v)
		return &v
	}
	same := func(*fleet.ServerView) {}
	now := time.Now()
	good := view(fleet.VerdictConverged, "", "2", "2", fleet.DeploymentSucceeded)
	for _, c := range []struct {
		name string
		view *fleet.ServerView
		want ending
	}{
		{"converged", with(good, same), endSettled},
		{"converged by a later write that kept the deployment", with(good, func(v *fleet.ServerView) { v.Generation = 8 }), endSettled},
		{"from before the write", with(good, func(v *fleet.ServerView) { v.Generation = 6 }), endWaiting},
		{"from before the redeploy", with(good, func(v *fleet.ServerView) { v.Deployment = &fleet.Deployment{Seq: 2} }), endWaiting},
		{"somebody else's newer deployment", with(good, func(v *fleet.ServerView) { v.Deployment = &fleet.Deployment{Seq: 4} }), endSuperseded},
		{"gone", nil, endGone},
		{"being destroyed", with(good, func(v *fleet.ServerView) { v.Intent.Deleting = &now }), endLeaving},
		{"failed", with(view(fleet.VerdictFailed, fleet.ReasonImagePullFailed, "1", "1", fleet.DeploymentFailed), same), endRefused},
		{"stalled", with(view(fleet.VerdictStalled, fleet.ReasonTimeout, "1", "2", fleet.DeploymentRunning), same), endStalled},
		{"failed by its time", with(view(fleet.VerdictFailed, fleet.ReasonStalled, "", "2", fleet.DeploymentRunning), same), endStalled},
		{"progressing", with(view(fleet.VerdictProgressing, fleet.ReasonRollingOut, "1", "1", fleet.DeploymentRunning), same), endWaiting},
		{"unobserved", with(view(fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable, "1", "1", fleet.DeploymentRunning), same), endWaiting},
		{"held by admission, which ends by itself", with(view(fleet.VerdictHeld, fleet.ReasonAdmission, "1", "1", fleet.DeploymentPending), func(v *fleet.ServerView) {
			v.Holds = []fleet.Hold{{Kind: fleet.HoldAdmission}}
		}), endWaiting},
		{"paused", with(view(fleet.VerdictHeld, fleet.ReasonPaused, "1", "1", fleet.DeploymentPending), func(v *fleet.ServerView) {
			v.Holds = []fleet.Hold{{Kind: fleet.HoldPaused}}
		}), endPaused},
	} {
		if got := mine.judge(c.view); got != c.want {
			t.Errorf("%s: ends as %d, want %d", c.name, got, c.want)
		}
	}
}
