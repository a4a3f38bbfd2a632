package declare

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// Adoption names what a server takes over.
type Adoption struct {
	ImageTag   string            // "" stands for the tag of the instance
	Containers map[string]string // by service: a name, or at least 12 characters of an id
}

// Adopt declares a server and takes what runs already over as its own without touching
// it: containers that carry no labels, by their ids, or the KuraInstance of its name.
func (d *Declarer) Adopt(ctx context.Context, req Request, key fleet.ServerKey, named Adoption) (out Result[fleet.Gathered], err error) {
	declared := fleet.Server{Account: key.Account, Region: key.Region, ImageTag: named.ImageTag}
	checked := declared
	checked.ImageTag = cmp.Or(checked.ImageTag, "of-the-instance")
	if err := checked.Validate(); err != nil {
		return out, err
	}
	err = d.beside(ctx, req.DryRun, func(ctx context.Context, lock *store.Lock) (err error) {
		out, err = d.adoptOnce(ctx, lock, req, declared, named)
		return err
	})
	return out, err
}

func adoptFault(key fleet.ServerKey, pointer, format string, args ...any) error {
	return invalid("adopt server "+key.String(), pointer, format, args...)
}

func (d *Declarer) adoptOnce(ctx context.Context, lock *store.Lock, req Request, declared fleet.Server, named Adoption) (out Result[fleet.Gathered], err error) {
	key := declared.Key()
	n, err := d.neighbours(ctx, key)
	if err != nil {
		return out, err
	}
	if len(n.missing) > 0 {
		return out, missing(n.missing, "server "+key.String())
	}
	r := n.region.Value
	if err := fitsRuntime(key, r, named); err != nil {
		return out, err
	}
	prev, err := d.stored(ctx, key)
	if err != nil {
		return out, err
	}
	f, err := d.standing(ctx, prev)
	if err != nil {
		return out, err
	}
	exists := prev.IntentRevision != 0
	if exists {
		if err := mayAdopt(prev, declared.ImageTag); err != nil {
			return out, err
		}
		declared = prev.Intent.Server
	} else if r.Cordoned {
		return out, adoptFault(key, "/containers", "region %q is cordoned and takes no new servers; uncordon it or choose another", key.Region)
	}
	if err := declared.ValidateIn(r); err != nil {
		return out, err
	}
	already := false
	if r.Kubernetes != nil {
		already, err = d.findInstance(ctx, &declared, r, exists, &f)
	} else if already = exists && isAdopted(f.status.Value, named.Containers); !already {
		err = d.findContainers(ctx, key, r, named.Containers, &f)
	}
	if err != nil {
		return out, err
	}
	if already {
		out.Object = prev
		return out, nil
	}
	return d.storeServer(ctx, lock, req, change{declared: declared, near: n, prev: prev, found: f})
}

// standing is where a server that may be declared already stands: what is tried of it, and
// what that came to, may be written nowhere but beside its status (G12).
func (d *Declarer) standing(ctx context.Context, g fleet.Gathered) (f found, err error) {
	if g.StatusRevision == 0 {
		return f, nil
	}
	f.status, err = present(d.records.Status(ctx, g.Intent.Key()))
	if err == nil && g.StatusRevision != f.status.Revision {
		err = &kv.ConflictError{What: "server " + g.Intent.Key().String()} // by now another status holds, or none
	}
	if err == nil {
		f.status.Value, f.try = *d.status(g), g.TryRevision
	}
	return f, err
}

// fitsRuntime checks that a request names what the region's runtime can give.
func fitsRuntime(key fleet.ServerKey, r fleet.Region, named Adoption) error {
	switch {
	case r.Kubernetes != nil && len(named.Containers) > 0:
		return adoptFault(key, "/containers", "region %q runs on Kubernetes, where the instance of the server's name is adopted: leave containers out", r.Name)
	case r.Kubernetes == nil && len(named.Containers) == 0:
		return adoptFault(key, "/containers", "name at least one container, by its service: {\"cache\": \"<name or id>\"}")
	case r.Kubernetes == nil && named.ImageTag == "":
		return adoptFault(key, "/image_tag", "is required: name the tag that the containers' image carries")
	}
	return nil
}

// findContainers finds the named containers of a container region.
func (d *Declarer) findContainers(ctx context.Context, key fleet.ServerKey, r fleet.Region, named map[string]string, f *found) error {
	listing, err := d.listed(ctx, r, 0, readTimeout)
	if err != nil {
		return err
	}
	if u := listing.Unreadable; u != nil {
		return fleet.Errorf(fleet.CodeUnavailable, "adopt server %s: container endpoint %q cannot be read (%s): %s", key, listing.Endpoint, u.Reason, u.Message)
	}
	c := candidates{key: key, region: r, listing: listing, status: f.status.Value, env: d.env}
	chosen, err := c.choose(named)
	if err != nil {
		return err
	}
	f.ports, f.containers, f.begun = chosen.ports, chosen.containers, listing.Begun
	if err := d.adoptable(ctx, key, r, f.containers); err != nil {
		return err
	}
	return d.portsFree(ctx, key, r, f.ports)
}

