package projection

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// aliasPeriod is how long an old host is kept in the model.
const aliasPeriod = 7 * 24 * time.Hour

// sim is a model of one server and its world: an engine with containers, an endpoint, a
// clock. Its step is a turn as the reconciler takes it; between steps anything may
// happen to the world (moves).
type sim struct {
	now     time.Time
	intent  fleet.Intent
	latest  fleet.Deployment
	status  *fleet.Status
	removed bool
	doc     int  // version of the region's document
	silent  bool // kurad has just started and heard of nothing
	variant

	boxes   map[string]box // by name
	nextID  int
	late    *fleet.Task     // an unanswered task whose effect still lands
	exits   int             // quick exits, ever
	quick   int             // those of the carrier that kurad cannot have missed, since it last stayed up
	stopped map[string]bool // services that kurad stopped, and has started nothing in their place

	grpc   string                    // the declared host of that kind
	owners map[string]fleet.HostRead // what is read of hosts, where it is not what the ownership says

	exact   bool // each reason of an endpoint makes another state
	telling bool // events are kept
	events  []fleet.Event

	cluster // of a Kubernetes region
	toyWorld
	zoneWorld

	seen      []fleet.Container // the newest listing, which may be older than the world
	seenBegun time.Time
	seenFails bool

	faults
}

// variant is what the region declares.
type variant struct {
	helper bool // a second service
	ports  bool // and both have fixed ports, which the second document exchanges
	global bool // a global host
	kube   bool // a KuraInstance and not containers
	toy    bool // a track beside the runtime
	// advisory: the global endpoint is a condition only.
	advisory bool
	zone     bool // the tracks of its hosts, whose records kurad publishes
}

// faults are what is not as it should be; the zero value is a healthy world.
type faults struct {
	unreadable bool
	endpoint   fleet.Reason // "" answers
	globalDown bool
	ownership  fleet.Ownership // of the declared public host
	tasks      fleet.Class     // "" answers ok; "unanswered" lands later
	paused     bool
	observe    bool
	full       bool // no place under max_unsettled
	allPaused  bool // kurad is
	crash      bool // what is started ends at once
	noImage    bool // what is declared cannot be had
	hangs      bool // a pull does not end
	noStart    bool // what is declared cannot be started, unless it served before
	lag        bool // listings are older than the world, until a fresh one is asked for
	kubeFaults
	toyFaults
	zoneFaults
}

const unanswered fleet.Class = "unanswered"

// box is a container of the model.
type box struct {
	id                string
	service, tag, dig string
	image             string // what the engine calls it; "": by its tag
	state             fleet.ContainerState
	foreign           bool
	port              int // of the host; 0: none
	started, finished time.Time
}

var epoch = time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)

func newSim(v variant) *sim {
	s := &sim{now: epoch, boxes: map[string]box{}, stopped: map[string]bool{}, variant: v}
	s.intent = fleet.Intent{Server: fleet.Server{Account: "acme", Region: "eu", ImageTag: "v1"}, Generation: 1, Deployment: 1}
	s.latest = fleet.Deployment{Account: "acme", Region: "eu", Seq: 1, ImageTag: "v1", Generation: 1, Status: fleet.DeploymentPending, CreatedAt: epoch}
	return s
}

func (s *sim) clone() *sim {
	c := *s
	c.boxes, c.stopped, c.records = maps.Clone(s.boxes), maps.Clone(s.stopped), maps.Clone(s.records)
	return &c
}

func (s *sim) desired() fleet.Desired {
	d := fleet.Desired{
		Instance: "kura-acme-eu", URL: "https://acme-eu.kura.test:1", ImageTag: s.intent.ImageTag,
		Hosts: fleet.Hosts{Public: "acme-eu.kura.test"},
	}
	if s.doc >= 2 {
		d.URL, d.Hosts.Public = "https://acme2-eu.kura.test:1", "acme2-eu.kura.test" // a rename: hosts move with it
	}
	if s.global {
		d.GlobalURL, d.Hosts.Global = "https://acme.kura.test", "acme.kura.test"
	}
	d.Hosts.GRPC = s.grpc
	if s.kube {
		s.document(&d)
		return d
	}
	d.Revision = fmt.Sprintf("%s/%s/%d", s.intent.ImageTag, s.latest.RestartMark, s.doc)
	carrier := fleet.ServiceDocument{
		Service: "cache", Name: "kura-acme-eu-cache", Image: "localhost/kura:" + s.intent.ImageTag, Carrier: true,
		GracePeriod: fleet.Duration(2 * time.Second), Digest: "c/" + d.Revision,
	}
	d.Containers = &fleet.ContainerDocument{Endpoint: "local", Services: []fleet.ServiceDocument{carrier}}
	if s.helper {
		d.Containers.Services = append(d.Containers.Services, fleet.ServiceDocument{
			Service: "proxy", Name: "kura-acme-eu-proxy", Image: "localhost/proxy:1", Digest: fmt.Sprintf("p/%d", s.doc),
		})
		for i := range d.Containers.Services {
			if !s.ports {
				break
			}
			port := 1001 + (i+s.doc)%2
			d.Containers.Services[i].Ports = []fleet.PortDocument{{Name: "http", Container: 8080, Host: port, Protocol: "tcp"}}
		}
	}
	return d
}

