package projection

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// zoneWorld is a zone of the model, and what was seen of it.
type zoneWorld struct {
	records  map[string]zoneRecord
	joined   string   // where our pool leads to; "": there is none
	taken    bool     // the load balancer of the global host is somebody else's
	left     []string // hosts whose load balancer has our pool, too
	denies   map[fleet.TaskKind]fleet.Reason
	pending  [2]*fleet.Task
	listing  map[string]fleet.HostRead
	poolRead fleet.PoolRead
}

// zoneRecord is what a host of the zone has. Its owner is us, another, both, sealed or nobody.
type zoneRecord struct{ owner, resource, content string }

// zoneFaults are what is not as it should be there.
type zoneFaults struct {
	zoneBlind bool // it cannot be read
	zoneLag   bool // listings are older than the zone, until a fresh one is asked for
	zoneTasks fleet.Class
}

const (
	zoneTarget = "10.0.0.7"
	ourServer  = "kura-staging/eu/acme"
)

var ourRecord = zoneRecord{"us", ourServer, zoneTarget}

// leads reports whether a probe of the host is answered; serving is whether the server would.
func (s *sim) leads(host string, serving bool) bool {
	r, found := s.records[host]
	switch {
	case host == "acme.kura.test":
		return serving || s.joined == "" // pools of other regions answer
	case found && r.content != zoneTarget:
		return true // so does whoever it is
	default:
		return found && serving
	}
}

// read is what a read of the host says.
func (r zoneRecord) read(host string, at time.Time) fleet.HostRead {
	is := fleet.HostRead{Host: host, Ownership: fleet.OwnershipForeign, Begun: at, Detail: "has a record that nobody claims"}
	is.Records = []fleet.DNSRecord{{Name: host, Type: "A", Content: r.content, TTL: fleet.RecordTTL}}
	switch r.owner {
	case "us":
		is.Ownership, is.Resource, is.Detail = fleet.OwnershipOurs, r.resource, ""
	case "sealed":
		is.Ownership, is.Detail = fleet.OwnershipUnreadable, "is sealed"
	case "both":
		is.Owners, is.Detail = []string{"another", "us"}, ""
	case "another":
		is.Owners, is.Detail = []string{"another"}, "belongs to another"
	}
	return is
}

// list reads the whole zone.
func (s *sim) list() {
	s.listing = map[string]fleet.HostRead{}
	for _, host := range append(Input{Desired: s.desired()}.declaredHosts(), firstHost, movedHost) {
		s.listing[host] = fleet.HostRead{Host: host, Ownership: fleet.OwnershipAbsent, Begun: s.now}
	}
	for host, r := range s.records {
		s.listing[host] = r.read(host, s.now)
	}
	s.poolRead = fleet.PoolRead{Host: "acme.kura.test", Begun: s.now}
	if s.taken {
		s.poolRead.Foreign = "belongs to another"
	} else if s.joined != "" {
		s.poolRead.Joined = true
	}
	if s.joined != "" {
		s.poolRead.Elsewhere = s.left
		s.poolRead.Is = &fleet.DNSChange{Pool: "kura_staging_acme_eu", Origin: s.joined}
	}
}

func (s *sim) lookAtZone() {
	for i, task := range s.pending {
		if task != nil && !task.Deadline.After(s.now) {
			s.pending[i] = nil
			s.zoneEffect(*task)
		}
	}
	if s.zone && !s.zoneBlind && (!s.zoneLag || s.listing == nil) {
		s.list()
	}
}

func (s *sim) seesZone(in *Input) {
	if !s.zone {
		return
	}
	in.Region.DNS = fleet.DNS{Mode: fleet.DNSManaged, OwnerID: "us", Target: zoneTarget}
	in.Tracks = append(in.Tracks, Records{"staging"})
	in.Seen.Hosts = map[string]fleet.HostRead{}
	maps.Copy(in.Seen.Hosts, s.listing)
	pool := s.poolRead
	if s.zoneBlind {
		for _, host := range []string{firstHost, movedHost} {
			r := in.Seen.Hosts[host]
			r.Failure = noAnswer
			in.Seen.Hosts[host] = r
		}
		pool.Failure = noAnswer
	}
	if s.advisory {
		in.Region.Readiness.Global = fleet.GlobalAdvisory
	}
	if s.global {
		in.Tracks = append(in.Tracks, Balancer{"staging"})
		if in.Seen.Tracks == nil {
			in.Seen.Tracks = map[fleet.Track]any{}
		}
		in.Seen.Tracks[fleet.TrackBalancer] = pool
		in.Seen.Hosts["acme.kura.test"] = fleet.HostRead{Host: "acme.kura.test", Ownership: fleet.OwnershipOurs, Begun: s.now}
	}
}