// mayAdopt says why a server that is declared already cannot adopt.
func mayAdopt(g fleet.Gathered, tag string) error {
	key, declared := g.Intent.Key(), g.Intent.ImageTag
	if g.Intent.Deleting != nil {
		return fleet.Errorf(fleet.CodeConflict, "server %s is being destroyed; wait until it is gone, then adopt", key)
	}
	if tag != "" && (g.Latest != nil && g.Latest.ImageTag != tag || declared != tag) {
		return fleet.Errorf(fleet.CodeConflict, "server %s is declared with image %s, not %s; name the one that is declared, or declare the other first", key, declared, tag)
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

// adoptable asks the engine whether it would leave the containers to kurad.
func (d *Declarer) adoptable(ctx context.Context, key fleet.ServerKey, r fleet.Region, boxes map[string]fleet.Container) error {
	var v fleet.Invalid
	for _, service := range slices.Sorted(maps.Keys(boxes)) {
		id := boxes[service].ID
		_, err := ask(ctx, "container "+id, readTimeout, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, d.runtimes.Adoptable(ctx, r.Containers.Endpoint, id)
		})
		switch {
		case err == nil:
		case fleet.CodeOf(err) == fleet.CodeInvalid:
			v.Add("/containers/"+service, "%v", err)
		default:
			return &fleet.Error{Code: fleet.CodeUnavailable, Message: "adopt server " + key.String(), Err: err}
		}
	}
	return v.Err("adopt server " + key.String())
}

// portsFree says who has a port that is to be taken over.
func (d *Declarer) portsFree(ctx context.Context, key fleet.ServerKey, r fleet.Region, ports map[string]int) error {
	for _, name := range slices.Sorted(maps.Keys(ports)) {
		res := store.ReservePort(r.Containers.Endpoint, ports[name])
		owner, held, err := d.records.Owner(ctx, res)
		if err != nil {
			return err
		}
		if held && owner != key {
			return adoptFault(key, "/containers/"+strings.SplitN(name, "/", 2)[0], "%s, which the container publishes, is assigned to server %s", res, owner)
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

// takesOver reports whether something that runs already becomes the server's own.
func (f found) takesOver() bool { return f.instance != nil || f.adopting() || len(f.routed) > 0 }

// takeOver returns the status of a server that takes something over, which is the only one
// that is not a turn's, and what is to be told of that.
func (d *Declarer) takeOver(ctx context.Context, f found, desired fleet.Desired, in fleet.Intent) (*fleet.Status, []fleet.Event, error) {
	key, next := in.Key(), f.status.Value.Clone()
	if !f.status.Exists() {
		next = fleet.Status{ // before the first turn
			Status: fleet.StatusProvisioning, Verdict: fleet.VerdictProgressing, VerdictReason: fleet.ReasonAccepted,
			Generation: in.Generation, Revision: desired.Revision, Conditions: []fleet.Condition{},
		}
		for _, a := range f.routed {
			if !desired.Hosts.Has(a.Host) {
				next.Aliases = append(next.Aliases, a)
			}
		}
	}
	var events []fleet.Event
	say := func(format string, args ...any) {
		events = append(events, fleet.Event{Account: key.Account, Region: key.Region, At: d.now().UTC(), Type: fleet.EventNormal, Reason: "Adopted", Message: fmt.Sprintf(format, args...)})
	}
	if f.instance != nil {
		adoption := &fleet.KubeAdoption{UID: f.instance.UID, Generation: in.Generation}
		inst, err := d.sameInstance(ctx, key, desired, adoption)
		if err != nil {
			return nil, nil, err
		}
		if next.Resource = inst; inst.Adopted {
			next.AdoptedResource = adoption
			say("KuraInstance %s/%s (uid %s) is the server's from now on", inst.Namespace, inst.Name, inst.UID)
		}
	}
	if f.adopting() {
		if err := f.images(key, desired); err != nil {
			return nil, nil, err
		}
		// A look that began before says nothing of what was adopted.
		if next.Runtime.EffectsUntil == nil || next.Runtime.EffectsUntil.Before(f.begun) {
			next.Runtime.EffectsUntil = &f.begun
		}
		adopted := map[string]fleet.Adoption{}
		maps.Copy(adopted, next.Adopted)
		for _, doc := range desired.Containers.Services {
			if c, ok := f.containers[doc.Service]; ok {
				adopted[doc.Service] = fleet.Adoption{ID: c.ID, Name: c.Name, Digest: doc.Digest}
				say("container %s (%.12s) is service %s from now on", c.Name, c.ID, doc.Service)
			}
		}
		next.Adopted = adopted
	}
	return &next, events, nil
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
