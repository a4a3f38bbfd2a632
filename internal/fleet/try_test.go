package fleet

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func failingStatus() Status {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return Status{
		Status: StatusFailed, Reason: ReasonImagePullFailed, Message: "503", Generation: 1, Revision: "r",
		Conditions: []Condition{{Type: ConditionReady, Status: False, Reason: ReasonCreateFailed, Message: "503"}, {Type: ConditionProgressing, Status: True, Reason: ReasonRetrying, Message: "create container x: 503"}},
		Runtime: Work{
			Plans:   3,
			Refusal: &Refusal{Reason: ReasonImagePullFailed, Message: "503", Task: "a/eu/p3/2", Generation: 1, Revision: "r", At: at},
			Course: Course{Attempts: 2, NextAttempt: &at, Failing: &Failing{Kind: TaskCreate, Service: "cache", What: "create container x", Class: ClassRefused, Reason: ReasonCreateFailed, Message: "503", Since: at, Count: 2}, LastFailed: &Plan{ID: "a/eu/p3", Kind: PlanApply, Cause: CauseRollOut, Generation: 1, Revision: "r", Attempt: 2, CreatedAt: at, Deadline: at.Add(time.Hour), Tasks: []Task{
				{ID: "a/eu/p3/1", Effect: Effect{Kind: TaskPull, Service: "cache"}, State: TaskDone, Tries: 1, Outcome: &Outcome{Class: ClassOK, At: at}, Noted: true},
				{ID: "a/eu/p3/2", Effect: Effect{Kind: TaskCreate, Service: "cache", Name: "x"}, State: TaskPending, Tries: 1, Outcome: &Outcome{Class: ClassRefused, At: at}, Noted: true},
				{ID: "a/eu/p3/3", Effect: Effect{Kind: TaskStart, Service: "cache", CreatedBy: "a/eu/p3/2"}, State: TaskPending},
			}}},
		},
	}
}

// attempt is the next attempt of what failed, its second task claimed.
func attempt(stored Status) Status {
	s := stored.Clone()
	s.Runtime.Plan, s.Runtime.LastFailed = s.Runtime.LastFailed, nil
	s.Runtime.Plan.named("a/eu/p4")
	s.Runtime.Plan.Attempt, s.Runtime.Attempts, s.Runtime.Plans, s.Runtime.NextAttempt = 3, 3, 4, nil
	s.Runtime.Plan.Deadline = s.Runtime.Plan.CreatedAt.Add(2 * time.Hour)
	s.Runtime.Plan.Claim(1, s.Runtime.Plan.CreatedAt.Add(90*time.Minute))
	s.Runtime.Failing.Count = 7
	return s
}

// A claim that is stored beside the status says all that a restart has to know of the try.
func TestG12_aStatusWithItsClaimIsTheStatusOfTheTry(t *testing.T) {
	stored := failingStatus()
	want := attempt(stored)
	if !want.Repeats(stored) || !stored.Repeats(want) {
		t.Fatal("the next try of what failed is news")
	}
	try := want.Try(stored, 12)
	if try.Status != 12 || try.Message != "" {
		t.Errorf("the claim is %+v", try)
	}
	got := stored.Tried(try)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("from status and claim (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(failingStatus(), stored); diff != "" {
		t.Errorf("the stored status was changed:\n%s", diff)
	}
	broken := stored
	broken.Runtime.LastFailed = nil
	if got := broken.Tried(try); got.Runtime.Plan != nil {
		t.Errorf("a claim of no plan: %+v", got.Runtime.Plan)
	}
}

