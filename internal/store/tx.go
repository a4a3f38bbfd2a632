package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// MaxDeployments is how many deployments of a server are kept, the newest ones.
const MaxDeployments = 50

// Tx collects what one transaction requires and changes, so that an invariant that
// spans records holds or nothing happens. A put names the version it replaces: the
// zero Versioned creates. Methods may be called in any order; the first conflict, in
// that order, is the one that Commit reports. A Tx is for one goroutine and one Commit.
type Tx struct {
	records *Records
	now     time.Time
	ifs     []kv.Compare
	then    []kv.Op
	claims  []*claim
	events  []fleet.Event
	departs *fleet.ServerKey // that is gone with it
	err     error
	grows   bool   // it may not use up the store's reserve
	by      string // token that declares what it puts; "": it is kurad's own
	counts  [2]Counts

	committed func(revision int64) // told of success
}

// Begin starts a transaction.
func (r *Records) Begin() *Tx { return r.BeginAt(now()) }

// BeginAt starts a transaction by the caller's clock, which decides what is kept for
// others.
func (r *Records) BeginAt(now time.Time) *Tx { return &Tx{records: r, now: now} }

// PutAccount stores an account in place of prev.
func (tx *Tx) PutAccount(prev Versioned[fleet.Account], v fleet.Account) {
	declare(tx, accountsFolder+v.ID, prev, v, prev.Generation+1)
}

// DeleteAccount removes an account that no server needs and no cache endpoint is of.
func (tx *Tx) DeleteAccount(v Versioned[fleet.Account]) {
	tx.remove(accountsFolder+v.Value.ID, v.Revision)
	tx.compare(kv.NoneUnder(accountRefs(v.Value.ID)))
	tx.compare(kv.NoneUnder(endpointFolder(v.Value.ID)))
}

// KeepHandle keeps a name of an account for it that it gives up (H10).
func (tx *Tx) KeepHandle(account, handle string, until time.Time) {
	h := Holder{ServerKey: fleet.ServerKey{Account: account}, Until: &until}
	tx.then = append(tx.then, tx.sealed(ReserveHandle(handle).Key(), h))
}

// ForgetHandle ends the keeping of a name that an account has again.
func (tx *Tx) ForgetHandle(handle string) {
	tx.then = append(tx.then, kv.Delete(ReserveHandle(handle).Key()))
}

// Forget removes a reservation whose holder does not need it any more, unless it was taken
// again since the revision.
func (tx *Tx) Forget(res Reservation, revision int64) { tx.remove(res.Key(), revision) }

// RequireAccount makes the transaction fail if the account changes or goes.
func (tx *Tx) RequireAccount(v Versioned[fleet.Account]) {
	tx.compare(kv.Unchanged(accountsFolder+v.Value.ID, v.Revision))
}

// PutTemplate stores a host template in place of prev.
func (tx *Tx) PutTemplate(prev Versioned[fleet.HostTemplate], v fleet.HostTemplate) {
	declare(tx, templatesFolder+v.Name, prev, v, prev.Generation+1)
}

// DeleteTemplate removes a host template that no region uses.
func (tx *Tx) DeleteTemplate(v Versioned[fleet.HostTemplate]) {
	tx.remove(templatesFolder+v.Value.Name, v.Revision)
	tx.compare(kv.NoneUnder(templateRefs(v.Value.Name)))
}

// RequireTemplate makes the transaction fail if the host template changes or goes.
func (tx *Tx) RequireTemplate(v Versioned[fleet.HostTemplate]) {
	tx.compare(kv.Unchanged(templatesFolder+v.Value.Name, v.Revision))
}

// PutRegion stores a region in place of prev. The caller requires the templates that
// it names: only so can none of them go meanwhile.
func (tx *Tx) PutRegion(prev Versioned[fleet.Region], v fleet.Region) {
	declare(tx, regionsFolder+v.Name, prev, v, prev.Generation+1)
	before, after := templateNames(prev.Value), templateNames(v)
	for _, name := range before {
		if !slices.Contains(after, name) {
			tx.then = append(tx.then, kv.Delete(templateRef(name, v.Name)))
		}
	}
	for _, name := range after {
		if !slices.Contains(before, name) {
			tx.refer(templateRef(name, v.Name))
		}
	}
}

