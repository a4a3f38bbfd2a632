package declare

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// needs are the reservations that a server must hold: the hosts that it renders to and
// those that it still publishes, its account's global host, its instance name, and its
// ports.
func needs(r fleet.Region, d fleet.Desired, in fleet.Intent, status *fleet.Status) []store.Reservation {
	var list []store.Reservation
	add := func(res store.Reservation) {
		if !slices.Contains(list, res) {
			list = append(list, res)
		}
	}
	for _, host := range ownHosts(d.Hosts) {
		add(store.ReserveHost(host))
	}
	for _, host := range status.ClientHosts() {
		add(store.ReserveHost(host))
	}
	if d.Hosts.Global != "" {
		add(store.ReserveGlobal(d.Hosts.Global))
	}
	add(store.ReserveInstance(r.Target(), d.Instance))
	if status != nil {
		for _, a := range status.Adopted { // one container, one server
			add(store.ReserveContainer(a.ID))
		}
	}
	if r.Containers != nil {
		for _, port := range hostPorts(r, in) {
			add(store.ReservePort(r.Containers.Endpoint, port))
		}
	}
	return list
}

// ownHosts are the hosts that belong to one server.
func ownHosts(h fleet.Hosts) []string {
	hosts := []string{h.Public}
	if h.GRPC != "" && h.GRPC != h.Public {
		hosts = append(hosts, h.GRPC)
	}
	return hosts
}

