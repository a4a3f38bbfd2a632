package projection

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// claim is whose a host is, by the newest read of its records (D3).
type claim struct {
	host   string
	status fleet.ConditionStatus // True: ours
	reason fleet.Reason
	detail string // why it is not plainly ours; it follows the host's name
}

func (c claim) String() string { return c.host + " " + c.detail }

// foreign reports whether the host is known to be somebody else's.
func (c claim) foreign() bool {
	return c.reason == fleet.ReasonForeignOwner || c.reason == fleet.ReasonAmbiguousOwner
}

// rank orders claims: what is known to be somebody else's comes first.
func (c claim) rank() int {
	switch {
	case c.foreign():
		return 0
	case c.status == fleet.False:
		return 1
	case c.status == fleet.Unknown:
		return 2
	default:
		return 3
	}
}

// checksOwners reports whether somebody keeps ownership records of the region's hosts.
func (in Input) checksOwners() bool {
	return in.Region.DNS.Mode != "" && in.Region.DNS.Mode != fleet.DNSNone
}

// claimOn is whose a host is. What a read that failed had found before stands where that is
// somebody else (D5), and does not where it is us: ours is what the newest read says (D3). That
// need not have begun after the instance converged, as a probe has to (R1): an instance makes
// no owner.
func (in Input) claimOn(host string) claim {
	r := in.Seen.Hosts[host]
	c := claim{host: host, status: fleet.Unknown, reason: fleet.ReasonOwnershipUnknown, detail: "has not been read yet"}
	switch {
	case !in.checksOwners():
		return claim{host: host, status: fleet.True, reason: fleet.ReasonNotApplicable}
	case r.Ownership == fleet.OwnershipForeign && len(r.Owners) > 1:
		c.status, c.reason, c.detail = fleet.False, fleet.ReasonAmbiguousOwner, cmp.Or(r.Detail, "is claimed by "+strings.Join(r.Owners, " and "))
	case r.Ownership == fleet.OwnershipForeign:
		c.status, c.reason, c.detail = fleet.False, fleet.ReasonForeignOwner, cmp.Or(r.Detail, "is not ours")
	case r.Failure != nil:
		c.reason, c.detail = r.Failure.Reason, "cannot be read: "+r.Failure.Message
		if !c.reason.Of(fleet.ConditionDNSOwned) {
			c.reason = fleet.ReasonZoneUnreachable
		}
		if r.Ownership == fleet.OwnershipOurs {
			c.detail += "; it was ours when last read"
		}
	case r.Ownership == fleet.OwnershipOurs:
		c.status, c.reason, c.detail = fleet.True, fleet.ReasonOwned, ""
	case r.Ownership == fleet.OwnershipUnreadable:
		c.reason, c.detail = fleet.ReasonUnreadableOwner, cmp.Or(r.Detail, "has an ownership record that cannot be read")
	case r.Ownership == fleet.OwnershipAbsent:
		c.status, c.reason, c.detail = fleet.False, fleet.ReasonHostAbsent, cmp.Or(r.Detail, "is not published")
	}
	return c
}

// unread reports whether nothing was heard of a host yet.
func (in Input) unread(host string) bool {
	r := in.Seen.Hosts[host]
	return r.Failure == nil && (r.Ownership == fleet.OwnershipNotChecked || r.Ownership == fleet.OwnershipUnknown)
}

// unknownOwner reports whether the newest read of a host by which the server becomes active did
// not answer, or none has.
func (in Input) unknownOwner() bool {
	hosts := []string{in.Desired.Hosts.Public, in.Desired.Hosts.GRPC}
	return in.checksOwners() && slices.ContainsFunc(hosts, func(host string) bool {
		return host != "" && (in.unread(host) || in.Seen.Hosts[host].Failure != nil)
	})
}

// entryClaim is that on the hosts by which a server becomes active: the worse of both.
func (in Input) entryClaim() claim {
	c := in.claimOn(in.Desired.Hosts.Public)
	if in.Desired.Hosts.GRPC == "" {
		return c
	}
	if grpc := in.claimOn(in.Desired.Hosts.GRPC); grpc.rank() < c.rank() {
		return grpc
	}
	return c
}

// hosts are all that the server leads clients to, or is declared to.
func (t *turn) hosts() []string {
	d := t.in.Desired.Hosts
	all := append([]string{fleet.HostOf(t.s.PublishedURL), d.Public, d.GRPC, d.Global}, t.s.ClientHosts()...)
	var hosts []string
	for _, host := range all {
		if host != "" && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// withhold keeps the published url from clients while its host is known to be somebody else's:
// until a read says otherwise, for one that fails is none (D3, D5).
func (t *turn) withhold() {
	host := fleet.HostOf(t.s.PublishedURL)
	switch c := t.in.claimOn(host); {
	case host == "" || !t.in.checksOwners():
		t.s.Withheld = ""
	case c.foreign():
		t.s.Withheld = c.reason
	case !t.in.unread(host) && t.in.Seen.Hosts[host].Failure == nil:
		t.s.Withheld = ""
	}
}

// owned is the condition DNSOwned: a row for each host that is not plainly ours.
func (t *turn) owned() {
	if !t.in.checksOwners() {
		t.set(fleet.ConditionDNSOwned, fleet.False, fleet.ReasonNotApplicable, "dns.mode is \"none\": who owns the records is not checked")
		return
	}
	if t.in.Intent.Deleting != nil {
		t.set(fleet.ConditionDNSOwned, fleet.False, fleet.ReasonDeleting, "")
		return
	}
	if t.says(fleet.ConditionDNSOwned) {
		return
	}
	worst := claim{status: fleet.True, reason: fleet.ReasonOwned}
	var rows []string
	for _, host := range t.hosts() {
		if t.in.unread(host) && condition(t.s, fleet.ConditionDNSOwned).Status != "" {
			return // what was said stays until all of them have been asked (G1)
		}
		c := t.in.claimOn(host)
		if differs := t.in.recordDiffers(t.in.Seen.Hosts[host]); c.status == fleet.True && differs != "" && host != t.in.Desired.Hosts.Global {
			c.status, c.reason, c.detail = fleet.False, fleet.ReasonRecordDiffers, differs
		}
		if c.rank() < worst.rank() {
			worst = c
		}
		if c.status != fleet.True {
			rows = append(rows, c.String())
		}
	}
	if w := t.s.Tracks[fleet.TrackRecords]; w != nil && w.Failing != nil {
		rows = append(rows, w.Failing.String())
		if reason := w.Failing.Reason; worst.status != fleet.True && !worst.foreign() && reason.Of(fleet.ConditionDNSOwned) {
			worst.reason = reason // what keeps kurad from publishing it
		}
	}
	t.set(fleet.ConditionDNSOwned, worst.status, worst.reason, strings.Join(rows, "; "))
}
