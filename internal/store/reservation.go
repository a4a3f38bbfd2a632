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
// instance name within a runtime target, or a host port of an endpoint. Two things an account
// holds instead: the global host of its servers, and a handle that it has given up (H10).
type Reservation string

// ReserveHost is the reservation of a host name.
func ReserveHost(host string) Reservation { return Reservation(hostsFolder + host) }

// ReserveGlobal is the reservation of a host name for an account. Any of its servers takes it,
// and it is the account's until none of them needs it any more.
func ReserveGlobal(host string) Reservation { return Reservation(globalsFolder + host) }

// Host is the host name that is reserved; ok is false for anything else.
func (r Reservation) Host() (host string, ok bool) {
	if host, ok = strings.CutPrefix(string(r), hostsFolder); ok {
		return host, true
	}
	return strings.CutPrefix(string(r), globalsFolder)
}

// IsGlobal reports whether a host name is reserved for an account.
func (r Reservation) IsGlobal() bool { return strings.HasPrefix(string(r), globalsFolder) }

// Key is where it is stored who holds the reservation: a host has one holder, of either kind.
func (r Reservation) Key() string {
	if host, ok := r.Host(); ok {
		return hostsFolder + host
	}
	return string(r)
}

// HolderFor is who holds what a server takes: the server, or its account.
func (r Reservation) HolderFor(k fleet.ServerKey) fleet.ServerKey {
	if r.IsGlobal() {
		k.Region = ""
	}
	return k
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
	if host, ok := r.Host(); ok {
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
	// Server is the user, where it is a server; without a region it is an account.
	Server fleet.ServerKey
	// Reservation is what is taken, as its holder has it, where it is a reservation. Revision
	// is that of the record which says so.
	Reservation Reservation
	Revision    int64
	For         fleet.ServerKey // that wants it
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

// Claims are the reservations that a server holds, or its account for it, sorted.
type Claims struct {
	Held []Reservation `json:"held"`
}

// Upgrade reads the claims of schemas 1 and 2, in which each server had a share in its
// account's global host, a record of its own: shares/<host>/<account>/<region>.
func (c *Claims) Upgrade(int, []byte) error {
	for i, res := range c.Held {
		if share, ok := strings.CutPrefix(string(res), sharesFolder); ok {
			host, _, _ := strings.Cut(share, "/")
			c.Held[i] = ReserveGlobal(host)
		}
	}
	slices.Sort(c.Held)
	return nil
}

// Claims returns the reservations that a server holds.
func (r *Records) Claims(ctx context.Context, k fleet.ServerKey) (Versioned[Claims], error) {
	return fetch[Claims](ctx, r, claimsKey(k))
}

// Holder is who holds a reservation. It outlives the server where that gave the host up,
// or is gone: until its time is over, it is for other servers of its account alone (H10).
// One without a region is an account: which of its servers need the host is not stored.
type Holder struct {
	fleet.ServerKey
	Until *time.Time `json:"until,omitempty"` // nil: the server has not given it up
}

// holds is the reservation that is stored at a key, as this holder has it.
func (h Holder) holds(key string) Reservation {
	if host, ok := strings.CutPrefix(key, hostsFolder); ok && h.Region == "" {
		return ReserveGlobal(host)
	}
	return Reservation(key)
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
	v, err := fetch[Holder](ctx, r, res.Key())
	return v.Value, v.Exists(), err
}

// ServersOf returns the servers of an account as they are now, sorted by region.
func (r *Records) ServersOf(ctx context.Context, account string) (all []fleet.ServerKey, err error) {
	folder := accountRefs(account)
	err = r.scan(ctx, folder, new(int64), func(key string, _ kv.Item) {
		all = append(all, fleet.ServerKey{Account: account, Region: strings.TrimPrefix(key, folder)})
	})
	return all, err
}

// Globals returns the hosts that are reserved for accounts, and whose each is.
func (r *Records) Globals(ctx context.Context) (map[Reservation]string, error) {
	all := map[Reservation]string{}
	err := r.eachHolder(ctx, hostsFolder, func(res Reservation, h Versioned[Holder]) {
		if res.IsGlobal() {
			all[res] = h.Value.Account
		}
	})
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

// eachHolder goes through the reservations of a folder. One that cannot be read is left
// alone.
func (r *Records) eachHolder(ctx context.Context, folder string, f func(Reservation, Versioned[Holder])) error {
	return r.scan(ctx, folder, new(int64), func(key string, item kv.Item) {
		if h, err := decode[Holder](item); err == nil {
			f(h.Value.holds(key), h)
		}
	})
}

// PortsTaken returns the reserved host ports of a container endpoint and their owners.
func (r *Records) PortsTaken(ctx context.Context, endpoint string) (map[int]fleet.ServerKey, error) {
	folder, taken := portsFolder+endpoint+"/", map[int]fleet.ServerKey{}
	err := r.scan(ctx, folder, new(int64), func(key string, item kv.Item) {
		if port, err := strconv.Atoi(strings.TrimPrefix(key, folder)); err == nil {
			// A record that cannot be read still takes its port: the owner is unknown.
			owner, _ := decode[fleet.ServerKey](item)
			taken[port] = owner.Value
		}
	})
	return taken, err
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
		if err := c.takeOne(ctx, tx, res, slices.Contains(held, res)); err != nil {
			return err
		}
		if !slices.Contains(held, res) {
			held = append(held, res)
		}
	}
	for _, res := range c.give {
		if err := tx.keepUntil(ctx, c.owner, res, c.until); err != nil {
			return err
		}
	}
	for _, res := range c.release {
		if slices.Contains(c.take, res) {
			continue
		}
		held = slices.DeleteFunc(held, func(h Reservation) bool { return h == res })
		if res.IsGlobal() || tx.writes(res.Key()) {
			continue // another server of the account may need it, and Forget ends it; or it was given up
		}
		at, err := fetch[Holder](ctx, tx.records, res.Key())
		if err != nil {
			return err
		}
		switch {
		case at.Value.ServerKey != c.owner:
		case at.Value.KeptFrom("", tx.now).IsZero():
			tx.remove(res.Key(), at.Revision)
		default: // it stays the account's (H10)
			tx.compare(kv.Unchanged(res.Key(), at.Revision))
		}
	}
	for _, res := range record.Value.Held {
		if !res.IsGlobal() || slices.Contains(c.take, res) {
			continue
		}
		at, err := fetch[Holder](ctx, tx.records, res.Key())
		if err != nil {
			return err
		}
		if at.Value.ServerKey != res.HolderFor(c.owner) { // it was forgotten since
			held = slices.DeleteFunc(held, func(h Reservation) bool { return h == res })
		}
	}
	slices.Sort(held)
	if slices.Equal(held, record.Value.Held) {
		tx.compare(kv.Unchanged(claimsKey(c.owner), record.Revision))
		return nil
	}
	if len(held) == 0 {
		tx.remove(claimsKey(c.owner), record.Revision)
		return nil
	}
	put(tx, claimsKey(c.owner), record, Claims{Held: held})
	return nil
}

// takeOne takes a reservation. A server that comes to need its account's host writes that
// anew: who has just found that none needs it loses against it.
func (c *claim) takeOne(ctx context.Context, tx *Tx, res Reservation, held bool) error {
	if res.IsGlobal() && tx.writes(res.Key()) {
		return nil // for another server of the account
	}
	at, err := fetch[Holder](ctx, tx.records, res.Key())
	if err == nil {
		err = c.free(ctx, tx, res, at)
	}
	if err != nil {
		return err
	}
	if mine := (Holder{ServerKey: res.HolderFor(c.owner)}); at.Value != mine || res.IsGlobal() && !held {
		put(tx, res.Key(), at, mine)
		return nil
	}
	tx.compare(kv.Unchanged(res.Key(), at.Revision))
	return nil
}

// keepUntil keeps what a server gives up for its account until the time.
func (tx *Tx) keepUntil(ctx context.Context, k fleet.ServerKey, res Reservation, until time.Time) error {
	at, err := fetch[Holder](ctx, tx.records, res.Key())
	if err == nil && at.Value.ServerKey == res.HolderFor(k) && !tx.writes(res.Key()) {
		put(tx, res.Key(), at, Holder{ServerKey: at.Value.ServerKey, Until: &until})
	}
	return err
}

// free returns a *UsedError where the owner may not have what another server, or an account,
// holds. What was given up by a server that is gone, or that has released it, is its account's
// at once, and anybody's when the time is over.
func (c *claim) free(ctx context.Context, tx *Tx, res Reservation, at Versioned[Holder]) error {
	h := at.Value
	if !at.Exists() || h.ServerKey == res.HolderFor(c.owner) {
		return nil
	}
	used := &UsedError{
		What: res.String(), By: "server " + h.String(), Server: h.ServerKey,
		Reservation: h.holds(res.Key()), Revision: at.Revision, For: c.owner, Until: h.KeptFrom(c.owner.Account, tx.now),
	}
	if h.Region == "" {
		used.By = fmt.Sprintf("account %q", h.Account)
		return used
	}
	if h.Until == nil || !used.Until.IsZero() {
		return used
	}
	claims, err := tx.records.Claims(ctx, h.ServerKey)
	if err == nil && slices.Contains(claims.Value.Held, used.Reservation) {
		err = used
	}
	return err
}
