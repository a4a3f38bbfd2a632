package store

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// Reservation names something that one server at most may hold (H4, C12): a host, an
// instance name within a runtime target, or a host port of an endpoint; or a handle that
// an account has given up (H10).
type Reservation string

// ReserveHost is the reservation of a host name.
func ReserveHost(host string) Reservation { return Reservation(hostsFolder + host) }

// ReserveShare is a server's share in a host of its account (a global one). Together with
// the first share of an account the host becomes the account's, and nobody's own: as long
// as one server has a share in it, no other account can have one, and no server the host.
func ReserveShare(host string, k fleet.ServerKey) Reservation {
	return Reservation(shares(host) + k.Account + "/" + k.Region)
}

func shares(host string) string { return sharesFolder + host + "/" }

// Host is the host name that is reserved, and whether that is a share in it; ok is false
// for anything else.
func (r Reservation) Host() (host string, shared, ok bool) {
	if host, ok = strings.CutPrefix(string(r), hostsFolder); ok {
		return host, false, true
	}
	if host, ok = strings.CutPrefix(string(r), sharesFolder); ok {
		host, _, _ = strings.Cut(host, "/")
	}
	return host, ok, ok
}

// IsShare reports whether a share in a host is reserved.
func (r Reservation) IsShare() bool { return strings.HasPrefix(string(r), sharesFolder) }

// IsHost reports whether a host name is reserved, or a share in one.
func (r Reservation) IsHost() bool {
	_, _, ok := r.Host()
	return ok
}