// What served last is tried beside what is declared (C14): a claim of either knows what the
// other one has come to, and which plan it repeats.
func TestG12_C14_aClaimOfOneCourseKeepsTheOther(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	down := func(s Status) Status {
		s.Outage.Course = Course{
			Attempts: 4, NextAttempt: &at, Failing: &Failing{Kind: TaskStart, Service: "cache", What: "start cache container y", Class: ClassRefused, Reason: ReasonStartFailed, Message: "no", Since: at, Count: 4},
			LastFailed: &Plan{ID: "a/eu/p2", Kind: PlanApply, Cause: CauseOutage, Generation: 1, Revision: "r", Attempt: 4, CreatedAt: at, Deadline: at.Add(time.Hour), Tasks: []Task{
				{ID: "a/eu/p2/1", Effect: Effect{Kind: TaskStart, Service: "cache", ContainerID: "y"}, State: TaskPending, Tries: 1, Outcome: &Outcome{Class: ClassRefused, At: at}, Noted: true},
			}},
		}
		s.Conditions[1].Message += "; start cache container y: no"
		return s
	}
	stored := down(failingStatus())
	now := stored.Clone()
	now.Runtime.Course.Attempts, now.Runtime.Failing.Count, now.Runtime.NextAttempt = 9, 9, nil
	now.Runtime.Plan, now.Outage.LastFailed, now.Outage.NextAttempt = now.Outage.LastFailed, nil, nil
	now.Runtime.Plan.named("a/eu/p12")
	now.Runtime.Plan.Attempt, now.Outage.Attempts, now.Runtime.Plans = 5, 5, 12
	now.Runtime.Plan.Claim(0, at.Add(time.Minute))
	now.Outage.Failing.Count, now.Outage.Failing.Message = 8, "never"
	now.Conditions[1].Message = "create container x: 503; start cache container y: never"

	inTheMiddle := stored.Clone() // of what is declared, when the status was stored
	inTheMiddle.Runtime.Plan, inTheMiddle.Runtime.LastFailed = inTheMiddle.Runtime.LastFailed, nil
	for name, stored := range map[string]Status{"no plan": stored, "a plan of the other course": inTheMiddle} {
		if !now.Repeats(stored) {
			t.Fatalf("%s: the next try of what failed is news", name)
		}
		got := stored.Tried(now.Try(stored, 12))
		if got.Runtime.Plan == nil || got.Runtime.Plan.ID != "a/eu/p12" || got.Runtime.Plan.Cause != CauseOutage || got.Runtime.Plan.Tasks[0].State != TaskRunning || got.Runtime.Plan.Tasks[0].ContainerID != "y" {
			t.Errorf("%s: the plan is %+v", name, got.Runtime.Plan)
		}
		if got.Runtime.LastFailed == nil || got.Runtime.Attempts != 9 || got.Runtime.Failing.Count != 9 || got.Outage.Attempts != 5 || got.Outage.Failing.Count != 8 || got.Conditions[1].Message != now.Conditions[1].Message {
			t.Errorf("%s: %+v and %+v, and it says %s", name, got.Runtime.Course, got.Outage.Course, got.Conditions[1].Message)
		}
		if !got.Repeats(stored) {
			t.Errorf("%s: what the claim says is news", name)
		}
	}
	shown := now.Clone()
	v := NewServerView(Intent{Generation: 1}, Desired{}, &shown, nil)
	if want := "create container x: 503 (9 times since 2026-01-01 00:00:00 UTC); start cache container y: never (8 times since 2026-01-01 00:00:00 UTC)"; v.Conditions[1].Message != want {
		t.Errorf("it says %q", v.Conditions[1].Message)
	}
	healed := now.Clone()
	healed.Outage = Outage{}
	if healed.Repeats(stored) {
		t.Error("that what served runs again is no news")
	}
}

// A refusal whose words vary is said with the newest, so that a restart learns nothing new.
func TestG12_G1_aRefusalWithItsClaimSaysTheNewestAnswer(t *testing.T) {
	stored := failingStatus()
	now := attempt(stored)
	now.Runtime.Failing.Message = "504"
	got := stored.Tried(now.Try(stored, 12))
	if got.Runtime.Refusal.Message != "504" || got.Message != "504" || !got.Repeats(stored) {
		t.Errorf("it says %q and %q", got.Runtime.Refusal.Message, got.Message)
	}
}

func TestG12_onlyTheSameFailureOfTheSameStepsIsNoNews(t *testing.T) {
	for name, change := range map[string]func(*Status){
		"another reason":      func(s *Status) { s.Runtime.Failing.Reason = ReasonForbidden },
		"a success":           func(s *Status) { s.Runtime.Failing = nil },
		"another step":        func(s *Status) { s.Runtime.Plan.Tasks[1].Name = "y" },
		"a step that is done": func(s *Status) { s.Runtime.Plan.Tasks[1].State = TaskDone },
		"a status":            func(s *Status) { s.Status = StatusProvisioning },
		"a condition":         func(s *Status) { s.Conditions[1].Status = False },
		"what is seen":        func(s *Status) { s.ObservedImageTag = "v1" },
		"a stall":             func(s *Status) { s.Clock.Expired = true },
	} {
		s := attempt(failingStatus())
		if change(&s); s.Repeats(failingStatus()) {
			t.Errorf("%s is no news", name)
		}
	}
}

