package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// Records are the typed records of one environment in a store.
type Records struct {
	store   kv.Store
	prefix  string        // /kura/v1/<environment>/
	storeID string        // set by Prepare
	leader  kv.Leadership // nil: a write says nothing of who leads
	silence *silence      // of writes that run alone
	room    *room
}

// NewRecords returns the records of an environment. Prepare must be called before
// anything is written.
func NewRecords(s kv.Store, environment string) *Records {
	return &Records{store: s, prefix: keyRoot + environment + "/", silence: &silence{}, room: &room{}}
}

// Environments names those that a store holds anything of, in order.
func Environments(ctx context.Context, s kv.Store) ([]string, error) {
	var names []string
	after := ""
	for {
		page, err := s.List(ctx, keyRoot, kv.ListOptions{Limit: 1, After: after})
		if err != nil {
			return nil, unavailable("read whose records there are", err)
		}
		if len(page.Items) == 0 {
			return names, nil
		}
		name, _, _ := strings.Cut(strings.TrimPrefix(page.Items[0].Key, keyRoot), "/")
		names = append(names, name)
		after = keyRoot + name + "/\xff" // behind all of its keys
	}
}

// Schema is the record that says what the records of an environment look like.
type Schema struct {
	Version int `json:"version"`
	// Store names this set of records for ever: cursors that name another are foreign.
	Store string `json:"store"`
}

// Prepare checks that this kurad can read the records, and writes the schema record of
// a new environment; or of an older one, which no older kurad opens from then on (G7).
func (r *Records) Prepare(ctx context.Context) error {
	for {
		s, err := fetch[Schema](ctx, r, schemaKey)
		if err != nil {
			return fmt.Errorf("open the records below %s: %w", r.prefix, err)
		}
		if s.Value.Version > fleet.SchemaVersion {
			return fmt.Errorf("open the records below %s: %w", r.prefix, newerSchema(s.Value.Version))
		}
		if s.Value.Version == fleet.SchemaVersion {
			r.storeID = s.Value.Store
			r.fullness(ctx)
			return nil
		}
		switch _, err := r.store.Get(ctx, r.prefix+restoringKey); {
		case err == nil:
			return fmt.Errorf("open the records below %s: a snapshot was not restored to its end; run \"kurad snapshot restore\" again", r.prefix)
		case !errors.Is(err, kv.ErrNotFound):
			return unavailable("open the records below "+r.prefix, err)
		}
		tx := r.Begin()
		tx.compare(kv.Absent(restoringKey))
		tx.then = append(tx.then, kv.DeletePrefix(sharesFolder))
		put(tx, schemaKey, s, Schema{Version: fleet.SchemaVersion, Store: cmp.Or(s.Value.Store, rand.Text())})
		if _, err := tx.Commit(ctx); err != nil && !kv.IsConflict(err) {
			return fmt.Errorf("prepare the records below %s: %w", r.prefix, err)
		}
	}
}

// StoreID names this set of records: it is made once, when the environment is new.
func (r *Records) StoreID() string { return r.storeID }

// Store returns the store below.
func (r *Records) Store() kv.Store { return r.store }

// LeaderPrefix is the folder of keys in which those who would lead this environment
// campaign.
func (r *Records) LeaderPrefix() string { return r.prefix + leaderFolder }

// Leader returns what the leader of this environment says of itself; ok is false while
// there is none.
func (r *Records) Leader(ctx context.Context) (value []byte, ok bool, err error) {
	item, err := r.store.Get(ctx, kv.LeaderKey(r.LeaderPrefix()))
	if errors.Is(err, kv.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, unavailable("read who leads", err)
	}
	return item.Value, true, nil
}

// Fenced returns the same records, whose every write compares the guard of a leadership as
// well: where it does not hold any more the write fails with ErrNotLeader, and the
// leadership is given up.
func (r *Records) Fenced(by kv.Leadership) *Records {
	fenced := *r
	fenced.leader = by
	return &fenced
}

// Revision returns the store's present revision; every write acknowledged before the
// call has one that is not later. View.CatchUp waits until a view has reached it.
func (r *Records) Revision(ctx context.Context) (int64, error) {
	page, err := r.store.List(ctx, r.prefix+schemaKey, kv.ListOptions{Limit: 1})
	if err != nil {
		return 0, unavailable("read the store's revision", err)
	}
	return page.Revision, nil
}

// Account returns an account.
func (r *Records) Account(ctx context.Context, id string) (Versioned[fleet.Account], error) {
	return get[fleet.Account](ctx, r, accountsFolder+id)
}