// ReserveHandle is the reservation of a handle, or of an id, that an account has given up.
// Those that accounts have are in their records.
func ReserveHandle(handle string) Reservation { return Reservation(handlesFolder + handle) }

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
	if host, _, ok := r.Host(); ok {
		return fmt.Sprintf("host %q", host)
	}
	folder, rest, _ := strings.Cut(string(r), "/")
	i := strings.LastIndex(rest, "/")
	switch folder + "/" {
	case handlesFolder:
		return fmt.Sprintf("handle %q", rest)
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
	// Until is for how long it stays the account's of Server, which has given it up or may
	// do so; zero where it does not, or is wanted for that account itself (H10).
	Until time.Time
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

// Holder is who holds a reservation. It outlives the server where that gave the host up,
// or is gone: until its time is over, it is for other servers of its account alone (H10).
// One without a region is an account, whose servers have shares in the host.
type Holder struct {
	fleet.ServerKey
	Until *time.Time `json:"until,omitempty"` // nil: the server has not given it up
}

// KeptFrom is for how long what the holder does not need is kept from another account;
// zero: it is not.
func (h Holder) KeptFrom(account string, now time.Time) time.Time {
	if h.Account == account || h.Until == nil || !h.Until.After(now) {
		return time.Time{}
	}
	return *h.Until
}

// Holder returns who holds a reservation; ok is false where nobody does.
func (r *Records) Holder(ctx context.Context, res Reservation) (h Holder, ok bool, err error) {
	v, err := fetch[Holder](ctx, r, string(res))
	return v.Value, v.Exists(), err
}

// Sharers returns the servers that have a share in a host, sorted by account and region.
func (r *Records) Sharers(ctx context.Context, host string) ([]fleet.ServerKey, error) {
	var all []fleet.ServerKey
	err := r.eachHolder(ctx, shares(host), func(_ Reservation, h Versioned[Holder]) { all = append(all, h.Value.ServerKey) })
	return all, err
}

// Shares returns the shares that servers have in hosts of their accounts.
func (r *Records) Shares(ctx context.Context) (map[Reservation]bool, error) {
	all := map[Reservation]bool{}
	err := r.eachHolder(ctx, sharesFolder, func(res Reservation, _ Versioned[Holder]) { all[res] = true })
	return all, err
}

// Free returns a *UsedError where a server may not have what another one holds, as a claim
// would.
func (r *Records) Free(ctx context.Context, now time.Time, k fleet.ServerKey, res Reservation) error {
	c := &claim{owner: k, take: []Reservation{res}}
	return c.resolve(ctx, &Tx{records: r, now: now, claims: []*claim{c}})
}

// Owner returns the server that holds a reservation; ok is false where none does.
func (r *Records) Owner(ctx context.Context, res Reservation) (owner fleet.ServerKey, ok bool, err error) {
	h, ok, err := r.Holder(ctx, res)
	return h.ServerKey, ok, err
}

// Kept lists the handles that were given up and are kept for their accounts, and whose
// they are.
func (r *Records) Kept(ctx context.Context) (map[string]Holder, error) {
	kept := map[string]Holder{}
	err := r.eachHolder(ctx, handlesFolder, func(res Reservation, h Versioned[Holder]) {
		kept[strings.TrimPrefix(string(res), handlesFolder)] = h.Value
	})
	return kept, err
}

// Over lists the reservations of hosts and handles that were given up and whose time is
// over by now.
func (r *Records) Over(ctx context.Context, now time.Time) (map[Reservation]Versioned[Holder], error) {
	over := map[Reservation]Versioned[Holder]{}
	for _, folder := range []string{hostsFolder, handlesFolder} {
		if err := r.eachHolder(ctx, folder, func(res Reservation, h Versioned[Holder]) {
			if until := h.Value.Until; until != nil && !until.After(now) {
				over[res] = h
			}
		}); err != nil {
			return nil, err
		}
	}
	return over, nil
}

// holdersPage is how many reservations are read at once.
const holdersPage = 1000

// eachHolder goes through the reservations of a folder. One that cannot be read is left
// alone.
func (r *Records) eachHolder(ctx context.Context, folder string, f func(Reservation, Versioned[Holder])) error {
	for o := (kv.ListOptions{Limit: holdersPage}); ; {
		page, err := r.store.List(ctx, r.prefix+folder, o)
		if err != nil {
			return unavailable("list "+strings.TrimSuffix(folder, "/"), err)
		}
		for _, item := range page.Items {
			o.After = item.Key
			if h, err := decode[Holder](item); err == nil {
				f(Reservation(strings.TrimPrefix(item.Key, r.prefix)), h)
			}
		}
		if !page.More {
			return nil
		}
	}
}

// PortsTaken returns the reserved host ports of a container endpoint and their owners.
func (r *Records) PortsTaken(ctx context.Context, endpoint string) (map[int]fleet.ServerKey, error) {
	folder := r.prefix + portsFolder + endpoint + "/"
	page, err := r.store.List(ctx, folder, kv.ListOptions{})
	if err != nil {
		return nil, unavailable(fmt.Sprintf("list the ports of container endpoint %q", endpoint), err)
	}
	taken := make(map[int]fleet.ServerKey, len(page.Items))
	for _, item := range page.Items {
		port, err := strconv.Atoi(strings.TrimPrefix(item.Key, folder))
		if err != nil {
			continue
		}
		// A record that cannot be read still takes its port: the owner is unknown.
		owner, _ := decode[fleet.ServerKey](item)
		taken[port] = owner.Value
	}
	return taken, nil
}

// claim is what a transaction wants to become of a server's reservations.
type claim struct {
	owner   fleet.ServerKey
	take    []Reservation
	release []Reservation
	give    []Reservation // up, until the time
	until   time.Time
}

// resolve adds the comparisons and operations of the claim, from what is stored now.
func (c *claim) resolve(ctx context.Context, tx *Tx) error {
	record, err := tx.records.Claims(ctx, c.owner)
	if err != nil {
		return err
	}
	held := slices.Clone(record.Value.Held)
	for _, res := range c.take {
		if err := c.takeShare(ctx, tx, res); err != nil {
			return err
		}
		at, err := fetch[Holder](ctx, tx.records, string(res))
		if err == nil {
			err = c.free(ctx, tx, res, at.Value)
		}
		if err != nil {
			return err
		}
		if mine := (Holder{ServerKey: c.owner}); at.Value == mine {
			tx.compare(kv.Unchanged(string(res), at.Revision))
		} else {
			put(tx, string(res), at, mine)
		}
		if !slices.Contains(held, res) {
			held = append(held, res)
		}
	}
	for _, res := range c.give {
		if _, shared, _ := res.Host(); shared {
			if err := c.giveShare(ctx, tx, res, c.until); err != nil {
				return err
			}
			continue
		}
		at, err := fetch[Holder](ctx, tx.records, string(res))
		if err != nil {
			return err
		}
		if at.Value.ServerKey == c.owner {
			put(tx, string(res), at, Holder{ServerKey: c.owner, Until: &c.until})
		}
	}
	for _, res := range c.release {
		if slices.Contains(c.take, res) {
			continue
		}
		at, err := fetch[Holder](ctx, tx.records, string(res))
		if err != nil {
			return err
		}
		switch {
		case at.Value.ServerKey != c.owner:
		case at.Value.KeptFrom("", tx.now).IsZero():
			tx.remove(string(res), at.Revision)
		default: // it stays the account's (H10)
			tx.compare(kv.Unchanged(string(res), at.Revision))
		}
		held = slices.DeleteFunc(held, func(h Reservation) bool { return h == res })
	}
	slices.Sort(held)
	if slices.Equal(held, record.Value.Held) {
		tx.compare(kv.Unchanged(claimsKey(c.owner), record.Revision))
		return nil
	}
	put(tx, claimsKey(c.owner), record, Claims{Held: held})
	return nil
}

// takeShare makes the host that res is a share in the account's. Several servers of it may
// take theirs in one transaction.
func (c *claim) takeShare(ctx context.Context, tx *Tx, res Reservation) error {
	host, shared, _ := res.Host()
	key, whole := string(ReserveHost(host)), Holder{ServerKey: fleet.ServerKey{Account: c.owner.Account}}
	if !shared || tx.writes(key) {
		return nil
	}
	at, err := fetch[Holder](ctx, tx.records, key)
	if err != nil {
		return err
	}
	switch at.Value.ServerKey {
	case whole.ServerKey:
		if at.Value == whole {
			tx.compare(kv.Unchanged(key, at.Revision))
			return nil
		} // else it had given it up
	case c.owner:
		return &UsedError{What: res.String(), By: "server " + c.owner.String(), Server: c.owner, Reservation: ReserveHost(host)}
	default:
		if err := c.free(ctx, tx, ReserveHost(host), at.Value); err != nil {
			return err
		}
	}
	put(tx, key, at, whole)
	return nil
}

// giveShare keeps the host that res is a share in for the account until the time; its last
// share gone, that is how long nobody else has it.
func (c *claim) giveShare(ctx context.Context, tx *Tx, res Reservation, until time.Time) error {
	host, _, _ := res.Host()
	key := string(ReserveHost(host))
	taken := func(o *claim) bool {
		return slices.ContainsFunc(o.take, func(r Reservation) bool {
			h, _, ok := r.Host()
			return ok && h == host
		})
	}
	if tx.writes(key) || slices.ContainsFunc(tx.claims, taken) {
		return nil
	}
	at, err := fetch[Holder](ctx, tx.records, key)
	if err == nil && at.Value.ServerKey == (fleet.ServerKey{Account: c.owner.Account}) {
		put(tx, key, at, Holder{ServerKey: at.Value.ServerKey, Until: &until})
	}
	return err
}

// free returns a *UsedError where the owner may not have what another server holds. What
// was given up by one that is gone, or that has released it, is its account's at once,
// and anybody's when the time is over.
func (c *claim) free(ctx context.Context, tx *Tx, res Reservation, h Holder) error {
	if h == (Holder{}) || h.ServerKey == c.owner {
		return nil
	}
	used := &UsedError{What: res.String(), By: "server " + h.String(), Server: h.ServerKey, Reservation: res, Until: h.KeptFrom(c.owner.Account, tx.now)}
	if host, _, ok := res.Host(); ok && h.Region == "" {
		used.By = fmt.Sprintf("account %q", h.Account)
		sharers, err := tx.records.Sharers(ctx, host)
		if err == nil && (len(sharers) > 0 || !used.Until.IsZero()) {
			err = used
		}
		tx.compare(kv.NoneUnder(shares(host)))
		return err
	}
	if h.Until == nil || !used.Until.IsZero() {
		return used
	}
	claims, err := tx.records.Claims(ctx, h.ServerKey)
	if err == nil && slices.Contains(claims.Value.Held, res) {
		err = used
	}
	return err
}
