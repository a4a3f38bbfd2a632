package declare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// candidates are the containers of an endpoint, looked at for a server that is to adopt
// some of them.
type candidates struct {
	key     fleet.ServerKey
	region  fleet.Region
	listing fleet.Listing
	status  fleet.Status
	env     fleet.Environment
}

// choose finds the named containers, by service, and says at which one there is why it
// cannot be adopted.
func (c candidates) choose(named map[string]string) (found, error) {
	var v fleet.Invalid
	f := found{ports: map[string]int{}, containers: map[string]fleet.Container{}}
	if fault := c.busy(); fault != "" {
		return f, fleet.Errorf(fleet.CodeConflict, "adopt server %s: %s", c.key, fault)
	}
	instance, err := c.region.Instance(c.key.Account)
	if err != nil {
		return f, unrenderable(c.key, err)
	}
	for _, service := range slices.Sorted(maps.Keys(named)) {
		at := "/containers/" + service
		box, fault := c.find(named[service])
		if fault == "" {
			fault = c.check(instance, service, box)
		}
		if fault == "" {
			for other, taken := range f.containers {
				if taken.ID == box.ID {
					fault = fmt.Sprintf("container %s is named for service %q already", box.Name, other)
				}
			}
		}
		if fault != "" {
			v.Add(at, "%s", fault)
			continue
		}
		f.containers[service] = box
		for _, need := range fleet.PortNeeds(c.region) {
			if need.Service != service {
				continue
			}
			switch port := box.Ports[published(c.region, need)]; {
			case port == 0:
				v.Add(at, "container %s does not publish %s, which port %q of the region needs", box.Name, published(c.region, need), need.Port)
			case need.Fixed != 0 && need.Fixed != port:
				v.Add(at, "container %s publishes %s on host port %d, and the region declares %d for port %q", box.Name, published(c.region, need), port, need.Fixed, need.Port)
			case need.Fixed == 0:
				f.ports[need.Key()] = port
			}
		}
	}
	return f, v.Err("adopt server " + c.key.String())
}

// busy says why the server cannot adopt anything now.
func (c candidates) busy() string {
	if c.status.Runtime.Plan != nil {
		return "a plan is under way; wait until it ended, or pause the server"
	}
	if e := c.status.Runtime.EffectsUntil; e != nil && e.After(c.listing.Begun) {
		return "an effect of its last plan may still land; try again in a moment"
	}
	for _, box := range c.listing.Containers {
		if isOf(c.key, box) {
			return fmt.Sprintf("it has a container of its own, %s; declare the server instead, or remove that one", box.Name)
		}
	}
	return ""
}

func (c candidates) find(ref string) (box fleet.Container, fault string) {
	var found []fleet.Container
	for _, box := range c.listing.Containers {
		if ref == box.ID || ref == box.Name {
			return box, ""
		}
		if refersTo(ref, box.ID, box.Name) {
			found = append(found, box)
		}
	}
	switch len(found) {
	case 0:
		return box, fmt.Sprintf("endpoint %q has no container with the name or id %q (at least %d characters of an id)", c.listing.Endpoint, ref, shortID)
	case 1:
		return found[0], ""
	default:
		return box, fmt.Sprintf("%q is the beginning of %d ids; write more of it", ref, len(found))
	}
}

// check says why a container cannot become a service of the server.
func (c candidates) check(instance, service string, box fleet.Container) string {
	if _, ok := c.region.Containers.Services[service]; !ok {
		return fmt.Sprintf("region %q has no service %q (it has: %s)", c.key.Region, service, strings.Join(slices.Sorted(maps.Keys(c.region.Containers.Services)), ", "))
	}
	if a, ok := c.status.Adopted[service]; ok && a.ID != box.ID && slices.ContainsFunc(c.listing.Containers, func(o fleet.Container) bool { return o.ID == a.ID }) {
		return fmt.Sprintf("the service is container %s (%.12s) already, which was adopted before", a.Name, a.ID)
	}
	switch {
	case box.Foreign == "":
		return fmt.Sprintf("container %s carries the labels of server %s/%s: only containers without labels can be adopted", box.Name, box.Account, box.Region)
	case box.Foreign != fleet.NotByKurad:
		return fmt.Sprintf("container %s carries labels: it is %s", box.Name, box.Foreign)
	case box.State != fleet.ContainerRunning:
		return fmt.Sprintf("container %s does not run (it is %s): start it first, or declare the server and let kurad make one", box.Name, box.State)
	}
	doc := fleet.ServiceDocument{Name: instance + "-" + service + c.env.Suffix}
	if box.Name == doc.TemporaryName() || box.Name == doc.RetiredName() {
		return fmt.Sprintf("container %s bears a name that kurad gives while it replaces one; rename it first", box.Name)
	}
	for _, other := range c.listing.Containers {
		if other.Name == doc.Name && other.ID != box.ID {
			return fmt.Sprintf("it would be renamed to %s, and another container bears that name", doc.Name)
		}
	}
	return ""
}
