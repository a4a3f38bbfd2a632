package server

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// listOrphans lists containers and KuraInstances with labels of this environment that belong
// to no declared server: left by a record that was lost or abandoned. Listing them changes
// nothing.
func (s *Server) listOrphans(ctx context.Context, _ *struct{}) (api.Orphans, error) {
	if err := s.catchUp(ctx); err != nil {
		return api.Orphans{}, err
	}
	// The listings first: a server that is declared meanwhile has no orphans.
	listings, kube := s.Turns.Listings(), s.Turns.KubeListings()
	l := &lost{declared: map[fleet.ServerKey]bool{}, regions: map[string]fleet.Region{}, sees: visible(ctx), out: api.Orphans{Items: []api.Orphan{}}}
	for _, key := range s.View.ServerKeys() {
		l.declared[key] = true
	}
	for _, r := range s.View.Regions() {
		l.regions[r.Value.Name] = r.Value.WithDefaults()
	}
	for _, name := range s.Runtimes.ContainerEndpoints() {
		l.endpoint(name, listings)
	}
	for _, target := range l.namespaces(kube) {
		l.namespace(target, kube, s.Runtimes.Clusters())
	}
	return l.out, nil
}

// lost collects what belongs to no declared server.
type lost struct {
	declared map[fleet.ServerKey]bool
	regions  map[string]fleet.Region // by name, with defaults
	sees     func(account string) bool
	out      api.Orphans
}

func (l *lost) endpoint(name string, listings []fleet.Listing) {
	at := api.UnreadableEndpoint{Endpoint: name}
	i := slices.IndexFunc(listings, func(l fleet.Listing) bool { return l.Endpoint == name })
	if i < 0 {
		l.unread(at, time.Time{}, nil)
		return
	}
	listing := listings[i]
	if !l.unread(at, listing.Begun, listing.Unreadable) {
		return
	}
	for _, c := range listing.Containers {
		if c.Foreign != "" || l.declared[fleet.ServerKey{Account: c.Account, Region: c.Region}] || !l.sees(c.Account) {
			continue
		}
		l.out.Items = append(l.out.Items, api.Orphan{
			Endpoint: name, Name: c.Name, ID: c.ID, Image: c.Image, State: c.State,
			Account: c.Account, Region: c.Region, Service: c.Service, Since: timeOf(listing.Since[c.ID]),
		})
	}
}

// namespaces returns the clusters and namespaces that regions name, and those that are
// listed since they did, sorted.
func (l *lost) namespaces(listings []fleet.KubeListing) [][2]string {
	var list [][2]string
	for _, k := range listings {
		list = append(list, [2]string{k.Cluster, k.Namespace})
	}
	for _, r := range l.regions {
		if r.Kubernetes == nil {
			continue
		}
		if at := [2]string{r.Kubernetes.Cluster, r.Kubernetes.Namespace}; !slices.Contains(list, at) {
			list = append(list, at)
		}
	}
	slices.SortFunc(list, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return list
}

func (l *lost) namespace(name [2]string, listings []fleet.KubeListing, clusters []string) {
	at := api.UnreadableEndpoint{Cluster: name[0], Namespace: name[1]}
	i := slices.IndexFunc(listings, func(l fleet.KubeListing) bool { return l.Cluster == at.Cluster && l.Namespace == at.Namespace })
	if i < 0 {
		var u *fleet.ReadFailure
		if !slices.Contains(clusters, at.Cluster) {
			u = &fleet.ReadFailure{Reason: fleet.ReasonEndpointUnreachable, Message: fmt.Sprintf("this kurad was given no cluster named %q", at.Cluster)}
		}
		l.unread(at, time.Time{}, u)
		return
	}
	listing := listings[i]
	if !l.unread(at, listing.Begun, listing.Unreadable) {
		return
	}
	for _, k := range listing.Instances {
		if k.Foreign != "" || l.owned(at, k) || !l.sees(k.Account) {
			continue
		}
		l.out.Items = append(l.out.Items, api.Orphan{
			Cluster: at.Cluster, Namespace: at.Namespace, Name: k.Name, ID: k.UID, Image: k.SpecImage, Phase: k.Phase,
			Account: k.Account, Region: k.Region, Since: timeOf(listing.Since[k.UID]), Deletes: l.deletes(at, k),
		})
	}
}

// unread notes what did not answer and says whether there is anything that an earlier read
// or this one has shown.
func (l *lost) unread(at api.UnreadableEndpoint, begun time.Time, u *fleet.ReadFailure) (shown bool) {
	switch {
	case u != nil:
		at.Reason, at.Message, at.Since = u.Reason, u.Message, timeOf(u.Since)
	case begun.IsZero():
		at.Reason, at.Message = fleet.ReasonNotObservedYet, "it was not listed yet by the kurad that answers"
	default:
		return true
	}
	l.out.Unreadable = append(l.out.Unreadable, at)
	return !begun.IsZero()
}

// owned reports whether the instance is that of a declared server: of its labels, in its
// place and under its name.
func (l *lost) owned(at api.UnreadableEndpoint, k fleet.KubeInstance) bool {
	r := l.regions[k.Region]
	if r.Kubernetes == nil || r.Kubernetes.Cluster != at.Cluster || r.Kubernetes.Namespace != at.Namespace {
		return false
	}
	name, err := r.Instance(k.Account)
	return err == nil && name == k.Name && l.declared[fleet.ServerKey{Account: k.Account, Region: k.Region}]
}

// deletes reports whether the leader deletes the orphan after a while (K5).
func (l *lost) deletes(at api.UnreadableEndpoint, k fleet.KubeInstance) bool {
	r := l.regions[k.Region]
	return r.Kubernetes != nil && r.Kubernetes.DeleteOrphans && r.Kubernetes.Cluster == at.Cluster && r.Kubernetes.Namespace == at.Namespace &&
		!r.Paused && r.Remediation != fleet.RemediationObserve && !l.declared[fleet.ServerKey{Account: k.Account, Region: k.Region}]
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
