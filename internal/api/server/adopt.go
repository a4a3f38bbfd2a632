package server

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

type adoptInput struct {
	KeyPath
	DryRun bool `query:"dry_run" doc:"Say what would be taken over and how it differs, write nothing."`
	Body   body[api.AdoptRequest]
}

// adopt declares a server and takes what runs already over as its own without touching
// it: containers that carry no labels, by their ids, or the KuraInstance of its name.
func (s *Server) adopt(ctx context.Context, in *adoptInput) (*putOutput[fleet.ServerView], error) {
	req, err := in.Body.value()
	if err != nil {
		return nil, err
	}
	req.DryRun = in.DryRun
	key := in.key()
	declared := fleet.Server{Account: key.Account, Region: key.Region, ImageTag: req.ImageTag}
	checked := declared
	checked.ImageTag = cmp.Or(checked.ImageTag, "of-the-instance")
	if err := checked.Validate(); err != nil {
		return nil, err
	}
	var w api.Written[fleet.ServerView]
	err = s.beside(ctx, req.DryRun, func(ctx context.Context, lock *store.Lock) (err error) {
		w, err = s.adoptOnce(ctx, lock, declared, req)
		return err
	})
	if err != nil {
		return nil, err
	}
	return written(w, req.DryRun), nil
}

func adoptFault(key fleet.ServerKey, service, format string, args ...any) error {
	pointer := "/containers"
	if service != "" {
		pointer += "/" + service
	}
	return adoptFaultAt(key, pointer, format, args...)
}

func adoptFaultAt(key fleet.ServerKey, pointer, format string, args ...any) error {
	var v fleet.Invalid
	v.Add(pointer, format, args...)
	return v.Err("adopt server " + key.String())
}

func (s *Server) adoptOnce(ctx context.Context, lock *store.Lock, declared fleet.Server, req api.AdoptRequest) (w api.Written[fleet.ServerView], err error) {
	key := declared.Key()
	n, err := s.neighbourhood(ctx, key)
	if err != nil {
		return w, err
	}
	if err := n.faults("server " + key.String()); err != nil {
		return w, err
	}
	r := n.region.Value
	if err := fitsRuntime(key, r, req); err != nil {
		return w, err
	}
	prev, err := present(s.records.Intent(ctx, key))
	if err != nil {
		return w, err
	}
	status, err := present(s.records.Status(ctx, key))
	if err != nil {
		return w, err
	}
	if prev.Exists() {
		if err := s.mayAdopt(ctx, prev, declared.ImageTag); err != nil {
			return w, err
		}
		declared = prev.Value.Server
	} else if r.Cordoned {
		return w, adoptFault(key, "", "region %q is cordoned and takes no new servers; uncordon it or choose another", key.Region)
	}
	if err := declared.ValidateIn(r); err != nil {
		return w, err
	}
	f := found{status: status}
	already := false
	if r.Kubernetes != nil {
		already, err = s.findInstance(ctx, &declared, r, prev.Exists(), &f)
	} else if already = prev.Exists() && isAdopted(status.Value, req.Containers); !already {
		err = s.findContainers(ctx, key, r, req.Containers, &f)
	}
	if err != nil {
		return w, err
	}
	if already {
		view, err := s.readServer(ctx, key, false)
		return api.Written[fleet.ServerView]{Object: view}, err
	}
	return s.storeServer(ctx, lock, declared, n, prev, f, req.DryRun)
}

// fitsRuntime checks that a request names what the region's runtime can give.
func fitsRuntime(key fleet.ServerKey, r fleet.Region, req api.AdoptRequest) error {
	switch {
	case r.Kubernetes != nil && len(req.Containers) > 0:
		return adoptFault(key, "", "region %q runs on Kubernetes, where the instance of the server's name is adopted: leave containers out", r.Name)
	case r.Kubernetes == nil && len(req.Containers) == 0:
		return adoptFault(key, "", "name at least one container, by its service: {\"cache\": \"<name or id>\"}")
	case r.Kubernetes == nil && req.ImageTag == "":
		return adoptFaultAt(key, "/image_tag", "is required: name the tag that the containers' image carries")
	}
	return nil
}

// findContainers finds the named containers of a container region.
func (s *Server) findContainers(ctx context.Context, key fleet.ServerKey, r fleet.Region, named map[string]string, f *found) error {
	listing, err := ask(ctx, "all of container endpoint "+r.Containers.Endpoint, func(ctx context.Context) fleet.Listing {
		within, cancel := context.WithTimeout(ctx, readTimeout)
		defer cancel()
		return s.runtimes.Containers(within, r.Containers.Endpoint, 0)
	})
	if err != nil {
		return err
	}
	if u := listing.Unreadable; u != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "adopt server %s: container endpoint %q cannot be read (%s): %s", key, listing.Endpoint, u.Reason, u.Message)
	}
	c := candidates{key: key, region: r, listing: listing, status: f.status.Value, env: s.env}
	chosen, err := c.choose(named)
	if err != nil {
		return err
	}
	f.ports, f.containers, f.begun = chosen.ports, chosen.containers, listing.Begun
	if err := s.adoptable(ctx, key, r, f.containers); err != nil {
		return err
	}
	return s.portsFree(ctx, key, r, f.ports)
}