// Template returns a host template.
func (r *Records) Template(ctx context.Context, name string) (Versioned[fleet.HostTemplate], error) {
	return get[fleet.HostTemplate](ctx, r, templatesFolder+name)
}

// Region returns a region.
func (r *Records) Region(ctx context.Context, name string) (Versioned[fleet.Region], error) {
	return get[fleet.Region](ctx, r, regionsFolder+name)
}

// Intent returns a server's declaration.
func (r *Records) Intent(ctx context.Context, k fleet.ServerKey) (Versioned[fleet.Intent], error) {
	return get[fleet.Intent](ctx, r, intentKey(k))
}

// Status returns a server's projected status; it does not exist before the first turn.
func (r *Records) Status(ctx context.Context, k fleet.ServerKey) (Versioned[fleet.Status], error) {
	return get[fleet.Status](ctx, r, statusKey(k))
}

// Deployment returns a deployment of a server.
func (r *Records) Deployment(ctx context.Context, k fleet.ServerKey, seq int64) (Versioned[fleet.Deployment], error) {
	return get[fleet.Deployment](ctx, r, deploymentKey(k, seq))
}

// CacheEndpoint returns a declared endpoint of an account by its key.
func (r *Records) CacheEndpoint(ctx context.Context, account, key string) (Versioned[fleet.CacheEndpoint], error) {
	return get[fleet.CacheEndpoint](ctx, r, endpointFolder(account)+key)
}

// Identity returns which namespace a cluster and a namespace stand for; it does not exist
// before the first good observation.
func (r *Records) Identity(ctx context.Context, cluster, namespace string) (Versioned[fleet.KubeIdentity], error) {
	return get[fleet.KubeIdentity](ctx, r, identityKey(cluster, namespace))
}

// Identify stores which namespace that is, unless it is stored already.
func (r *Records) Identify(ctx context.Context, v fleet.KubeIdentity) error {
	tx := r.Begin()
	tx.PutIdentity(Versioned[fleet.KubeIdentity]{}, v)
	_, err := tx.Commit(ctx)
	if kv.IsConflict(err) {
		return nil
	}
	return err
}

// Token returns a token.
func (r *Records) Token(ctx context.Context, id string) (Versioned[fleet.Token], error) {
	return get[fleet.Token](ctx, r, tokensFolder+id)
}

// Gather returns all that is stored of one server, read at one revision that is not
// older than the call.
func (r *Records) Gather(ctx context.Context, k fleet.ServerKey) (fleet.Gathered, error) {
	l := loader{records: r, state: newState()}
	if err := l.folder(ctx, serverFolder(k)); err != nil {
		return fleet.Gathered{}, err
	}
	s := l.state.servers[k]
	if s == nil || s.intent == nil && s.bad == 0 {
		return fleet.Gathered{}, notFound(intentKey(k))
	}
	keys := []string{accountsFolder + k.Account, regionsFolder + k.Region}
	if s.intent != nil {
		keys = append(keys, deploymentKey(k, s.intent.Value.Deployment))
	}
	for _, key := range keys {
		if err := l.record(ctx, key); err != nil {
			return fleet.Gathered{}, err
		}
	}
	if region := l.state.regions[k.Region]; region != nil {
		for _, name := range templateNames(region.Value) {
			if err := l.record(ctx, templatesFolder+name); err != nil {
				return fleet.Gathered{}, err
			}
		}
	}
	for _, p := range sortedProblems(l.state.problems) {
		return fleet.Gathered{}, malformed(strings.TrimPrefix(p.Key, r.prefix), p.Err)
	}
	return l.state.gather(s), nil
}

// PageOptions select a page of a list: all pages of one list pass the Revision of the
// first one, and the After of the one before.
type PageOptions struct {
	Limit    int
	After    string
	Revision int64
}

// Listing is a page of a list, in the order of names. After is set where more follows.
type Listing[T any] struct {
	Items    []Versioned[T]
	Revision int64
	After    string
	// Problems names the records that could not be read: they are missing in Items.
	Problems []Problem
}

// Problem is a stored record that cannot be read.
type Problem struct {
	Key  string // in the store
	What string // in words
	Err  error
}

// Accounts lists accounts by id.
func (r *Records) Accounts(ctx context.Context, o PageOptions) (Listing[fleet.Account], error) {
	return list[fleet.Account](ctx, r, accountsFolder, o)
}

// Templates lists host templates by name.
func (r *Records) Templates(ctx context.Context, o PageOptions) (Listing[fleet.HostTemplate], error) {
	return list[fleet.HostTemplate](ctx, r, templatesFolder, o)
}

// Regions lists regions by name.
func (r *Records) Regions(ctx context.Context, o PageOptions) (Listing[fleet.Region], error) {
	return list[fleet.Region](ctx, r, regionsFolder, o)
}