// look refreshes the listing.
func (s *sim) look() {
	s.seenFails = s.unreadable
	if s.unreadable {
		return
	}
	s.seenBegun, s.seen, s.silent = s.now, nil, false
	if s.kube {
		s.watch()
		return
	}
	for _, name := range slices.Sorted(maps.Keys(s.boxes)) {
		b := s.boxes[name]
		c := fleet.Container{Name: name, ID: b.id, Service: b.service, Image: "localhost/kura:" + b.tag, State: b.state, Digest: b.dig, RestartMark: markOf(strings.TrimPrefix(b.dig, "c/"))}
		switch {
		case b.image != "":
			c.Image = b.image
		case b.tag == "":
			c.Image = "localhost/kura"
		case b.service == "proxy":
			c.Image = "localhost/proxy:1"
		}
		if b.port != 0 && b.state.Alive() {
			c.Ports = map[string]int{"8080/tcp": b.port}
		}
		if b.foreign {
			c = fleet.Container{Name: name, ID: b.id, Image: c.Image, State: b.state, Foreign: "server other/eu of environment staging"}
		}
		if b.state == fleet.ContainerExited {
			started, finished := b.started, b.finished
			c.Started, c.Finished, c.ExitCode = &started, &finished, 3
		}
		s.seen = append(s.seen, c)
	}
}

// markOf is the mark in a revision of the model.
func markOf(revision string) string {
	if parts := strings.Split(revision, "/"); len(parts) > 2 {
		return parts[1]
	}
	return ""
}

// forgotten is the mark of something that runs, of which the record says nothing: that was lost.
func (s *sim) forgotten() bool {
	if s.latest.RestartMark != "" || s.status != nil && s.status.ServingImageTag != "" {
		return false
	}
	return s.obj != nil && markOf(s.obj.spec) != "" || slices.ContainsFunc(slices.Collect(maps.Values(s.boxes)), func(b box) bool { return markOf(strings.TrimPrefix(b.dig, "c/")) != "" })
}

// serving reports whether the endpoint answers.
func (s *sim) serving() bool {
	if s.kube {
		return s.endpoint == "" && s.ours() && s.obj.observed != ""
	}
	return s.endpoint == "" && s.carrier().state == fleet.ContainerRunning
}

// carrier is the box of the carrier that served last, whatever it is called.
func (s *sim) carrier() box { return s.last("cache") }

// last is the box of a service that served last.
func (s *sim) last(service string) box {
	last := box{}
	for _, name := range slices.Sorted(maps.Keys(s.boxes)) {
		b := s.boxes[name]
		served := b.service == service && !b.foreign && b.state != fleet.ContainerCreated
		if served && (last.id == "" || b.state == fleet.ContainerRunning) {
			last = b
		}
	}
	return last
}

func (s *sim) probe(url string) fleet.ProbeObservation {
	p := fleet.ProbeObservation{URL: url, Begun: s.now, Ready: s.serving(), Reason: fleet.ReasonReady}
	if s.zone {
		p.Ready = s.leads(fleet.HostOf(url), p.Ready)
	}
	if !p.Ready {
		p.Reason = cmp.Or(s.endpoint, fleet.ReasonConnectFailed)
	}
	return p
}

func (s *sim) input() Input {
	in := Input{
		Now: s.now, Intent: s.intent, Desired: s.desired(), Latest: s.latest, Prev: s.status, Admit: !s.full, AliasPeriod: aliasPeriod,
		Region: fleet.Region{Name: "eu", StallAfter: fleet.Duration(15 * time.Minute), MaxUnsettled: 10, Paused: s.paused, Remediation: fleet.RemediationHeal},
	}
	if s.observe {
		in.Region.Remediation = fleet.RemediationObserve
	}
	if s.allPaused {
		in.Holds = []fleet.Hold{{Kind: fleet.HoldPaused, Message: "kurad is paused"}}
	}
	s.readsHosts(&in)
	if s.silent {
		return in
	}
	s.seesToy(&in)
	s.seesZone(&in)
	in.Seen.Instance = fleet.InstanceObservation{Begun: s.seenBegun, Containers: s.seen, Resource: s.seenObj, Direct: s.asked}
	if s.seenFails {
		in.Seen.Instance.Unreadable = &fleet.ReadFailure{Reason: fleet.ReasonEndpointUnreachable, Message: "refused", Since: s.now, Count: 1}
	}
	in.Seen.Endpoint = s.probe(in.Desired.URL)
	if s.status != nil && s.status.PublishedURL != "" && s.status.PublishedURL != in.Desired.URL {
		in.Seen.Published = s.probe(s.status.PublishedURL)
	}
	if s.global {
		in.Seen.Global = s.probe(in.Desired.GlobalURL)
		if s.globalDown {
			in.Seen.Global.Ready, in.Seen.Global.Reason = false, fleet.ReasonTimeout
		}
	}
	return in
}