// zoneEffect is what an executor does, which reads what there is first; or why it does nothing.
func (s *sim) zoneEffect(task fleet.Task) fleet.Reason {
	if reason := s.denies[task.Kind]; reason != "" {
		return reason
	}
	r, found := s.records[task.Name]
	if s.records == nil {
		s.records = map[string]zoneRecord{}
	}
	switch task.Kind {
	case fleet.TaskPublish:
		if found && r.owner != "us" {
			return fleet.ReasonForeignOwner
		}
		s.records[task.Name] = zoneRecord{task.DNS.Owner, task.DNS.Resource, task.DNS.Content}
	case fleet.TaskWithdraw:
		if r.owner == task.DNS.Owner && r.resource == task.DNS.Resource {
			delete(s.records, task.Name)
		}
	case fleet.TaskJoin:
		if s.taken {
			return fleet.ReasonForeignBalancer
		}
		s.joined = task.DNS.Origin
	case fleet.TaskLeave:
		if i := slices.Index(s.left, task.Name); i >= 0 {
			s.left = slices.Delete(slices.Clone(s.left), i, i+1)
		} else {
			s.joined = ""
		}
	}
	return ""
}

// zoneActs runs the current task of a track of the hosts, or reads the zone where that is asked for.
func (s *sim) zoneActs(out Output) string {
	for i, track := range []fleet.Track{fleet.TrackRecords, fleet.TrackBalancer} {
		if out.MayAct.Has(track) && s.actsOn(track, s.zoneTasks, &s.pending[i], s.zoneEffect) {
			return "a task of the " + string(track)
		}
		if w := s.status.Tracks[track]; out.NeedFreshRead.Has(track) && s.zoneLag && !s.zoneBlind && (w == nil || w.EffectsUntil == nil || !w.EffectsUntil.After(s.now)) {
			before := s.listing
			s.list()
			if !before[firstHost].Begun.Equal(s.now) {
				return "a fresh listing"
			}
		}
	}
	return ""
}

// zoneHeals takes from the zone what no kurad can mend.
func (s *sim) zoneHeals() {
	s.taken = false
	for host, r := range s.records {
		if r.owner != "us" {
			delete(s.records, host)
		}
	}
}

// zoneEnded reports whether the zone has what leads to the server, and nothing else.
func (s *sim) zoneEnded() bool {
	d := s.desired()
	for host, r := range s.records {
		if kept := host == d.Hosts.Public || host == d.Hosts.GRPC || slices.Contains(s.status.ClientHosts(), host); kept != (r.resource == ourServer) {
			return false
		}
	}
	return s.records[d.Hosts.Public] == ourRecord && (!s.global || s.joined == d.Hosts.Public)
}