// mayAdopt says why a server that is declared already cannot adopt.
func (s *Server) mayAdopt(ctx context.Context, prev store.Versioned[fleet.Intent], tag string) error {
	key := prev.Value.Key()
	if prev.Value.Deleting != nil {
		return fleet.Errorf(fleet.CodeConflict, "server %s is being destroyed; wait until it is gone, then adopt", key)
	}
	latest, err := present(s.records.Deployment(ctx, key, prev.Value.Deployment))
	if err != nil {
		return err
	}
	if tag != "" && (latest.Exists() && latest.Value.ImageTag != tag || prev.Value.ImageTag != tag) {
		return fleet.Errorf(fleet.CodeConflict, "server %s is declared with image %s, not %s; name the one that is declared, or declare the other first", key, prev.Value.ImageTag, tag)
	}
	return nil
}

// isAdopted reports whether the very containers were adopted before, so that a repeated
// request is no other one.
func isAdopted(status fleet.Status, named map[string]string) bool {
	for service, name := range named {
		a, ok := status.Adopted[service]
		if !ok || !refersTo(name, a.ID, a.Name) {
			return false
		}
	}
	return true
}

// shortID is how many characters of an id name a container: as many as engines print.
const shortID = 12

func refersTo(ref, id, name string) bool {
	return ref == id || ref == name || len(ref) >= shortID && strings.HasPrefix(id, ref)
}

// refusal is why an engine would not leave a container to kurad; nil: it would.
type refusal struct{ err error }

// adoptable asks the engine whether it would leave the containers to kurad.
func (s *Server) adoptable(ctx context.Context, key fleet.ServerKey, r fleet.Region, boxes map[string]fleet.Container) error {
	var v fleet.Invalid
	for _, service := range sortedKeys(boxes) {
		id := boxes[service].ID
		why, err := ask(ctx, "container "+id, func(ctx context.Context) refusal {
			within, cancel := context.WithTimeout(ctx, readTimeout)
			defer cancel()
			return refusal{s.runtimes.Adoptable(within, r.Containers.Endpoint, id)}
		})
		switch {
		case err != nil:
			return err
		case why.err == nil:
		case fleet.CodeOf(why.err) == fleet.CodeInvalid:
			v.Add("/containers/"+service, "%v", why.err)
		default:
			return &fleet.Error{Code: fleet.CodeUnavailable, Message: "adopt server " + key.String(), Err: why.err}
		}
	}
	return v.Err("adopt server " + key.String())
}

// portsFree says who has a port that is to be taken over.
func (s *Server) portsFree(ctx context.Context, key fleet.ServerKey, r fleet.Region, ports map[string]int) error {
	for _, name := range sortedKeys(ports) {
		res := store.ReservePort(r.Containers.Endpoint, ports[name])
		owner, held, err := s.records.Owner(ctx, res)
		if err != nil {
			return err
		}
		if held && owner != key {
			return adoptFault(key, strings.SplitN(name, "/", 2)[0], "%s, which the container publishes, is assigned to server %s", res, owner)
		}
	}
	return nil
}

// adopting reports whether containers without labels are taken over.
func (f found) adopting() bool { return len(f.containers) > 0 }

// images says which container runs another image than the document says of its service.
func (f found) images(key fleet.ServerKey, d fleet.Desired) error {
	var v fleet.Invalid
	for _, doc := range d.Containers.Services {
		if c, ok := f.containers[doc.Service]; ok && !fleet.SameImage(c.Image, doc.Image) {
			v.Add("/containers/"+doc.Service, "container %s runs image %s, and the service is image %s: name the container, the tag or the service that fits", c.Name, c.Image, doc.Image)
		}
	}
	return v.Err("adopt server " + key.String())
}

// adopt records the containers in the server's status and returns it.
func (f found) adopt(tx *store.Tx, key fleet.ServerKey, d fleet.Desired, in fleet.Intent, now time.Time) *fleet.Status {
	next := f.status.Value.Clone()
	if !f.status.Exists() {
		next = newStatus(d, in)
	}
	if next.Adopted == nil {
		next.Adopted = map[string]fleet.Adoption{}
	}
	// A look that began before says nothing of what was adopted.
	if next.Runtime.EffectsUntil == nil || next.Runtime.EffectsUntil.Before(f.begun) {
		next.Runtime.EffectsUntil = &f.begun
	}
	for _, doc := range d.Containers.Services {
		c, ok := f.containers[doc.Service]
		if !ok {
			continue
		}
		next.Adopted[doc.Service] = fleet.Adoption{ID: c.ID, Name: c.Name, Digest: doc.Digest}
		tx.AddEvent(adoptedEvent(key, now, "container %s (%.12s) is service %s from now on", c.Name, c.ID, doc.Service))
	}
	tx.PutStatus(f.status, key, next)
	return &next
}

// lostPorts are the reservations of ports that a server had and has no more.
func lostPorts(r fleet.Region, before, after fleet.Intent) []store.Reservation {
	kept := slices.Collect(maps.Values(after.Ports))
	var lost []store.Reservation
	for _, port := range before.Ports {
		if !slices.Contains(kept, port) {
			lost = append(lost, store.ReservePort(r.Containers.Endpoint, port))
		}
	}
	return lost
}