// store is the end of a turn.
func (s *sim) store(out Output) {
	st := out.Status
	s.status = &st
	if out.Latest != nil {
		s.latest = *out.Latest
	}
	s.removed = out.Remove
	if s.telling {
		s.events = append(slices.Clip(s.events), out.Events...)
	}
}

// act runs the current task of the stored plan, as the executor does, and records the
// answer; it returns a complaint where the task does what it must not.
func (s *sim) act() string {
	st := s.status.Clone()
	i := st.Runtime.Plan.Runnable(s.now)
	if i < 0 {
		i = st.Runtime.Plan.Current()
	}
	task := st.Runtime.Plan.Claim(i, s.now.Add(st.Runtime.Plan.Tasks[i].Timeout()))
	s.now = s.now.Add(100 * time.Millisecond)
	if s.late != nil && s.late.ID == task.ID && s.tasks != unanswered {
		s.land() // tasks are idempotent: an answer to a later try settles the first
	}
	if s.hangs && task.Kind == fleet.TaskPull {
		s.status = &st
		return ""
	}
	o := fleet.Outcome{Class: fleet.ClassOK, Answered: true, At: s.now}
	complaint := ""
	switch s.tasks {
	case fleet.ClassRefused:
		o.Class, o.Reason, o.Message = fleet.ClassRefused, fleet.ReasonCreateFailed, "refused"
	case fleet.ClassTransient:
		o.Class, o.Reason, o.Message = fleet.ClassTransient, fleet.ReasonRuntimeError, "not today"
	case unanswered:
		o.Class, o.Answered, o.Reason = fleet.ClassTransient, false, fleet.ReasonEndpointUnreachable
		if copied := task; !task.Cancellable() {
			s.late = &copied
		}
	default:
		if s.refuses(task) {
			o.Class, o.Reason, o.Message = fleet.ClassRefused, fleet.ReasonImagePullFailed, "it cannot be had"
			break
		}
		known := task.Digest == "" || s.kube && task.Digest == s.desired().Revision || !s.kube && slices.ContainsFunc(s.desired().Containers.Services, func(d fleet.ServiceDocument) bool { return d.Digest == task.Digest })
		if !known { // the document of an earlier intent is rendered no more
			o.Class, o.Reason = fleet.ClassTransient, fleet.ReasonDrifted
			break
		}
		before := s.exits
		complaint = s.effect(task, &o)
		if task.Service == "cache" {
			s.quick += s.exits - before
		}
	}
	st.Runtime.Plan.Record(i, o)
	s.status = &st
	return complaint
}

// refuses reports whether the engine refuses the task for what is declared.
func (s *sim) refuses(task fleet.Task) bool {
	wanted := func(digest string) bool { return strings.HasPrefix(digest, "c/"+s.intent.ImageTag+"/") }
	switch task.Kind {
	case fleet.TaskPull, fleet.TaskCreate:
		return s.noImage && wanted(task.Digest)
	case fleet.TaskStart:
		for _, b := range s.boxes {
			if b.id == task.ContainerID {
				return s.noStart && b.state == fleet.ContainerCreated && wanted(b.dig)
			}
		}
	}
	return false
}