func zoneMoves(v variant, set func(string, func(*sim)) move) []move {
	record := func(name string, change func(zoneRecord) zoneRecord) move {
		return move{name, func(s *sim) bool {
			host := s.desired().Hosts.Public
			was, found := s.records[host]
			is := change(was)
			if s.records == nil {
				s.records = map[string]zoneRecord{}
			}
			s.records[host] = is
			if is == (zoneRecord{}) {
				delete(s.records, host)
			}
			return is != was || found != (is != zoneRecord{})
		}}
	}
	ms := []move{
		set("the zone cannot be read", func(s *sim) { s.zoneBlind = true }),
		set("the zone can be read", func(s *sim) { s.zoneBlind = false }),
		set("listings of the zone lag", func(s *sim) { s.zoneLag = true }),
		set("changes of the zone are refused", func(s *sim) { s.zoneTasks = fleet.ClassRefused }),
		set("changes of the zone fail transiently", func(s *sim) { s.zoneTasks = fleet.ClassTransient }),
		set("changes of the zone are not answered", func(s *sim) { s.zoneTasks = unanswered }),
		set("changes of the zone succeed", func(s *sim) { s.zoneTasks = "" }),
		record("the declared host is deleted by hand", func(zoneRecord) zoneRecord { return zoneRecord{} }),
		record("the declared host is edited by hand", func(r zoneRecord) zoneRecord {
			if r != (zoneRecord{}) {
				r.content = "10.9.9.9"
			}
			return r
		}),
		record("the declared host was another server's of ours", func(zoneRecord) zoneRecord { return zoneRecord{"us", "kura-staging/us/acme", zoneTarget} }),
		record("somebody has the declared host", func(zoneRecord) zoneRecord { return zoneRecord{"another", "", "10.9.9.9"} }),
		record("two claim the declared host", func(r zoneRecord) zoneRecord { return zoneRecord{"both", "", cmp.Or(r.content, zoneTarget)} }),
		record("the declared host's owner is sealed", func(zoneRecord) zoneRecord { return zoneRecord{"sealed", "", "10.9.9.9"} }),
		record("nobody claims the declared host's record", func(zoneRecord) zoneRecord { return zoneRecord{"nobody", "", "10.9.9.9"} }),
		{"another server of ours has the host of before, or after", func(s *sim) bool {
			host := map[bool]string{true: firstHost, false: movedHost}[s.doc >= 2]
			_, found := s.records[host]
			if s.records == nil {
				s.records = map[string]zoneRecord{}
			}
			s.records[host] = zoneRecord{"us", "kura-staging/us/acme", zoneTarget}
			return !found
		}},
		{"the zone's task runs first", func(s *sim) bool {
			return s.status != nil && len(s.status.Holds) == 0 && s.zoneActs(Output{MayAct: Tracks{fleet.TrackRecords, fleet.TrackBalancer}}) != ""
		}},
	}
	if !v.global {
		return ms
	}
	return append(ms,
		move{"the pool is removed by hand", func(s *sim) bool { was := s.joined; s.joined = ""; return was != "" }},
		move{"the pool is edited by hand", func(s *sim) bool {
			was := s.joined
			if was != "" {
				s.joined = "elsewhere.kura.test"
			}
			return s.joined != was
		}},
		move{"somebody has the load balancer", func(s *sim) bool { was := s.taken; s.taken = true; return !was }},
		move{"nobody else has the load balancer", func(s *sim) bool { was := s.taken; s.taken = false; return was }},
	)
}

func (s *sim) zoneKey(w func(...any), passed func(*time.Time) string) {
	f := s.zoneFaults
	w("zone", f.zoneBlind, f.zoneLag, string(f.zoneTasks), s.joined, s.taken, s.pending[0] != nil, s.pending[1] != nil, s.listing == nil)
	for _, host := range slices.Sorted(maps.Keys(s.records)) {
		r := s.records[host]
		w(host, r.owner, r.resource, r.content)
	}
	if f.zoneBlind || f.zoneLag {
		for _, host := range slices.Sorted(maps.Keys(s.listing)) {
			r := s.listing[host]
			w(host, string(r.Ownership), r.Resource, len(r.Owners))
			for _, rec := range r.Records {
				w(rec.Content)
			}
		}
		w(s.poolRead.Foreign, s.poolRead.Joined, s.poolRead.Is != nil && s.poolRead.Is.Origin == s.joined)
	}
	if s.status == nil {
		return
	}
	w(s.status.Withheld != "")
	in := s.input()
	in.Prev = s.status
	for i, track := range []Track{Records{"staging"}, Balancer{"staging"}} {
		if k := s.status.Tracks[track.Name()]; k != nil && (i == 0 || s.global) {
			s.workKey(w, passed, k, track.Look(in).Revision)
		}
	}
}