// The last answer, and how often it came, is shown although it is stored beside the status.
func TestP21_G12_whoLooksSeesTheLastAnswerAndTheCount(t *testing.T) {
	stored := failingStatus()
	now := attempt(stored)
	now.Runtime.Failing.Message = "504"
	now.saying("503", "504")
	now.Runtime.Refusal.Message = "504"
	if !now.Repeats(stored) {
		t.Fatal("a message that varies is news")
	}
	shown := stored.Counting(now.Try(stored, 12))
	v := NewServerView(Intent{Generation: 1}, Desired{}, &shown, nil)
	const often = " (7 times since 2026-01-01 00:00:00 UTC)"
	if v.Message != "504"+often || v.Conditions[1].Message != "create container x: 504"+often {
		t.Errorf("it says %q and %q", v.Message, v.Conditions[1].Message)
	}
	v.Waits("it waits")
	if v.Conditions[1].Message != "create container x: 504"+often+"; it waits" || v.Conditions[0].Message != "504"+often {
		t.Errorf("of what waits it says %q and %q", v.Conditions[0].Message, v.Conditions[1].Message)
	}
	if strings.Contains(stored.Conditions[0].Message, "504") {
		t.Error("the stored status was changed")
	}
}

// What is in a crash loop is started by plans that the status does not have: the claim has their
// steps, and how often it ended, so that a restart of kurad goes on where it was.
func TestG12_C11_aClaimOfARestartSaysAllOfIt(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	stored := Status{
		Status: StatusFailed, Reason: ReasonCrashLoop, Generation: 1, Revision: "r",
		Containers: []Container{{Service: "cache", ID: "y", State: ContainerRunning}},
		Crashes:    map[string]CrashCount{"cache": {Quick: 3, LastFinished: at, SeenAt: at, RunningSince: &at}, "proxy": {Quick: 1, LastFinished: at, SeenAt: at}},
		Runtime:    Work{Plans: 4},
	}
	now := stored.Clone()
	now.Crashes["cache"] = CrashCount{Quick: 40, LastFinished: at.Add(time.Hour), SeenAt: at.Add(time.Hour)}
	now.Containers[0].State, now.Containers[0].ExitCode, now.Containers[0].Finished = ContainerExited, 1, &at
	now.Runtime.Plans = 41
	now.Runtime.Plan = &Plan{ID: "a/eu/p41", Kind: PlanApply, Cause: CauseOutage, Generation: 1, Revision: "r", Deadline: at.Add(2 * time.Hour), Tasks: []Task{
		{ID: "a/eu/p41/1", Effect: Effect{Kind: TaskStart, Service: "cache", ContainerID: "y"}},
	}}
	now.Runtime.Plan.Claim(0, at.Add(90*time.Minute))
	if !now.Repeats(stored) {
		t.Fatal("one more start of what does not stay up is news")
	}
	got := stored.Tried(now.Try(stored, 12))
	if diff := cmp.Diff(now.Runtime, got.Runtime); diff != "" {
		t.Errorf("from status and claim (-want +got):\n%s", diff)
	}
	if c := got.Crashes["cache"]; c.Quick != 40 || !c.LastFinished.Equal(at.Add(time.Hour)) || c.RunningSince != nil {
		t.Errorf("the count is %+v", c)
	}
	if !got.Repeats(stored) || stored.Crashes["cache"].RunningSince == nil {
		t.Error("what the claim says is news, or the stored status was changed")
	}
	for name, change := range map[string]func(*Status){
		"it stays up":                func(s *Status) { delete(s.Crashes, "cache") },
		"it ran for long, and ended": func(s *Status) { s.Crashes["cache"] = CrashCount{LastFinished: at, SeenAt: at} },
		"another service ended":      func(s *Status) { s.Crashes["proxy"] = CrashCount{Quick: 2, LastFinished: at, SeenAt: at} },
		"another container":          func(s *Status) { s.Containers[0].ID = "z" },
		"it is paused":               func(s *Status) { s.Containers[0].State = ContainerPaused },
		"another step":               func(s *Status) { s.Runtime.Plan.Tasks[0].Kind = TaskRename },
		"its start is refused":       func(s *Status) { s.Outage.Failing = &Failing{Kind: TaskStart, Service: "cache"} },
		"another verdict":            func(s *Status) { s.Verdict = VerdictStalled },
		"what is declared fails too": func(s *Status) { s.Runtime.Failing = &Failing{Kind: TaskPull, Service: "cache"} },
	} {
		s := now.Clone()
		if change(&s); s.Repeats(stored) {
			t.Errorf("%s is no news", name)
		}
	}
}