// effect is what the engine does.
func (s *sim) effect(t fleet.Task, o *fleet.Outcome) string {
	if s.kube {
		return s.applied(t, o)
	}
	name, b := "", box{}
	for n, x := range s.boxes {
		if t.ContainerID != "" && x.id == t.ContainerID {
			name, b = n, x
		}
	}
	if b.foreign {
		return "a task acts on a foreign container: " + t.Describe()
	}
	gone := func() { o.Class, o.Reason = fleet.ClassTransient, fleet.ReasonDrifted }
	switch t.Kind {
	case fleet.TaskPull:
	case fleet.TaskCreate:
		if x, ok := s.boxes[t.Name]; ok && x.foreign {
			o.Class, o.Reason = fleet.ClassRefused, fleet.ReasonForeignInstance
			return ""
		} else if ok && x.dig == t.Digest {
			o.ContainerID = x.id
			return ""
		} else if ok {
			gone()
			return ""
		}
		s.nextID++
		tag := "1"
		if rest, ok := strings.CutPrefix(t.Digest, "c/"); ok {
			tag, _, _ = strings.Cut(rest, "/")
		}
		made := box{id: fmt.Sprintf("id%d", s.nextID), service: t.Service, tag: tag, dig: t.Digest, state: fleet.ContainerCreated}
		for _, doc := range s.desired().Containers.Services {
			if doc.Service == t.Service && len(doc.Ports) > 0 {
				made.port = doc.Ports[0].Host
			}
		}
		s.boxes[t.Name] = made
		o.ContainerID = fmt.Sprintf("id%d", s.nextID)
	case fleet.TaskStop:
		if name == "" {
			return ""
		}
		was := b.state
		if was.Alive() {
			b.state, b.finished = fleet.ContainerExited, s.now
		}
		s.boxes[name] = b
		if s.intent.Deleting != nil || !was.Alive() {
			return ""
		}
		s.stopped[b.service] = s.last(b.service).state != fleet.ContainerRunning
		waits := slices.ContainsFunc(slices.Collect(maps.Values(s.boxes)), func(o box) bool { return o.service == "cache" && o.id != b.id })
		if s.stopped["cache"] && !waits {
			return "an endpoint is taken away before its successor waits: " + t.Describe()
		}
	case fleet.TaskRename:
		if name == "" {
			gone()
			return ""
		}
		if x, ok := s.boxes[t.Name]; ok && x.foreign {
			o.Class, o.Reason = fleet.ClassRefused, fleet.ReasonForeignInstance
			return ""
		} else if ok && x.id != b.id {
			gone()
			return ""
		}
		delete(s.boxes, name)
		s.boxes[t.Name] = b
	case fleet.TaskStart:
		if name == "" {
			gone()
			return ""
		}
		for _, x := range s.boxes {
			if x.id != b.id && x.state.Alive() && x.port != 0 && x.port == b.port {
				o.Class, o.Reason, o.Message = fleet.ClassRefused, fleet.ReasonStartFailed, "its port is in use"
				return ""
			}
		}
		s.stopped[b.service] = false
		if b.state != fleet.ContainerRunning {
			b.state, b.started = fleet.ContainerRunning, s.now
			if s.crash {
				s.now = s.now.Add(time.Second)
				b.state, b.finished = fleet.ContainerExited, s.now
				s.exits++
			}
			s.boxes[name] = b
		}
		o.ContainerID = b.id
	case fleet.TaskRemove:
		if name != "" && b.state.Alive() {
			gone()
			return ""
		}
		delete(s.boxes, name)
	case fleet.TaskRemoveVolumes:
	}
	running := map[string]int{}
	for _, x := range s.boxes {
		if x.state == fleet.ContainerRunning && !x.foreign {
			running[x.service]++
		}
	}
	for service, n := range running {
		if n > 1 {
			return fmt.Sprintf("%d containers of %s run at once after %s", n, service, t.Describe())
		}
	}
	return ""
}

// land lets an unanswered task's effect happen, at the latest at its deadline.
func (s *sim) land() {
	if s.late == nil {
		return
	}
	t, o := *s.late, fleet.Outcome{}
	s.late = nil
	s.effect(t, &o)
}

// wait moves the clock to a time, at which an unanswered effect has landed and a
// container that runs has stayed up.
func (s *sim) wait(until time.Time) {
	if s.late != nil && !until.Before(*s.late.Deadline) {
		s.land()
	}
	if b := s.carrier(); b.state == fleet.ContainerRunning && until.Sub(b.started) >= stableRun {
		s.quick = 0
	}
	s.now = until
}

// heal makes the world healthy and takes every hold away.
func (s *sim) heal() {
	s.faults = faults{}
	if s.kube {
		s.clusterHeals()
	}
	for name, b := range s.boxes {
		if b.foreign {
			delete(s.boxes, name)
		}
	}
	s.zoneHeals()
}

// declare is a write of the API: a new intent, and a deployment that supersedes the
// open one (P11).
func (s *sim) declare(tag, restart string) {
	s.quick = 0
	s.intent.Generation++
	if tag == s.intent.ImageTag && restart == "" {
		return // labels and the like: no deployment
	}
	s.intent.ImageTag = tag
	s.intent.Deployment++
	if restart == "" {
		restart = s.latest.RestartMark
	}
	s.latest = fleet.Deployment{
		Account: "acme", Region: "eu", Seq: s.intent.Deployment, ImageTag: tag, Generation: s.intent.Generation,
		Status: fleet.DeploymentPending, CreatedAt: s.now, RestartMark: restart,
	}
}
