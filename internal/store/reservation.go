package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Reservation names something that one server at most may hold (H4, C12): a host, an
// instance name within a runtime target, or a host port of an endpoint.
type Reservation string

// ReserveHost is the reservation of a host name.
func ReserveHost(host string) Reservation { return Reservation(hostsFolder + host) }

// ReserveInstance is the reservation of an instance name within a runtime target
// (fleet.Region.Target).
func ReserveInstance(target, name string) Reservation {
	return Reservation(instancesFolder + target + "/" + name)
}

// ReservePort is the reservation of a host port on a container endpoint.
func ReservePort(endpoint string, port int) Reservation {
	return Reservation(portsFolder + endpoint + "/" + strconv.Itoa(port))
}

// ReserveContainer is the reservation of an adopted container. Its id is unique, whatever
// an endpoint is called: two of them may be one engine.
func ReserveContainer(id string) Reservation {
	return ReserveInstance(adoptedTarget, id)
}

// adoptedTarget stands where the instances of runtimes have their target, which none is.
const adoptedTarget = "adopted"

// String names the reservation in words, for example `host "a.kura.example.dev"`.
func (r Reservation) String() string {
	folder, rest, _ := strings.Cut(string(r), "/")
	i := strings.LastIndex(rest, "/")
	switch folder + "/" {
	case hostsFolder:
		return fmt.Sprintf("host %q", rest)
	case instancesFolder:
		if id, ok := strings.CutPrefix(rest, adoptedTarget+"/"); ok {
			return fmt.Sprintf("container %.12s", id)
		}
		if i >= 0 {
			return fmt.Sprintf("instance name %q on %s", rest[i+1:], rest[:i])
		}
	case portsFolder:
		if i >= 0 {
			return fmt.Sprintf("port %s of container endpoint %q", rest[i+1:], rest[:i])
		}
	}
	return string(r)
}

// UsedError says that something cannot be had, or cannot go, because somebody uses it.
// Trying again does not help.
type UsedError struct {
	What string // such as `host "a.kura.example.dev"` or `region "eu-central"`
	By   string // such as `server acme/eu-central` or `region "eu-central"`
	// Server is the user, where it is a server.
	Server fleet.ServerKey
	// Reservation is what is taken, where it is a reservation.
	Reservation Reservation
}

func (e *UsedError) Error() string {
	if e.Reservation != "" {
		return e.What + " is already used by " + e.By
	}
	return e.What + " is still used by " + e.By
}

// Claims are the reservations that a server holds, sorted.
type Claims struct {
	Held []Reservation `json:"held"`
}

// Claims returns the reservations that a server holds.
func (r *Records) Claims(ctx context.Context, k fleet.ServerKey) (Versioned[Claims], error) {
	return fetch[Claims](ctx, r, claimsKey(k))
}

// Owner returns the server that holds a reservation; ok is false where none does.
func (r *Records) Owner(ctx context.Context, res Reservation) (owner fleet.ServerKey, ok bool, err error) {
	v, err := fetch[fleet.ServerKey](ctx, r, string(res))
	return v.Value, v.Exists(), err
}

// PortsTaken returns the reserved host ports of a container endpoint and their owners.
func (r *Records) PortsTaken(ctx context.Context, endpoint string) (map[int]fleet.ServerKey, error) {
	folder := r.prefix + portsFolder + endpoint + "/"
	page, err := r.store.List(ctx, folder, ListOptions{})
	if err != nil {
		return nil, unavailable(fmt.Sprintf("list the ports of container endpoint %q", endpoint), err)
	}
	taken := make(map[int]fleet.ServerKey, len(page.Items))
	for _, kv := range page.Items {
		port, err := strconv.Atoi(strings.TrimPrefix(kv.Key, folder))
		if err != nil {
			continue
		}
		// A record that cannot be read still takes its port: the owner is unknown.
		owner, _ := decode[fleet.ServerKey](kv)
		taken[port] = owner.Value
	}
	return taken, nil
}

// claim is what a transaction wants to become of a server's reservations.
type claim struct {
	owner   fleet.ServerKey
	take    []Reservation
	release []Reservation
}

// resolve adds the comparisons and operations of the claim, from what is stored now.
func (c *claim) resolve(ctx context.Context, tx *Tx) error {
	record, err := tx.records.Claims(ctx, c.owner)
	if err != nil {
		return err
	}
	held := slices.Clone(record.Value.Held)
	for _, res := range c.take {
		at, err := fetch[fleet.ServerKey](ctx, tx.records, string(res))
		if err != nil {
			return err
		}
		if at.Exists() && at.Value != c.owner {
			return &UsedError{What: res.String(), By: "server " + at.Value.String(), Server: at.Value, Reservation: res}
		}
		if at.Exists() {
			tx.compare(Unchanged(string(res), at.Revision))
		} else {
			put(tx, string(res), at, c.owner)
		}
		if !slices.Contains(held, res) {
			held = append(held, res)
		}
	}
	for _, res := range c.release {
		if slices.Contains(c.take, res) {
			continue
		}
		at, err := fetch[fleet.ServerKey](ctx, tx.records, string(res))
		if err != nil {
			return err
		}
		if at.Exists() && at.Value == c.owner {
			tx.remove(string(res), at.Revision)
		}
		held = slices.DeleteFunc(held, func(h Reservation) bool { return h == res })
	}
	slices.Sort(held)
	if slices.Equal(held, record.Value.Held) {
		tx.compare(Unchanged(claimsKey(c.owner), record.Revision))
		return nil
	}
	put(tx, claimsKey(c.owner), record, Claims{Held: held})
	return nil
}