// DeleteRegion removes a region in which no server is.
func (tx *Tx) DeleteRegion(v Versioned[fleet.Region]) {
	tx.remove(regionsFolder+v.Value.Name, v.Revision)
	tx.compare(kv.NoneUnder(serversFolder + v.Value.Name + "/"))
	for _, name := range templateNames(v.Value) {
		tx.then = append(tx.then, kv.Delete(templateRef(name, v.Value.Name)))
	}
}

// RequireRegion makes the transaction fail if the region changes or goes.
func (tx *Tx) RequireRegion(v Versioned[fleet.Region]) {
	tx.compare(kv.Unchanged(regionsFolder+v.Value.Name, v.Revision))
}

// PutIntent stores a server's declaration in place of prev; its generation is v's own.
// Whoever creates a server requires its account and its region as well: only so can
// neither of them go meanwhile (P18). Only CommitTurn removes an intent.
func (tx *Tx) PutIntent(prev Versioned[fleet.Intent], v fleet.Intent) {
	if prev.CreatedAt.IsZero() {
		prev.CreatedAt = v.CreatedAt
	}
	declare(tx, intentKey(v.Key()), prev, v, v.Generation)
	if !prev.Exists() {
		tx.refer(accountRef(v.Key()))
	}
}

// RequireIntent makes the transaction fail if the server's declaration changes or goes.
func (tx *Tx) RequireIntent(v Versioned[fleet.Intent]) {
	tx.compare(kv.Unchanged(intentKey(v.Value.Key()), v.Revision))
}

// PutDeployment stores a deployment in place of prev. Adding one forgets the one that
// is MaxDeployments older.
func (tx *Tx) PutDeployment(prev Versioned[fleet.Deployment], v fleet.Deployment) {
	k := fleet.ServerKey{Account: v.Account, Region: v.Region}
	tx.grow(!prev.Exists())
	put(tx, deploymentKey(k, v.Seq), prev, v)
	if !prev.Exists() && v.Seq > MaxDeployments {
		tx.then = append(tx.then, kv.Delete(deploymentKey(k, v.Seq-MaxDeployments)))
	}
}

// PutStatus stores a server's status in place of prev, beside a write of its intent. Turns
// store theirs by CommitTurn.
func (tx *Tx) PutStatus(prev Versioned[fleet.Status], k fleet.ServerKey, v fleet.Status) {
	put(tx, statusKey(k), prev, v)
}

// RequireTry makes the transaction fail unless the newest claim of a try of the server's is of
// the revision, 0 for none: a status that is written ends what was claimed beside it.
func (tx *Tx) RequireTry(k fleet.ServerKey, revision int64) {
	tx.compare(kv.Unchanged(tryKey(k), revision))
}

// PutCacheEndpoint stores a declared endpoint in place of prev. The caller requires its
// account: only so can that not go meanwhile.
func (tx *Tx) PutCacheEndpoint(prev Versioned[fleet.CacheEndpoint], v fleet.CacheEndpoint) {
	declare(tx, endpointKey(v), prev, v, prev.Generation+1)
}

// DeleteCacheEndpoint removes a declared endpoint.
func (tx *Tx) DeleteCacheEndpoint(v Versioned[fleet.CacheEndpoint]) {
	tx.remove(endpointKey(v.Value), v.Revision)
}

// PutIdentity stores which namespace of a cluster that is in place of prev.
func (tx *Tx) PutIdentity(prev Versioned[fleet.KubeIdentity], v fleet.KubeIdentity) {
	put(tx, identityKey(v.Cluster, v.Namespace), prev, v)
}

// DeleteIdentity forgets which namespace of a cluster that is.
func (tx *Tx) DeleteIdentity(v Versioned[fleet.KubeIdentity]) {
	tx.remove(identityKey(v.Value.Cluster, v.Value.Namespace), v.Revision)
}

// PutToken stores a token in place of prev.
func (tx *Tx) PutToken(prev Versioned[fleet.Token], v fleet.Token) {
	put(tx, tokensFolder+v.ID, prev, v)
}