// CacheEndpoints lists the declared endpoints of an account by key; of all accounts, by
// account and key, where account is "".
func (r *Records) CacheEndpoints(ctx context.Context, account string, o PageOptions) (Listing[fleet.CacheEndpoint], error) {
	if account == "" {
		return list[fleet.CacheEndpoint](ctx, r, endpointsFolder, o)
	}
	return list[fleet.CacheEndpoint](ctx, r, endpointFolder(account), o)
}

// Tokens lists tokens by id.
func (r *Records) Tokens(ctx context.Context, o PageOptions) (Listing[fleet.Token], error) {
	return list[fleet.Token](ctx, r, tokensFolder, o)
}

// Deployments lists the kept deployments of a server, the oldest first.
func (r *Records) Deployments(ctx context.Context, k fleet.ServerKey, o PageOptions) (Listing[fleet.Deployment], error) {
	return list[fleet.Deployment](ctx, r, deploymentFolder(k), o)
}

// get returns a record that must exist.
func get[T any](ctx context.Context, r *Records, key string) (Versioned[T], error) {
	v, err := fetch[T](ctx, r, key)
	if err == nil && !v.Exists() {
		err = notFound(key)
	}
	return v, err
}

// fetch returns a record, the zero one where there is none.
func fetch[T any](ctx context.Context, r *Records, key string) (Versioned[T], error) {
	item, err := r.store.Get(ctx, r.prefix+key)
	if errors.Is(err, kv.ErrNotFound) {
		return Versioned[T]{}, nil
	}
	if err != nil {
		return Versioned[T]{}, unavailable("read "+describe(key), err)
	}
	v, err := decode[T](item)
	if err != nil {
		return v, malformed(key, err)
	}
	return v, nil
}

// scanPage is how many records are read at once.
const scanPage = 1000

// scan calls each for every key below a folder, in order, with the keys below the prefix: as
// they are at the revision, or now where that is 0; it is then set.
func (r *Records) scan(ctx context.Context, folder string, revision *int64, each func(key string, item kv.Item)) error {
	for after := ""; ; {
		page, err := r.store.List(ctx, r.prefix+folder, kv.ListOptions{Limit: scanPage, After: after, Revision: *revision})
		if err != nil {
			return unavailable(strings.TrimSuffix("list "+folder, "/"), err)
		}
		*revision = page.Revision
		for _, item := range page.Items {
			each(strings.TrimPrefix(item.Key, r.prefix), item)
			after = item.Key
		}
		if !page.More {
			return nil
		}
	}
}

func list[T any](ctx context.Context, r *Records, folder string, o PageOptions) (Listing[T], error) {
	lo := kv.ListOptions{Limit: o.Limit, Revision: o.Revision}
	if o.After != "" {
		lo.After = r.prefix + folder + o.After
	}
	page, err := r.store.List(ctx, r.prefix+folder, lo)
	if err != nil {
		return Listing[T]{}, unavailable("list "+strings.TrimSuffix(folder, "/"), err)
	}
	out := Listing[T]{Items: make([]Versioned[T], 0, len(page.Items)), Revision: page.Revision}
	for _, item := range page.Items {
		v, err := decode[T](item)
		if err != nil {
			key := strings.TrimPrefix(item.Key, r.prefix)
			out.Problems = append(out.Problems, Problem{Key: item.Key, What: describe(key), Err: err})
			continue
		}
		out.Items = append(out.Items, v)
	}
	if page.More {
		out.After = strings.TrimPrefix(page.Items[len(page.Items)-1].Key, r.prefix+folder)
	}
	return out, nil
}

// templateNames are the host templates that a region uses, each once.
func templateNames(region fleet.Region) []string {
	var names []string
	for _, n := range []string{region.Hosts.Public, region.Hosts.GRPC, region.Hosts.Global} {
		if n != "" && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}

func notFound(key string) error {
	return fleet.Errorf(fleet.CodeNotFound, "%s does not exist", describe(key))
}

func malformed(key string, err error) error {
	return &fleet.Error{Code: fleet.CodeInternal, Message: describe(key), Err: err}
}

// unavailable says that the store gave no answer. Conditions that a caller tells apart
// (a conflict, a compacted revision, its own context) stay visible to errors.Is and As.
func unavailable(attempt string, err error) error {
	if kv.IsConflict(err) {
		return fmt.Errorf("%s: %w", attempt, err)
	}
	return &fleet.Error{Code: fleet.CodeUnavailable, Message: attempt, Err: err}
}

// now is when records are written; a synctest bubble has its own.
func now() time.Time { return time.Now().UTC() }
