package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var at0 = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

func TestErrorsNameTheThingTheFieldsAndTheCause(t *testing.T) {
	for _, c := range []struct {
		err  *Error
		want string
	}{
		{Errorf(CodeNotFound, "server %s does not exist", "a/b"), "server a/b does not exist"},
		{&Error{Fields: []FieldError{{"/a", "is empty"}, {"", "is odd"}}}, "/a: is empty; is odd"},
		{&Error{Message: "no", Fields: []FieldError{{"/a", "is empty"}}, Err: io.EOF}, "no: /a: is empty: EOF"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
	wrapped := fmt.Errorf("apply: %w", &Error{Code: CodeConflict, Err: io.EOF})
	if CodeOf(wrapped) != CodeConflict || !errors.Is(wrapped, io.EOF) {
		t.Errorf("got %q of %v", CodeOf(wrapped), wrapped)
	}
	if CodeOf(nil) != "" || CodeOf(io.EOF) != CodeInternal {
		t.Errorf("got %q and %q", CodeOf(nil), CodeOf(io.EOF))
	}
	if err := new(Invalid).Err("x"); err != nil {
		t.Errorf("nothing was added: %v", err)
	}
}

func TestDurationsReadAndWriteAsText(t *testing.T) {
	b, err := json.Marshal(Region{StallAfter: Duration(90 * time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	var r Region
	if err := json.Unmarshal(b, &r); err != nil || r.StallAfter.Std() != 90*time.Second {
		t.Errorf("got %v, %v", r.StallAfter, err)
	}
	if err := json.Unmarshal([]byte(`{"stall_after":"15 minutes"}`), &r); err == nil {
		t.Error(`"15 minutes" was read`)
	}
	for d, want := range map[Duration]string{0: "0s", maxGracePeriod: "10m", maxStallAfter: "24h", Duration(90 * time.Second): "1m30s"} {
		if got := d.Short(); got != want {
			t.Errorf("%s.Short(): got %q, want %q", d, got, want)
		}
	}
}

func TestWholeRegionsSurviveJSON(t *testing.T) {
	for _, r := range []Region{sampleRegion(), kubernetesRegion(), sampleRegion().WithDefaults()} {
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var got Region
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r, got); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	}
}

func TestScopesIncludeTheOnesBeforeThem(t *testing.T) {
	scopes := []Scope{ScopeRead, ScopeWrite, ScopeAdmin}
	for i, s := range scopes {
		for j, need := range scopes {
			if got := s.Covers(need); got != (i >= j) {
				t.Errorf("%s covers %s: got %v", s, need, got)
			}
		}
		if s.Covers("") || Scope("").Covers(s) || s.Covers("root") {
			t.Errorf("%s: an unknown scope is covered", s)
		}
	}
}

func TestOpenDeploymentsArePendingOrRunning(t *testing.T) {
	for s, want := range map[DeploymentStatus]bool{
		DeploymentPending: true, DeploymentRunning: true, DeploymentSucceeded: false,
		DeploymentFailed: false, DeploymentCancelled: false, DeploymentSuperseded: false,
	} {
		if s.Open() != want {
			t.Errorf("%s: got %v", s, s.Open())
		}
	}
}

func TestS5_planRunsItsTasksInOrder(t *testing.T) {
	p := &Plan{Tasks: []Task{
		{ID: "1", Effect: Effect{Kind: TaskCreate, Name: "a-next"}, State: TaskPending},
		{ID: "2", Effect: Effect{Kind: TaskStart, CreatedBy: "1"}, State: TaskPending},
		{ID: "3", Effect: Effect{Kind: TaskRemove, ContainerID: "old"}, State: TaskPending},
	}}
	if (*Plan)(nil).Current() != -1 || (*Plan)(nil).Clone() != nil {
		t.Error("no plan has no task")
	}
	if got := p.Runnable(at0); got != 0 {
		t.Fatalf("runnable: got %d", got)
	}
	original := p.Clone()
	task := p.Claim(0, at0.Add(time.Minute))
	if task.State != TaskRunning || task.Tries != 1 || !task.Deadline.Equal(at0.Add(time.Minute)) {
		t.Errorf("claimed: got %+v", task)
	}
	if original.Tasks[0].State != TaskPending {
		t.Error("the clone shares its tasks")
	}
	if got := p.Runnable(at0); got != 0 {
		t.Errorf("a claimed task of a daemon that crashed: got %d, want it again", got)
	}
	// An answer that is no success waits for the projection to say what it means.
	p.Record(0, Outcome{Class: ClassTransient})
	if got := p.Runnable(at0); got != -1 {
		t.Errorf("answered: got %d", got)
	}
	later := at0.Add(time.Second)
	p.Tasks[0].NotBefore, p.Tasks[0].Noted = &later, true
	if p.Runnable(at0) != -1 || p.Runnable(later) != 0 {
		t.Error("a task runs when it is due, not before")
	}
	clone := p.Clone()
	*clone.Tasks[0].NotBefore = at0
	if !p.Tasks[0].NotBefore.Equal(later) {
		t.Error("the clone shares its times")
	}
	p.Claim(0, later)
	p.Record(0, Outcome{Class: ClassOK, ContainerID: "new"})
	if p.Tasks[1].ContainerID != "new" || p.Tasks[2].ContainerID != "old" {
		t.Errorf("container ids: got %q and %q", p.Tasks[1].ContainerID, p.Tasks[2].ContainerID)
	}
	for i := 1; i < 3; i++ {
		if got := p.Runnable(at0); got != i {
			t.Fatalf("runnable: got %d, want %d", got, i)
		}
		p.Claim(i, later)
		p.Record(i, Outcome{Class: ClassOK})
	}
	if p.Current() != -1 || p.Runnable(at0) != -1 {
		t.Error("a plan whose tasks are done has none to run")
	}
}

func TestG2_everyTaskHasADeadline(t *testing.T) {
	for _, kind := range []TaskKind{TaskPull, TaskCreate, TaskStop, TaskRename, TaskStart, TaskRemove, TaskRemoveVolumes, "other"} {
		if got := (Task{Effect: Effect{Kind: kind}}).Timeout(); got < 30*time.Second || got > time.Hour {
			t.Errorf("%s: got %s", kind, got)
		}
	}
	if got := (Task{Effect: Effect{Kind: TaskStop, Grace: maxGracePeriod}}).Timeout(); got <= maxGracePeriod.Std() {
		t.Errorf("a stop may run %s, which is not longer than its grace period", got)
	}
}

func TestTasksSayWhatTheyDo(t *testing.T) {
	for kind, want := range map[TaskKind]string{
		TaskPull: "pull image i:v1", TaskCreate: "create container c", TaskStop: "stop cache container 0123456789ab", TaskRename: "rename container 0123456789ab to c",
		TaskStart: "start cache container 0123456789ab", TaskRemove: "remove cache container 0123456789ab", TaskRemoveVolumes: "remove the server's volumes", "other": "other",
	} {
		task := Task{Effect: Effect{Kind: kind, Name: "c", Image: "i:v1", Service: "cache", ContainerID: "0123456789abcdef"}}
		if got := task.Describe(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestServerViews(t *testing.T) {
	in := sampleIntent()
	desired := render(t, staging(t), sampleAccount(), sampleRegion(), in, Deployment{})
	v := NewServerView(in, desired, nil, nil)
	if v.Status != StatusProvisioning || v.Verdict != VerdictProgressing || v.Reason != ReasonAccepted || v.Served || v.Conditions == nil || v.DeclaredURL != desired.URL {
		t.Errorf("before the first turn: got %+v", v)
	}
	status := &Status{
		Status: StatusActive, Verdict: VerdictConverged, VerdictReason: ReasonReady, Message: "m", Generation: in.Generation,
		ServingImageTag: "1.2.0", PublishedURL: desired.URL, Conditions: []Condition{{Type: ConditionReady}},
	}
	v = NewServerView(in, desired, status, &Deployment{Seq: 1})
	if v.Status != StatusActive || v.Verdict != VerdictConverged || !v.Served || v.PublishedURL != desired.URL || len(v.Conditions) != 1 || v.Deployment.Seq != 1 || v.Message != "m" {
		t.Errorf("active: got %+v", v)
	}
	newer := in
	newer.Generation++
	if v = NewServerView(newer, desired, status, nil); v.Status != StatusActive || v.Verdict != VerdictProgressing || v.Reason != ReasonAccepted || v.Message != "" {
		t.Errorf("of an older generation: got %+v", v)
	}
	status.Revision = desired.Revision
	if v = NewServerView(in, desired, status, nil); v.Verdict != VerdictConverged {
		t.Errorf("of the desired document: got %+v", v)
	}
	status.Revision = "another"
	if v = NewServerView(in, desired, status, nil); v.Status != StatusActive || v.Verdict != VerdictProgressing || v.Reason != ReasonAccepted {
		t.Errorf("of a document that its region has changed since: got %+v", v)
	}
	unseen := &Status{Status: StatusActive, Verdict: VerdictUnobserved, VerdictReason: ReasonEndpointUnreachable, Message: "m", Generation: in.Generation}
	if v = NewServerView(newer, desired, unseen, nil); v.Verdict != VerdictUnobserved || v.Reason != ReasonEndpointUnreachable || v.Message != "m" {
		t.Errorf("of an older generation, and not seen since: got %+v", v)
	}
	in.Deleting = &at0
	if v = NewServerView(in, desired, status, nil); v.Status != StatusDestroying || v.Verdict != VerdictDestroying || v.PublishedURL != "" {
		t.Errorf("P18: being destroyed: got %+v", v)
	}
	status.Status = StatusDestroyed
	if v = NewServerView(in, desired, status, nil); v.Status != StatusDestroyed {
		t.Errorf("P18: destroyed: got %+v", v)
	}
}

func TestStatusClonesShareNothingThatChanges(t *testing.T) {
	s := Status{
		Aliases: []Alias{{Host: "a"}}, Conditions: []Condition{{Type: ConditionReady}}, Crashes: map[string]CrashCount{"cache": {Quick: 1}},
		Runtime: Work{Plan: &Plan{Tasks: []Task{{ID: "1"}}}}, Tracks: map[Track]*Work{"dns": {Plan: &Plan{Tasks: []Task{{ID: "1"}}}}},
	}
	c := s.Clone()
	c.Aliases[0].Host, c.Conditions[0].Status, c.Crashes["cache"] = "b", True, CrashCount{}
	c.PlanOf(TrackRuntime).Tasks[0].ID, c.PlanOf("dns").Tasks[0].ID, c.Tracks["records"] = "2", "2", &Work{}
	if s.Aliases[0].Host != "a" || s.Conditions[0].Status != "" || s.Crashes["cache"].Quick != 1 || s.Runtime.Plan.Tasks[0].ID != "1" ||
		len(s.Tracks) != 1 || s.Tracks["dns"].Plan.Tasks[0].ID != "1" {
		t.Errorf("the original changed: %+v", s)
	}
}

func TestExampleHosts(t *testing.T) {
	if got := staging(t).ExampleHost(mainPattern); got != "acme-eu-central-staging.kura.example.dev" {
		t.Errorf("got %q", got)
	}
	if got := staging(t).ExampleHost("x"); got != "" {
		t.Errorf("a pattern that does not render: got %q", got)
	}
}
