package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares a text with testdata/<name>.txt, which a person should like to read.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s (-want +got), -update rewrites it:\n%s", path, d)
	}
}

// ago is far enough from the next minute that a slow machine does not matter.
func ago(hours int) time.Time {
	return time.Now().Add(-time.Duration(hours)*time.Hour - 30*time.Second)
}

func fleetOfEveryKind() []fleet.ServerView {
	seen := ago(1)
	view := func(account, region string, v fleet.Verdict, r fleet.Reason, want, observed, serving string, endpoint fleet.ConditionStatus) fleet.ServerView {
		return fleet.ServerView{
			Account: account, Region: region, Verdict: v, Reason: r, ObservedImageTag: observed, ServingImageTag: serving,
			Intent: fleet.Intent{Server: fleet.Server{ImageTag: want}}, LastObservedAt: &seen,
			Conditions: []fleet.Condition{
				{Type: fleet.ConditionReady, LastTransitionTime: ago(3)},
				{Type: fleet.ConditionEndpointReady, Status: endpoint, LastTransitionTime: ago(2)},
			},
		}
	}
	unobserved := view("umbra", "eu", fleet.VerdictUnobserved, fleet.ReasonEndpointUnreachable, "v2", "v2", "v2", fleet.Unknown)
	unobserved.FailedReads = 12
	never := fleet.ServerView{Account: "new", Region: "us", Verdict: fleet.VerdictProgressing, Reason: fleet.ReasonAccepted, Intent: fleet.Intent{Server: fleet.Server{ImageTag: "v1"}}}
	hidden := never
	hidden.Account, hidden.Verdict, hidden.Reason, hidden.FailedReads = "old", fleet.VerdictUnobserved, fleet.ReasonRuntimeRefused, 1
	return []fleet.ServerView{
		view("zeta", "us", fleet.VerdictConverged, "", "v2", "v2", "v2", fleet.True),
		view("acme", "us", fleet.VerdictFailed, fleet.ReasonImagePullFailed, "v3", "v2", "v2", fleet.True),
		view("acme", "eu", fleet.VerdictProgressing, fleet.ReasonRollingOut, "v3", "v2", "v2", fleet.False),
		view("drift", "eu", fleet.VerdictDrifted, fleet.ReasonDrifted, "v2", "v1", "v2", fleet.True),
		unobserved, never, hidden,
	}
}

func TestG6_statusTable(t *testing.T) {
	var b bytes.Buffer
	printServers(&b, fleetOfEveryKind())
	golden(t, "status", b.String())
}

func TestG6_statusOfOneServerInTheMiddleOfARollOut(t *testing.T) {
	seen := ago(1)
	id := "0123456789abcdef0123456789abcdef"
	s := serverStory{
		ServerView: fleet.ServerView{
			Account: "acme", Region: "eu", Instance: "kura-acme-eu", Generation: 4, Status: fleet.StatusActive,
			Verdict: fleet.VerdictProgressing, Reason: fleet.ReasonRollingOut, Intent: fleet.Intent{Server: fleet.Server{ImageTag: "v2"}},
			ObservedImageTag: "v1", ServingImageTag: "v1", PublishedURL: "https://acme-eu.kura.test:20000", DeclaredURL: "https://ada-eu.kura.test:20000",
			LastObservedAt: &seen,
			Deployment:     &fleet.Deployment{Seq: 2, ImageTag: "v2", Status: fleet.DeploymentRunning},
			Plan: &fleet.Plan{Kind: fleet.PlanReplace, Cause: fleet.CauseRollOut, Attempt: 1, Tasks: []fleet.Task{
				{Effect: fleet.Effect{Kind: fleet.TaskCreate, Service: "cache", Name: "kura-acme-eu-cache-next"}, State: fleet.TaskDone},
				{Effect: fleet.Effect{Kind: fleet.TaskStop, Service: "cache", ContainerID: id}, State: fleet.TaskRunning},
				{Effect: fleet.Effect{Kind: fleet.TaskRename, Service: "cache", ContainerID: id, Name: "kura-acme-eu-cache-old"}, State: fleet.TaskPending},
			}},
			Holds: []fleet.Hold{{Kind: fleet.HoldPaused, Message: "region eu is paused"}},
			Conditions: []fleet.Condition{
				{Type: fleet.ConditionReady, Status: fleet.False, Reason: fleet.ReasonRollingOut, LastTransitionTime: ago(1)},
				{Type: fleet.ConditionEndpointReady, Status: fleet.False, Reason: fleet.ReasonConnectFailed, LastTransitionTime: ago(1), Message: "connect to 127.0.0.1:20000: connection refused, which is a message of more than one line"},
				{Type: fleet.ConditionSidecarReady, Status: fleet.False, Reason: fleet.ReasonNotApplicable, LastTransitionTime: ago(9)},
			},
			Containers: []fleet.Container{{Name: "kura-acme-eu-cache", ID: id, State: fleet.ContainerRunning, Image: "localhost/cache:v1"}},
		},
		Events: []fleet.Event{
			{Account: "acme", Region: "eu", At: ago(30), Type: fleet.EventNormal, Reason: "Active", Message: "serves v1 at https://acme-eu.kura.test:20000"},
			{Account: "acme", Region: "eu", At: ago(1), Type: fleet.EventWarning, Reason: "EndpointReadyLost", Message: "ConnectFailed connect to 127.0.0.1:20000: connection refused"},
		},
	}
	var b bytes.Buffer
	printServer(&b, s)
	golden(t, "server", b.String())
}

func TestG6_coloursAreForTerminalsThatWantThem(t *testing.T) {
	pty := bytes.Buffer{} // no terminal: never a colour
	for _, v := range []fleet.Verdict{fleet.VerdictConverged, fleet.VerdictFailed, fleet.VerdictHeld} {
		if got := paint(&pty, v); got != string(v) {
			t.Errorf("%s is painted %q where no terminal is", v, got)
		}
	}
}

func TestStatusWatch_printsAgainOnlyWhatChanged(t *testing.T) {
	list := fleetOfEveryKind()
	later := fleetOfEveryKind()
	now := time.Now()
	later[0].LastObservedAt = &now
	later[4].FailedReads = 13
	for i := range later { // made a moment later
		later[i].Conditions = list[i].Conditions
	}
	if d := cmp.Diff(timeless(list), timeless(later)); d != "" {
		t.Errorf("another tick is news:\n%s", d)
	}
	later[0].Verdict = fleet.VerdictFailed
	if cmp.Diff(timeless(list), timeless(later)) == "" {
		t.Error("another verdict is no news")
	}
}
