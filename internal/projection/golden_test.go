package projection

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var update = flag.Bool("update", false, "rewrite the tables in testdata")

// The table that a person reviews: what is stored and seen, and what one turn makes of it.
func TestProjection_goldenTable(t *testing.T) {
	for file, v := range map[string]variant{"projection.golden": {}, "kubernetes.golden": {kube: true}} {
		t.Run(file, func(t *testing.T) { golden(t, filepath.Join("testdata", file), v) })
	}
}

func golden(t *testing.T, file string, v variant) {
	before := []value{
		{"new", func(s *sim) { s.status.Status = fleet.StatusProvisioning }},
		{"provisioning on v1, failed before", func(s *sim) {
			s.status.Status, s.latest.Status, s.latest.Reason = fleet.StatusProvisioning, fleet.DeploymentFailed, fleet.ReasonCreateFailed
		}},
		{"active on v1", func(s *sim) {
			s.served("v1")
			s.latest.Status = fleet.DeploymentSucceeded
			s.status.Settled = fleet.Settled{Generation: 1, Revision: s.desired().Revision}
		}},
		{"active on v0, v1 declared", func(s *sim) { s.served("v0"); s.latest.Status = fleet.DeploymentRunning }},
		{"failed, v1 was refused", func(s *sim) {
			s.served("v0")
			s.status.Status, s.status.Reason, s.latest.Status = fleet.StatusFailed, fleet.ReasonCreateFailed, fleet.DeploymentFailed
			s.status.Runtime.Refusal = &fleet.Refusal{Reason: fleet.ReasonCreateFailed, Message: "no", Generation: 1, Revision: s.desired().Revision}
		}},
		{"destroying", func(s *sim) {
			s.status.Status, s.status.Reason, s.intent.Deleting, s.latest.Status = fleet.StatusDestroying, fleet.ReasonDeleting, &s.now, fleet.DeploymentCancelled
		}},
	}
	worlds := slices.DeleteFunc(worlds(v), func(w value) bool {
		return !slices.Contains([]string{"healthy", "unreadable", "endpoint down", "owner foreign", "paused", "observed only", "region full", "schema too old"}, w.name)
	})
	var got bytes.Buffer
	fmt.Fprint(&got, "One turn of a server that wants v1, from what is stored, what the runtime holds and how the world is.\n",
		"A plan in brackets is intended and held; \"+\" names the holds. Rewritten by: go test ./internal/projection -run golden -update\n")
	for _, stored := range before {
		fmt.Fprintf(&got, "\n## %s\n\n", stored.name)
		w := tabwriter.NewWriter(&got, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "instance\tworld\tstatus\tverdict\tdeployment\tplan")
		for _, held := range instances(v).values {
			for _, world := range worlds {
				s := newSim(v)
				s.now = epoch.Add(time.Hour)
				s.status = &fleet.Status{Generation: 1, Revision: s.desired().Revision}
				stored.set(s)
				held.set(s)
				world.set(s)
				s.look()
				fmt.Fprintf(w, "%s\t%s\t%s\n", held.name, world.name, s.row())
			}
		}
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the table differs (-want +got); review it and run with -update:\n%s", diff)
	}
}

func (s *sim) served(tag string) {
	s.status.Status, s.status.ServingImageTag, s.status.PublishedURL = fleet.StatusActive, tag, s.desired().URL
}

// row is what one turn makes of the state.
func (s *sim) row() string {
	out := Decide(s.input())
	st := out.Status
	status := string(st.Status)
	if st.Reason != "" && st.Status == fleet.StatusFailed {
		status += "/" + string(st.Reason)
	}
	verdict := string(st.Verdict)
	if st.VerdictReason != "" {
		verdict += "/" + string(st.VerdictReason)
	}
	deployment := string(s.latest.Status)
	if out.Latest != nil {
		deployment += " → " + string(out.Latest.Status)
	}
	plan := "-"
	if st.Runtime.Plan != nil {
		plan = fmt.Sprintf("%s for %s: %s", st.Runtime.Plan.Kind, st.Runtime.Plan.Cause, brief(st.Runtime.Plan))
	} else if st.Runtime.Intended != nil {
		plan = fmt.Sprintf("[%s for %s: %s]", st.Runtime.Intended.Kind, st.Runtime.Intended.Cause, brief(st.Runtime.Intended))
	}
	for _, h := range st.Holds {
		plan += " +" + string(h.Kind)
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s", status, verdict, deployment, plan)
}
