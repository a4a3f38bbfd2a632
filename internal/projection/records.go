package projection

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Records is the track of the DNS records of a server's hosts, in regions where kurad publishes
// them (D4). A host is published once there is something to lead to: probes find it by its name.
// It is withdrawn when nobody is to be led there any more, and only by its ownership record.
type Records struct{ Environment string }

var _ Track = Records{}

// Name implements Track.
func (Records) Name() fleet.Track { return fleet.TrackRecords }

// Look implements Track.
func (r Records) Look(in Input) View {
	if in.Region.DNS.Mode != fleet.DNSManaged {
		return View{None: true}
	}
	to := in.record()
	resource := fleet.ResourceOf(r.Environment, in.Intent.Key())
	change := fleet.DNSChange{Owner: in.Region.DNS.OwnerID, Resource: resource}
	keeps, due := in.publishes()
	v := View{Revision: strings.Join(append([]string{to.Type, to.Content, change.Owner}, keeps...), " "), Cause: fleet.CauseHosts, Advisory: true}
	asked := keeps
	if in.Intent.Deleting != nil {
		asked = in.declaredHosts() // of all others there is a read only if their records name the server
	}
	v.Begun, v.Failure, v.Gone = in.newest(asked, resource)
	var withdraw []fleet.Effect
	// A former gRPC host is no alias: it ends with those of the move that took it away (H8).
	moved := in.Prev.ConvergedAt != nil && len(in.Prev.RoutedHosts(in.Desired.Hosts)) == 0 || in.Intent.Deleting != nil
	for _, host := range slices.Sorted(maps.Keys(in.Seen.Hosts)) {
		read, c := in.Seen.Hosts[host], in.claimOn(host)
		own := read.Resource == resource || !in.rule(RuleD4OwnOnly)
		if read.Failure != nil || in.unread(host) || c.reason != fleet.ReasonOwned && c.reason != fleet.ReasonHostAbsent && in.rule(RuleD4Claimed) {
			continue
		}
		if strings.HasPrefix(read.Resource, "kura-") && !strings.HasPrefix(read.Resource, "kura-"+r.Environment+"/") {
			if slices.Contains(in.declaredHosts(), host) && in.Intent.Deleting == nil {
				v.Gate = fleet.ReasonForeignOwner
				v.Condition = fleet.Condition{
					Type: fleet.ConditionDNSOwned, Status: fleet.False, Reason: v.Gate,
					Message: fmt.Sprintf("%s is published for %s: another environment has our owner id %q; give each its own", host, read.Resource, change.Owner),
				}
			}
			continue
		}
		ours := read.Ownership != fleet.OwnershipAbsent
		switch {
		case slices.Contains(keeps, host) && (read.Resource == resource || slices.Contains(due, host)):
			differs := in.recordDiffers(read)
			if differs == "" && read.Resource != resource {
				differs = "is published for " + cmp.Or(read.Resource, "no server")
			}
			if differs != "" {
				publish := change
				publish.Type, publish.Content = to.Type, to.Content
				v.Steps = append(v.Steps, fleet.Effect{Kind: fleet.TaskPublish, Name: host, DNS: publish})
				v.Differs = append(v.Differs, host+" "+differs)
			}
		case host == in.Desired.Hosts.Global: // its load balancer's
		case ours && own && moved && !slices.Contains(keeps, host):
			withdraw = append(withdraw, fleet.Effect{Kind: fleet.TaskWithdraw, Name: host, DNS: change})
			v.Differs = append(v.Differs, host+" leads here no more")
		}
	}
	v.Steps = append(v.Steps, withdraw...)
	return v
}

// declaredHosts are those with records of their own: a global host has a load balancer.
func (in Input) declaredHosts() []string {
	return slices.DeleteFunc([]string{in.Desired.Hosts.Public, in.Desired.Hosts.GRPC}, func(host string) bool { return host == "" })
}

// publishes are the hosts that stay published once they are, sorted, and those to publish where
// nobody does: the declared ones when there is something that probes would reach by them.
func (in Input) publishes() (keeps, due []string) {
	if in.Intent.Deleting != nil {
		return nil, nil
	}
	due = in.Prev.RoutedHosts(in.Desired.Hosts)
	keeps = append(in.declaredHosts(), due...)
	if in.Prev.ConvergedAt != nil || in.Prev.PublishedURL == in.Desired.URL {
		due = keeps
	}
	slices.Sort(keeps)
	return keeps, due
}

// newest says of the reads of hosts when the oldest of those that answered began; why none did;
// and whether no host is known to be the server's, or might be.
func (in Input) newest(asked []string, resource string) (begun time.Time, failure *fleet.ReadFailure, gone bool) {
	gone = true
	for _, host := range asked {
		gone = gone && !in.unread(host) && in.Seen.Hosts[host].Failure == nil
	}
	for _, host := range slices.Sorted(maps.Keys(in.Seen.Hosts)) {
		r := in.Seen.Hosts[host]
		named := r.Resource == resource
		gone = gone && (!named || r.Ownership != fleet.OwnershipOurs)
		switch {
		case !named && !slices.Contains(asked, host):
		case r.Failure != nil:
			failure = cmp.Or(failure, r.Failure)
		case begun.IsZero() || r.Begun.Before(begun):
			begun = r.Begun
		}
	}
	if !begun.IsZero() {
		failure = nil
	}
	return begun, failure, gone
}

// record is what the hosts of the region lead to; the zero one where it is not kurad's to say.
func (in Input) record() fleet.DNSRecord {
	to := fleet.DNSRecord{Type: "CNAME", Content: strings.ToLower(strings.TrimSuffix(in.Region.DNS.Target, ".")), TTL: fleet.RecordTTL}
	switch addr, err := netip.ParseAddr(in.Region.DNS.Target); {
	case in.Region.DNS.Mode != fleet.DNSManaged:
		return fleet.DNSRecord{}
	case err != nil:
	case addr.Is4():
		to.Type, to.Content = "A", addr.String()
	default:
		to.Type, to.Content = "AAAA", addr.String()
	}
	return to
}

// recordDiffers says in words how a host's records differ from what the region declares; "" not
// at all.
func (in Input) recordDiffers(r fleet.HostRead) string {
	to := in.record()
	var is []string
	same := len(r.Records) == 1
	for _, rec := range r.Records {
		content := strings.ToLower(strings.TrimSuffix(rec.Content, "."))
		if addr, err := netip.ParseAddr(content); err == nil {
			content = addr.String()
		}
		same = same && rec.Type == to.Type && content == to.Content && rec.TTL == to.TTL && !rec.Proxied
		is = append(is, strings.Trim(fmt.Sprintf("%s %s ttl %d%s", rec.Type, content, rec.TTL, map[bool]string{true: " proxied"}[rec.Proxied]), " "))
	}
	switch {
	case same || to == fleet.DNSRecord{}:
		return ""
	case len(is) == 0:
		return "is not published"
	default:
		return fmt.Sprintf("is %s, wanted %s %s ttl %d", strings.Join(is, " and "), to.Type, to.Content, to.TTL)
	}
}
