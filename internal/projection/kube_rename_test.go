package projection

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// rename plays the change of an account's handle with what Render renders: every turn is
// rendered from the status that the turn before has stored.
type rename struct {
	t       *testing.T
	now     time.Time
	account fleet.Account
	status  *fleet.Status
	latest  fleet.Deployment
	applied *fleet.KubeDocument
	down    string // a host that does not answer
	writes  int    // of the controller's
	applies []string
	events  []fleet.Event
	freed   []string
}

func (r *rename) input() Input {
	r.t.Helper()
	env, err := fleet.NewEnvironment("staging", "", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	region := fleet.Region{Name: "eu", Hosts: fleet.RegionHosts{Public: "public"}, Kubernetes: &fleet.Kubernetes{Cluster: "one", Image: "registry.test/kura"}}.WithDefaults()
	templates := map[string]fleet.HostTemplate{"public": {Name: "public", Pattern: "{account_handle}-{cluster_id}{env_suffix}.kura.test"}}
	in := Input{Now: r.now, Region: region, Latest: r.latest, Prev: r.status, Admit: true, AliasPeriod: aliasPeriod}
	in.Intent = fleet.Intent{Server: fleet.Server{Account: r.account.ID, Region: "eu", ImageTag: "v1"}, Generation: 1, Deployment: 1}
	if in.Desired, err = fleet.Render(env, fleet.Gathered{Account: &r.account, Region: &region, Templates: templates, Intent: in.Intent, Latest: &r.latest, Status: r.status}); err != nil {
		r.t.Fatal(err)
	}
	in.Seen.Instance.Begun = r.now
	if d := r.applied; d != nil {
		in.Seen.Instance.Resource = &fleet.KubeInstance{Namespace: d.Namespace, Name: d.Name, UID: "uid1", Revision: d.Revision, ObservedImage: "registry.test/kura:v1",
			Generation: int64(len(r.applies)), Written: fmt.Sprint(r.writes)}
	}
	in.Seen.Endpoint = r.probe(in.Desired.URL)
	if r.status != nil && r.status.PublishedURL != in.Desired.URL {
		in.Seen.Published = r.probe(r.status.PublishedURL)
	}
	return in
}

// probe answers on the hosts that the object routes.
func (r *rename) probe(url string) fleet.ProbeObservation {
	p := fleet.ProbeObservation{URL: url, Begun: r.now, Reason: fleet.ReasonReady, Ready: true}
	if host := fleet.HostOf(url); host == r.down || !slices.Contains(r.routed(), host) {
		p.Ready, p.Reason = false, fleet.ReasonNotResolvable
	}
	return p
}

func (r *rename) routed() []string {
	if r.applied == nil {
		return nil
	}
	hosts := []string{r.applied.Spec["publicHost"].(string)}
	aliases, _ := r.applied.Spec["clientHostAliases"].([]any)
	for _, a := range aliases {
		hosts = append(hosts, a.(string))
	}
	return hosts
}

// rest takes turns, and runs the tasks that they plan, until nothing is left to do now.
func (r *rename) rest() {
	r.t.Helper()
	for range 20 {
		r.now = r.now.Add(time.Second)
		r.writes++
		in := r.input()
		out := Decide(in)
		if !out.Changed() && (out.Status.Runtime.Plan == nil || !out.MayAct.Has(fleet.TrackRuntime)) {
			return
		}
		st := out.Status.Clone()
		r.status, r.events, r.freed = &st, append(r.events, out.Events...), append(r.freed, out.Freed...)
		if out.Latest != nil {
			r.latest = *out.Latest
		}
		if i := st.Runtime.Plan.Runnable(r.now); i >= 0 && out.MayAct.Has(fleet.TrackRuntime) && !out.Changed() {
			task := st.Runtime.Plan.Claim(i, r.now.Add(st.Runtime.Plan.Tasks[i].Timeout()))
			if task.Kind != fleet.TaskApply || task.Digest != in.Desired.Kubernetes.Revision {
				r.t.Fatalf("task %+v", task)
			}
			r.applied = in.Desired.Kubernetes
			r.applies = append(r.applies, strings.Join(r.routed(), "+"))
			st.Runtime.Plan.Record(i, fleet.Outcome{Class: fleet.ClassOK, Answered: true, At: r.now})
		}
	}
	r.t.Fatalf("no rest: %+v", r.status)
}

// Each change of hosts is one apply: a rename costs one at its start, a switch of the url
// that costs none, and one at the end of the alias (K7, P15, L5, L33).
func TestH8_aRenameIsOneApplyOneSwitchAndOneApplyWhenTheAliasEnds(t *testing.T) {
	const older, newer = "acme-eu-staging.kura.test", "zoom-eu-staging.kura.test"
	r := &rename{t: t, now: epoch, account: fleet.Account{ID: "acme"}, latest: fleet.Deployment{Account: "acme", Region: "eu", Seq: 1, ImageTag: "v1", Generation: 1, Status: fleet.DeploymentPending}}
	expect := func(when string, url string, applies ...string) {
		t.Helper()
		r.rest()
		if !slices.Equal(r.applies, applies) || r.status.PublishedURL != "https://"+url {
			t.Fatalf("%s: applied %q, published %s; want %q, %s", when, r.applies, r.status.PublishedURL, applies, url)
		}
	}
	switches := func() int {
		return len(slices.DeleteFunc(slices.Clone(r.events), func(e fleet.Event) bool { return e.Reason != "URLSwitched" }))
	}
	expect("declared", older, older)

	r.account.Handle, r.down = "zoom", newer
	expect("renamed", older, older, newer+"+"+older)
	revision := r.status.Revision
	for range 5 {
		r.now = r.now.Add(time.Hour)
		expect("the new host does not answer", older, older, newer+"+"+older)
	}
	r.down = ""
	expect("the new host answers", newer, older, newer+"+"+older)
	if r.status.Revision != revision || switches() != 1 || r.status.Verdict != fleet.VerdictConverged {
		t.Errorf("revision %s, was %s; switched %d times; %s", r.status.Revision, revision, switches(), r.status.Verdict)
	}
	r.now = r.now.Add(aliasPeriod - time.Hour)
	expect("the alias period is not over", newer, older, newer+"+"+older)
	if len(r.freed) > 0 || !slices.Contains(r.routed(), older) {
		t.Errorf("given back %q, routed %q", r.freed, r.routed())
	}
	r.now = r.now.Add(2 * time.Hour)
	expect("the alias period is over", newer, older, newer+"+"+older, newer)
	if !slices.Equal(r.freed, []string{older}) || len(r.status.Aliases) != 0 || r.status.Verdict != fleet.VerdictConverged || switches() != 1 {
		t.Errorf("given back %q, aliases %v, %s, switched %d times", r.freed, r.status.Aliases, r.status.Verdict, switches())
	}
}

func TestH8_anAliasIsGivenBackWhenNothingRoutesItAnyMore(t *testing.T) {
	p := play(t, settledOn(kube))
	p.doc = 2
	p.rest().is(fleet.StatusActive, fleet.VerdictConverged, "")
	p.paused = true
	p.pass(aliasPeriod + time.Hour)
	if a := p.status.Aliases; len(a) != 1 || !a[0].Ended || p.told("HostFreed") != 0 {
		t.Fatalf("the object routes it still: aliases %+v, told %d times", a, p.told("HostFreed"))
	}
	p.paused = false
	if plans := p.plans(); !slices.Equal(plans, []string{"apply uid1"}) {
		t.Errorf("planned %q", plans)
	}
	if len(p.status.Aliases) != 0 || p.told("HostFreed") != 1 || strings.Contains(p.obj.spec, "acme-eu.kura.test") {
		t.Errorf("aliases %+v, told %d times, applied %s", p.status.Aliases, p.told("HostFreed"), p.obj.spec)
	}
}

func TestH8_anAliasEndsWithItsObject(t *testing.T) {
	p := play(t, settledOn(kube))
	p.doc = 2
	p.rest()
	p.paused, p.obj = true, nil
	p.pass(aliasPeriod + time.Hour)
	if len(p.status.Aliases) != 0 || p.told("HostFreed") != 1 {
		t.Errorf("aliases %+v, told %d times", p.status.Aliases, p.told("HostFreed"))
	}
}
