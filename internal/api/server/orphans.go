package server

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// listOrphans lists containers and KuraInstances with labels of this environment that belong
// to no declared server: left by a record that was lost. Listing them changes nothing.
func (s *Server) listOrphans(ctx context.Context, _ *struct{}) (api.Orphans, error) {
	if err := s.catchUp(ctx); err != nil {
		return api.Orphans{}, err
	}
	// The listings first: a server that is declared meanwhile has no orphans.
	engines, clusters := map[string]fleet.Listing{}, map[namespace]fleet.KubeListing{}
	for _, listing := range s.Turns.Listings() {
		engines[listing.Endpoint] = listing
	}
	for _, listing := range s.Turns.KubeListings() {
		clusters[namespace{listing.Cluster, listing.Namespace}] = listing
	}
	f := &found{declared: map[fleet.ServerKey]bool{}, regions: map[string]fleet.Region{}, sees: visible(ctx), out: api.Orphans{Items: []api.Orphan{}}}
	for _, key := range s.View.ServerKeys() {
		f.declared[key] = true
	}
	for _, r := range s.View.Regions() {
		f.regions[r.Value.Name] = r.Value.WithDefaults()
		if k := f.regions[r.Value.Name].Kubernetes; k != nil { // one that is not listed yet is shown, too
			at := namespace{k.Cluster, k.Namespace}
			if _, listed := clusters[at]; !listed {
				clusters[at] = fleet.KubeListing{}
			}
		}
	}
	for _, name := range s.Runtimes.ContainerEndpoints() {
		f.containers(name, engines[name])
	}
	for _, at := range slices.SortedFunc(maps.Keys(clusters), func(a, b namespace) int {
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), cmp.Compare(a.name, b.name))
	}) {
		listing := clusters[at]
		if listing.Cluster == "" && !slices.Contains(s.Runtimes.Clusters(), at.cluster) {
			listing.Unreadable = &fleet.ReadFailure{Reason: fleet.ReasonEndpointUnreachable, Message: fmt.Sprintf("this kurad was given no cluster named %q", at.cluster)}
		}
		f.instances(at, listing)
	}
	return f.out, nil
}

// namespace is one of a cluster.
type namespace struct{ cluster, name string }

// found collects what belongs to no declared server.
type found struct {
	declared map[fleet.ServerKey]bool
	regions  map[string]fleet.Region // by name, with defaults
	sees     func(account string) bool
	out      api.Orphans
}

func (f *found) containers(endpoint string, listing fleet.Listing) {
	if !f.read(api.UnreadableEndpoint{Endpoint: endpoint}, listing.Begun, listing.Unreadable) {
		return
	}
	for _, c := range listing.Containers {
		if c.Foreign != "" || f.declared[fleet.ServerKey{Account: c.Account, Region: c.Region}] || !f.sees(c.Account) {
			continue
		}
		f.out.Items = append(f.out.Items, api.Orphan{
			Endpoint: endpoint, Name: c.Name, ID: c.ID, Image: c.Image, State: c.State,
			Account: c.Account, Region: c.Region, Service: c.Service, Since: timeOf(listing.Since[c.ID]),
		})
	}
}

func (f *found) instances(at namespace, listing fleet.KubeListing) {
	if !f.read(api.UnreadableEndpoint{Cluster: at.cluster, Namespace: at.name}, listing.Begun, listing.Unreadable) {
		return
	}
	for _, k := range listing.Instances {
		if k.Foreign != "" || f.owned(at, k) || !f.sees(k.Account) {
			continue
		}
		f.out.Items = append(f.out.Items, api.Orphan{
			Cluster: at.cluster, Namespace: at.name, Name: k.Name, ID: k.UID, Image: k.SpecImage, Phase: k.Phase,
			Account: k.Account, Region: k.Region, Since: timeOf(listing.Since[k.UID]), Deletes: f.deletes(at, k),
		})
	}
}

// read notes a read that failed or was not made yet, and says whether this one or an earlier one
// has shown anything.
func (f *found) read(at api.UnreadableEndpoint, begun time.Time, failure *fleet.ReadFailure) (shown bool) {
	switch {
	case failure != nil:
		at.Reason, at.Message, at.Since = failure.Reason, failure.Message, timeOf(failure.Since)
	case begun.IsZero():
		at.Reason, at.Message = fleet.ReasonNotObservedYet, "it was not listed yet by the kurad that answers"
	default:
		return true
	}
	f.out.Unreadable = append(f.out.Unreadable, at)
	return !begun.IsZero()
}

// regionAt is the region of an instance's labels, where that is in the namespace.
func (f *found) regionAt(at namespace, k fleet.KubeInstance) (r fleet.Region, ok bool) {
	r = f.regions[k.Region]
	return r, r.Kubernetes != nil && at == namespace{r.Kubernetes.Cluster, r.Kubernetes.Namespace}
}

// owned reports whether the instance is that of a declared server: of its labels, in its
// place and under its name.
func (f *found) owned(at namespace, k fleet.KubeInstance) bool {
	r, here := f.regionAt(at, k)
	name, err := r.Instance(k.Account)
	return here && err == nil && name == k.Name && f.declared[fleet.ServerKey{Account: k.Account, Region: k.Region}]
}

// deletes reports whether the leader deletes the orphan after a while (K5).
func (f *found) deletes(at namespace, k fleet.KubeInstance) bool {
	r, here := f.regionAt(at, k)
	return here && r.Kubernetes.DeleteOrphans && !r.Paused && r.Remediation != fleet.RemediationObserve &&
		!f.declared[fleet.ServerKey{Account: k.Account, Region: k.Region}]
}

func timeOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