// DeleteToken removes a token.
func (tx *Tx) DeleteToken(v Versioned[fleet.Token]) {
	tx.remove(tokensFolder+v.Value.ID, v.Revision)
}

// RequireNoTokens makes the transaction fail with a conflict if there is any token.
func (tx *Tx) RequireNoTokens() { tx.compare(kv.NoneUnder(tokensFolder)) }

// Claim takes a reservation for a server; it may hold it already. If another server
// has it, Commit returns a *UsedError that names that server. The same transaction puts
// or requires the server's intent: nobody gives back what a server that is gone holds.
func (tx *Tx) Claim(owner fleet.ServerKey, res ...Reservation) {
	c := tx.claimOf(owner)
	c.take = append(c.take, res...)
}

// Release gives reservations of a server back. One that is claimed in the same
// transaction stays.
func (tx *Tx) Release(owner fleet.ServerKey, res ...Reservation) {
	c := tx.claimOf(owner)
	c.release = append(c.release, res...)
}

// GiveUp keeps reservations for the server's account until the time, once the server does
// not need them any more: it holds them until they are released or it is removed.
func (tx *Tx) GiveUp(owner fleet.ServerKey, until time.Time, res ...Reservation) {
	c := tx.claimOf(owner)
	c.give, c.until = append(c.give, res...), until
}

// AddEvent adds an event to its server's ring.
func (tx *Tx) AddEvent(e ...fleet.Event) { tx.events = append(tx.events, e...) }

// Commit runs the transaction and returns its revision. It fails with a
// *ConflictError where a record is not as it was read, with a *UsedError where
// something is taken or still needed, and with a fleet.Error of CodeUnavailable where
// the store did not answer: then the outcome is unknown.
func (tx *Tx) Commit(ctx context.Context) (int64, error) {
	if tx.grows {
		if err := tx.records.spare(ctx); err != nil {
			return 0, err
		}
	}
	for {
		if tx.err != nil {
			return 0, tx.err
		}
		try := &Tx{records: tx.records, now: tx.now, claims: tx.claims, ifs: slices.Clone(tx.ifs), then: slices.Clone(tx.then)}
		for _, c := range tx.claims {
			if err := c.resolve(ctx, try); err != nil {
				return 0, err
			}
		}
		if err := try.appendEvents(ctx, tx.events); err != nil {
			return 0, err
		}
		if tx.departs != nil {
			if err := try.depart(ctx, *tx.departs); err != nil {
				return 0, err
			}
		}
		if try.err != nil {
			return 0, try.err
		}
		revision, err := try.run(ctx)
		if err == nil && tx.committed != nil {
			tx.committed(revision)
		}
		// What Commit itself has read may have changed under it: that is no conflict of
		// the caller's.
		if conflict, ok := errors.AsType[*kv.ConflictError](err); ok && !tx.names(conflict.Key) {
			continue
		}
		return revision, err
	}
}

// names reports whether the caller, and not Commit, compares key.
func (tx *Tx) names(key string) bool {
	key = strings.TrimPrefix(key, tx.records.prefix)
	return slices.ContainsFunc(tx.ifs, func(c kv.Compare) bool { return c.Key == key })
}

// run sends the transaction to the store.
func (tx *Tx) run(ctx context.Context) (int64, error) {
	t := kv.Txn{If: make([]kv.Compare, 0, len(tx.ifs)+1), Then: make([]kv.Op, 0, len(tx.then))}
	leader := tx.records.leader
	if leader != nil {
		t.If = append(t.If, leader.Guard())
	}
	seen := map[kv.Compare]bool{}
	for _, c := range tx.ifs {
		if c.Key = tx.records.prefix + c.Key; !seen[c] {
			seen[c] = true
			t.If = append(t.If, c)
		}
	}
	for _, op := range tx.then {
		op.Key = tx.records.prefix + op.Key
		t.Then = append(t.Then, op)
	}
	revision, err := tx.records.store.Txn(ctx, t)
	if err == nil {
		return revision, nil
	}
	if conflict, ok := errors.AsType[*kv.ConflictError](err); ok {
		if leader != nil && conflict.Key == leader.Guard().Key {
			leader.GiveUp()
			return 0, fmt.Errorf("write to the store: %w", kv.ErrNotLeader)
		}
		return 0, tx.records.explain(ctx, conflict)
	}
	if errors.Is(err, kv.ErrTooLarge) {
		return 0, &fleet.Error{Code: fleet.CodeTooLarge, Message: "the change touches too much at once; make it in smaller steps", Err: err}
	}
	if errors.Is(err, kv.ErrBadTxn) {
		return 0, &fleet.Error{Code: fleet.CodeInternal, Message: "write to the store", Err: err}
	}
	return 0, unavailable("write to the store", err)
}