// hostPorts are the host ports of a server: the declared ones, and all that were ever
// assigned to it, for they stay its own until it is destroyed (C12).
func hostPorts(r fleet.Region, in fleet.Intent) []int {
	var ports []int
	for _, need := range fleet.PortNeeds(r) {
		if need.Fixed != 0 {
			ports = append(ports, need.Fixed)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(in.Ports)) {
		ports = append(ports, in.Ports[key])
	}
	return ports
}

// portsInUse are the ports of a region's endpoint that the records say are somebody's. One
// that was offered for a change that was never made is not: whoever takes it reclaims it.
func (d *Declarer) portsInUse(ctx context.Context, r fleet.Region) (map[int]bool, error) {
	used := map[int]bool{}
	if r.Containers == nil {
		return used, nil
	}
	taken, err := d.records.PortsTaken(ctx, r.Containers.Endpoint)
	if err != nil {
		return nil, err
	}
	offers := d.view.IdleOffers(r.Containers.Endpoint)
	for port, owner := range taken {
		to, idle := offers[port]
		used[port] = !idle || to != owner
	}
	for _, need := range fleet.PortNeeds(r) {
		used[need.Fixed] = true
	}
	d.occupied.mark(r.Containers.Endpoint, d.now(), used)
	return used, nil
}

// assignPorts completes the assigned ports of a server (C12) and marks them as used.
// What it has, it keeps. The first choice for a port is a hash of what it is for, so
// that a server that is made again most likely gets the same one; then the next free
// one is taken. One that a container of somebody else's publishes is not free, whatever
// the records say: they may have been lost, and that server not be declared yet.
func (d *Declarer) assignPorts(ctx context.Context, key fleet.ServerKey, r fleet.Region, have map[string]int, used map[int]bool) (map[string]int, error) {
	instance, err := r.Instance(key.Account)
	if err != nil {
		return nil, unrenderable(key, err)
	}
	ports := maps.Clone(have)
	var published map[int]bool
	for _, need := range fleet.PortNeeds(r) {
		if need.Fixed != 0 || have[need.Key()] != 0 {
			continue
		}
		first, last, ok := d.runtimes.PortRange(r)
		if !ok || last < first {
			return nil, noPorts(r)
		}
		if published == nil {
			if published, err = d.publishedByOthers(ctx, key, r); err != nil {
				return nil, err
			}
		}
		port, ok := choosePort(instance+"/"+need.Key(), first, last, func(port int) bool { return !used[port] && !published[port] })
		if !ok {
			return nil, &fleet.Error{Code: fleet.CodeConflict, Message: fmt.Sprintf("region %q has no room", r.Name), Fields: []fleet.FieldError{{Pointer: "/region",
				Detail: fmt.Sprintf("no port of %d-%d is free on container endpoint %q; widen its ports=, or destroy servers or remove containers that have some", first, last, r.Containers.Endpoint)}}}
		}
		if ports == nil {
			ports = map[string]int{}
		}
		ports[need.Key()], used[port] = port, true
	}
	return ports, nil
}

func noPorts(r fleet.Region) error {
	return invalid(nameRegion(r), "/containers/endpoint", "container endpoint %q has no ports to assign; start kurad with ports=<first>-<last> for it, or declare host ports", r.Containers.Endpoint)
}

func choosePort(seed string, first, last int, free func(int) bool) (int, bool) {
	h := fnv.New32a()
	_, _ = h.Write([]byte(seed))
	size := last - first + 1
	start := int(h.Sum32() % uint32(size))
	for i := range size {
		if port := first + (start+i)%size; free(port) {
			return port, true
		}
	}
	return 0, false
}

// taken words why a server cannot have what it needs. Where the holder turns out not to need
// what it holds, it is a conflict: the write begins again.
func (d *Declarer) taken(ctx context.Context, lock *store.Lock, at func(fleet.ServerKey) place, list []affected, err error) error {
	used, ok := asUsed(err)
	if !ok {
		return err
	}
	for _, a := range list {
		if a.key() == used.For {
			if err := d.contend(ctx, lock, at(used.For), a, used, false); err != nil {
				return err
			}
		}
	}
	return &kv.ConflictError{What: used.Reservation.String()}
}

// claimable checks that servers can have what they need.
func (d *Declarer) claimable(ctx context.Context, lock *store.Lock, list []affected, at func(fleet.ServerKey) place, dry bool) error {
	for _, a := range list {
		for _, res := range a.claims {
			err := d.records.Free(ctx, d.now(), a.key(), res)
			if used, ok := asUsed(err); ok {
				err = d.contend(ctx, lock, at(a.key()), a, used, dry)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// contend says who has what a server needs; nil: nobody any more. What its holder does not
// need is given back, but by a dry run. Where another server was quicker to take an assigned
// port, it is a conflict: the write begins again.
func (d *Declarer) contend(ctx context.Context, lock *store.Lock, at place, a affected, used *store.UsedError, dry bool) error {
	what, region := used.Reservation.String(), *a.after.Region
	g, spare, err := d.unneeded(ctx, used.Server, used.Reservation)
	switch {
	case err != nil:
		return err
	case spare && !used.Until.IsZero():
		return at.kept(what, used.Server, used.Until)
	case spare && dry:
		return nil
	case spare:
		return d.reclaim(ctx, lock, g, used.Reservation, used.Revision)
	case slices.ContainsFunc(fleet.PortNeeds(region), func(n fleet.PortNeed) bool {
		return n.Fixed == 0 && used.Reservation == store.ReservePort(region.Containers.Endpoint, a.after.Intent.Ports[n.Key()])
	}):
		return &kv.ConflictError{What: what}
	}
	return at.collision(what, g.Intent.Key())
}

// place is where in a declaration a collision comes from, and what its author can do.
type place struct {
	key     fleet.ServerKey // the server that cannot have what it needs
	pointer string
	advice  string
	sees    func(account string) bool // what the author may know of
}

// ofServer is the place of a collision in the declaration of a server.
func ofServer(by fleet.Token) func(fleet.ServerKey) place {
	return func(key fleet.ServerKey) place {
		return place{key, "/account", fmt.Sprintf("change the handle of account %q, or cluster_id, host templates or declared ports of region %q, so that the two differ", key.Account, key.Region), by.Sees}
	}
}

// collision says that two servers cannot have the same thing (H4), naming both as far as
// the author may know of them.
func (p place) collision(what string, other fleet.ServerKey) error {
	return &fleet.Error{
		Code: fleet.CodeConflict, Message: fmt.Sprintf("server %s cannot have %s", p.key, what),
		Fields: []fleet.FieldError{{Pointer: p.pointer, Detail: fmt.Sprintf("%s has %s already; %s", p.whose(other), what, p.advice)}},
	}
}

// kept says that a server cannot have what another account has given up, but not for long
// enough (H10).
func (p place) kept(what string, other fleet.ServerKey, until time.Time) error {
	return &fleet.Error{
		Code: fleet.CodeConflict, Message: fmt.Sprintf("server %s cannot have %s", p.key, what),
		Fields: []fleet.FieldError{{Pointer: p.pointer, Detail: fmt.Sprintf("%s had it and gave it up; it stays that account's until %s, for its clients may still come; wait until then, or %s", p.whose(other), instant(until), p.advice)}},
	}
}

// whose is who has something, as far as the author may know: a server, or an account.
func (p place) whose(other fleet.ServerKey) string {
	switch {
	case !p.sees(other.Account):
		return "another account's server"
	case other.Region == "":
		return fmt.Sprintf("account %q", other.Account)
	default:
		return "server " + other.String()
	}
}

func instant(at time.Time) string { return at.UTC().Format("2006-01-02 15:04:05 MST") }

// asUsed returns the error of a reservation that somebody else has.
func asUsed(err error) (*store.UsedError, bool) {
	used, ok := errors.AsType[*store.UsedError](err)
	return used, ok && used.Reservation != ""
}

// reclaim gives back a reservation that its holder does not need: one of a change that
// was never made, or of a host that it has left. Where an account has it, or a server that is
// gone, revision is that of the record by which nobody needs it.
func (d *Declarer) reclaim(ctx context.Context, lock *store.Lock, g fleet.Gathered, res store.Reservation, revision int64) error {
	tx := d.records.BeginAt(d.now())
	tx.Under(lock) // what its holder needs may change with an account, a template or a region
	if g.IntentRevision == 0 {
		tx.Forget(res, revision)
	} else {
		tx.RequireIntent(intentOf(g))
		tx.Release(g.Intent.Key(), res)
	}
	_, err := tx.Commit(ctx)
	return err
}

// unneeded reports whether who holds a reservation does not need it: a server, which may be
// gone, or an account by its servers. g is the server that needs it, or else the holder.
func (d *Declarer) unneeded(ctx context.Context, holder fleet.ServerKey, res store.Reservation) (g fleet.Gathered, spare bool, err error) {
	gone := fleet.Gathered{Intent: fleet.Intent{Server: fleet.Server{Account: holder.Account, Region: holder.Region}}}
	if !res.IsGlobal() {
		g, err = d.records.Gather(ctx, holder)
		if fleet.CodeOf(err) == fleet.CodeNotFound {
			return gone, true, nil
		}
		return g, err == nil && !d.mayNeed(g, res), err
	}
	servers, err := d.records.ServersOf(ctx, holder.Account)
	if err != nil {
		return gone, false, err
	}
	for _, k := range servers {
		g, err := d.records.Gather(ctx, k)
		if fleet.CodeOf(err) != fleet.CodeNotFound && (err != nil || d.mayNeed(g, res)) {
			return g, false, err
		}
	}
	return gone, true, nil
}

// mayNeed reports whether a server may need a reservation; one that is being destroyed, or does
// not render, keeps what it has.
func (d *Declarer) mayNeed(g fleet.Gathered, res store.Reservation) bool {
	if g.Account == nil || g.Region == nil || g.Intent.Deleting != nil {
		return true
	}
	desired := d.Desired(g)
	return desired.Instance == "" || slices.Contains(needs(*g.Region, desired, g.Intent, g.Status), res)
}