// checkZone holds what must be true of a turn's plans for a zone.
func (x *explorer) checkZone(s *sim, in Input, out Output) {
	if !s.zone || s.silent {
		return
	}
	fail := func(bad bool, format string, args ...any) {
		if bad {
			x.complain(s, format, args...)
		}
	}
	st, prev, deleting := out.Status, fleet.Status{}, in.Intent.Deleting != nil
	if in.Prev != nil {
		prev = *in.Prev
	}
	settled := prev.Settled == (fleet.Settled{Generation: in.Intent.Generation, Revision: in.Desired.Revision}) && !in.Latest.Status.Open()
	wanted := append(st.ClientHosts(), in.declaredHosts()...)
	pool, _ := in.Seen.Tracks[fleet.TrackBalancer].(fleet.PoolRead)
	for _, track := range []fleet.Track{fleet.TrackRecords, fleet.TrackBalancer} {
		p := st.PlanOf(track)
		if !isNew(p, prev.PlanOf(track)) {
			continue
		}
		fail(s.zoneBlind, "a plan is made while the zone cannot be read")
		fail(s.paused, "a plan of the %s is stored while held", track)
		fail(s.observe && settled && prev.Settled == st.Settled && !deleting && st.Tracks[track].Reached == p.Revision, "an observing region publishes by itself")
		if w := prev.Tracks[track]; w != nil && w.EffectsUntil != nil {
			fail(s.listing[firstHost].Begun.Before(*w.EffectsUntil), "a plan is made from a listing that is older than an effect")
		}
		for _, task := range p.Tasks {
			r := in.Seen.Hosts[task.Name]
			switch ours := r.Ownership == fleet.OwnershipOurs; task.Kind {
			case fleet.TaskPublish:
				fail(!ours && r.Ownership != fleet.OwnershipAbsent, "%s is published, which is %s", task.Name, r.Ownership)
				fail(deleting || !slices.Contains(wanted, task.Name), "%s is published for nobody", task.Name)
				fail(!ours && st.ConvergedAt == nil && st.PublishedURL == "", "%s is published, and nothing is there to lead to", task.Name)
			case fleet.TaskWithdraw:
				fail(!ours || r.Resource != ourServer, "%s is withdrawn, which is %s of %q", task.Name, r.Ownership, r.Resource)
				fail(!deleting && slices.Contains(wanted, task.Name), "%s is withdrawn, and clients are led there", task.Name)
			case fleet.TaskJoin:
				fail(deleting || pool.Foreign != "", "our pool joins what is not ours, or for nobody")
				fail(st.PublishedURL == "" && (!in.Seen.Endpoint.Ready || st.ConvergedAt == nil || !ours && in.Seen.Hosts[in.Desired.Hosts.Public].Ownership != fleet.OwnershipOurs), "our pool joins before its endpoint answers")
			case fleet.TaskLeave:
				elsewhere := slices.Contains(pool.Elsewhere, task.Name)
				fail(!elsewhere && (!deleting || pool.Foreign != ""), "our pool leaves, and is wanted")
			}
		}
	}
	entered := st.Status == fleet.StatusActive && (prev.Status != fleet.StatusActive || prev.ServingImageTag != st.ServingImageTag || prev.PublishedURL != st.PublishedURL)
	fail(entered && s.global && !s.advisory && (!pool.Joined || pool.Failure != nil), "active entered without our pool in the load balancer")
	left := s.joined != "" && !s.taken
	for _, r := range s.records {
		left = left || r.owner == "us" && r.resource == ourServer
	}
	fail(out.Remove && left, "the server is gone, and what leads to it is there")
	soon := deleting && in.Now.Sub(*in.Intent.Deleting) < in.Region.StallAfter.Std()
	fail(newPlan(st, prev) && st.Runtime.Plan.Kind == fleet.PlanDestroy && left && soon, "what runs goes before what leads to it")

	alone := in
	alone.Tracks = nil
	want, is := Decide(alone).Status, st.Clone()
	for _, one := range []*fleet.Status{&want, &is} {
		one.Tracks, one.Conditions, one.Verdict, one.VerdictReason = nil, nil, "", ""
	}
	if gated := resume(in, out).shut() != ""; !deleting && !gated && !sameRecord(want, is) {
		x.complain(s, "what leads to the server makes a difference to what runs: %s", diffText(want, is))
	}
}