// explain puts a conflict into words, and one over a needed record into a UsedError.
func (r *Records) explain(ctx context.Context, c *kv.ConflictError) error {
	if c.Found == "" {
		return &kv.ConflictError{Key: c.Key, What: describe(strings.TrimPrefix(c.Key, r.prefix))}
	}
	key, found := strings.TrimPrefix(c.Key, r.prefix), strings.TrimPrefix(c.Found, r.prefix)
	folder := strings.TrimSuffix(key, "/")
	name := folder[strings.LastIndex(folder, "/")+1:]
	rest, _, _ := strings.Cut(found[len(key):], "/")
	usedBy := func(what string, server fleet.ServerKey) error {
		return &UsedError{What: fmt.Sprintf("%s %q", what, name), By: "server " + server.String(), Server: server}
	}
	switch {
	case strings.HasPrefix(key, serversFolder): // servers/<region>/ holds <account>/<part>
		return usedBy("region", fleet.ServerKey{Account: rest, Region: name})
	case strings.HasPrefix(key, refsFolder+accountsFolder):
		return usedBy("account", fleet.ServerKey{Account: name, Region: rest})
	case strings.HasPrefix(key, endpointsFolder):
		by := describe(found)
		if e, err := r.CacheEndpoint(ctx, name, rest); err == nil { // else the key has to do
			by = "cache endpoint " + e.Value.String()
		}
		return &UsedError{What: fmt.Sprintf("account %q", name), By: by}
	case strings.HasPrefix(key, refsFolder+templatesFolder):
		return &UsedError{What: fmt.Sprintf("host template %q", name), By: fmt.Sprintf("region %q", rest)}
	}
	return c
}

func put[T any](tx *Tx, key string, prev Versioned[T], v T) {
	tx.write(key, prev.Revision, func() ([]byte, error) { return encode(v, prev.Generation+1, prev.CreatedAt, tx.now) })
}

func (tx *Tx) write(key string, revision int64, value func() ([]byte, error)) {
	b, err := value()
	if err != nil && tx.err == nil {
		tx.err = fmt.Errorf("write %s: %w", describe(key), err)
	}
	tx.compare(kv.Unchanged(key, revision))
	tx.then = append(tx.then, kv.Put(key, b))
}

func (tx *Tx) remove(key string, revision int64) {
	tx.compare(kv.Unchanged(key, revision))
	tx.then = append(tx.then, kv.Delete(key))
}

// refer writes a reference, whose existence is all it says.
func (tx *Tx) refer(key string) { tx.then = append(tx.then, tx.sealed(key, struct{}{})) }

// sealed writes a record, whatever was there.
func (tx *Tx) sealed(key string, v any) kv.Op {
	b, err := encode(v, 1, tx.now, tx.now)
	if err != nil && tx.err == nil {
		tx.err = err
	}
	return kv.Put(key, b)
}

// writes reports whether the transaction writes the record already.
func (tx *Tx) writes(key string) bool {
	return slices.ContainsFunc(tx.then, func(o kv.Op) bool { return o.Key == key })
}

func (tx *Tx) compare(c kv.Compare) { tx.ifs = append(tx.ifs, c) }

func (tx *Tx) claimOf(owner fleet.ServerKey) *claim {
	for _, c := range tx.claims {
		if c.owner == owner {
			return c
		}
	}
	c := &claim{owner: owner}
	tx.claims = append(tx.claims, c)
	return c
}