// Tracks are tried beside what runs: each claim knows of all of them what they have come to.
func TestG12_aClaimOfOneTrackKeepsTheOthers(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	stored := failingStatus()
	failing := func(n int) *Failing {
		return &Failing{Kind: "mark", What: "mark", Class: ClassRefused, Reason: ReasonCreateFailed, Message: "no mark", Since: at, Count: n}
	}
	stored.Conditions[0].Message = "mark: no mark"
	stored.Tracks = map[Track]*Work{"mark": {Plans: 1, Revision: "v1", Refusal: &Refusal{Message: "no mark", At: at}, Course: Course{
		Attempts: 1, NextAttempt: &at, Failing: failing(1),
		LastFailed: &Plan{ID: "a/eu/g1/mark/p1", Kind: PlanApply, Cause: CauseManifest, Revision: "v1", Attempt: 1, Tasks: []Task{
			{ID: "a/eu/g1/mark/p1/1", Effect: Effect{Kind: "mark", Name: "v1"}, State: TaskPending, Tries: 1, Outcome: &Outcome{Class: ClassRefused, At: at}, Noted: true},
		}},
	}}}
	want := attempt(stored)
	w, until := want.On("mark"), at.Add(time.Minute)
	w.Plan, w.LastFailed = w.LastFailed, nil
	w.Plan.named("a/eu/g1/mark/p3")
	w.Plan.Attempt, w.Attempts, w.Plans, w.NextAttempt, w.EffectsUntil = 3, 3, 3, nil, &until
	w.Plan.Deadline = at.Add(2 * time.Hour)
	w.Plan.Claim(0, at.Add(time.Hour))
	w.Failing = failing(3)
	w.Failing.Message, w.Refusal.Message, want.Conditions[0].Message = "no mark, 2", "no mark, 2", "mark: no mark, 2"
	if !want.Repeats(stored) || want.PlanOf("none") != nil {
		t.Fatal("the next tries of what failed are news")
	}
	if diff := cmp.Diff(want, stored.Tried(want.Try(stored, 12))); diff != "" {
		t.Errorf("from status and claims (-want +got):\n%s", diff)
	}
	// A claim of the track alone: what runs waits for its next attempt.
	alone := stored.Clone()
	*alone.On("mark") = want.Clone().Tracks["mark"].Clone()
	alone.Conditions[0].Message = "mark: no mark, 2"
	if diff := cmp.Diff(alone, stored.Tried(alone.Try(stored, 12))); diff != "" {
		t.Errorf("of the track alone (-want +got):\n%s", diff)
	}
	healed := want.Clone()
	healed.Tracks["mark"].Failing, healed.Tracks["mark"].Revision = nil, "v2"
	if healed.Repeats(stored) {
		t.Error("that something else is desired is no news")
	}
}

// A claim of one track keeps that of another whose try had no answer: until its deadline that
// effect may still land, also for a kurad that was started again (P18).
func TestG12_P18_aClaimOfOneTrackKeepsTheUnansweredTryOfAnother(t *testing.T) {
	const mark Track = "mark"
	stored := failingStatus()
	stored.Runtime.Failing.Class, stored.Runtime.Refusal = ClassTransient, nil
	at := stored.Runtime.Failing.Since
	stored.Tracks = map[Track]*Work{mark: {Plans: 1, Course: Course{Attempts: 1, Failing: &Failing{Kind: "mark", Message: "no", Since: at, Count: 1}, LastFailed: &Plan{
		ID: "a/eu/m1", Kind: PlanApply, Cause: CauseManifest, Attempt: 1, Tasks: []Task{{ID: "a/eu/m1/1", Effect: Effect{Kind: "mark"}, State: TaskPending, Tries: 1}},
	}}}}
	now := attempt(stored)
	deadline := *now.Runtime.Plan.Tasks[1].Deadline
	now.Runtime.Plan.Record(1, Outcome{Class: ClassTransient, Reason: ReasonCreateFailed, Message: "503", At: at})
	now.Runtime.Plan.Tasks[1].Noted = true
	m := now.Tracks[mark]
	m.Plan, m.LastFailed, m.Plans, m.Attempts = m.LastFailed, nil, 2, 2
	m.Plan.named("a/eu/m2")
	m.Plan.Claim(0, at.Add(time.Minute))
	if !now.Repeats(stored) {
		t.Fatal("the next try of what failed is news")
	}
	got := stored.Tried(now.Try(stored, 12))
	if p := got.Tracks[mark].Plan; p == nil || p.ID != "a/eu/m2" || p.Tasks[0].State != TaskRunning {
		t.Errorf("of the mark it knows %+v", p)
	}
	if p := got.Runtime.Plan; p == nil || p.ID != "a/eu/p4" || p.Tasks[1].Deadline == nil || !p.Tasks[1].Deadline.Equal(deadline) || p.Tasks[1].Tries != now.Runtime.Plan.Tasks[1].Tries {
		t.Errorf("of the runtime's try it knows %+v", p)
	}
	again := now.Clone() // what the status has already is left as it is
	again.Tracks[mark].Plan.Claim(0, at.Add(2*time.Minute))
	if got := now.Tried(again.Try(now, 13)); got.Runtime.Plan.Tasks[1].State != TaskPending || got.Runtime.Plan.Tasks[1].Outcome == nil {
		t.Errorf("the stored try became %+v", got.Runtime.Plan.Tasks[1])
	}
}
