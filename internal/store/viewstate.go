package store

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// state is what a view shows. Records are decoded once, when they change, and never
// changed afterwards.
type state struct {
	accounts  map[string]*Versioned[fleet.Account]
	templates map[string]*Versioned[fleet.HostTemplate]
	regions   map[string]*Versioned[fleet.Region]
	tokens    map[string]*Versioned[fleet.Token]
	endpoints map[string]map[string]*Versioned[fleet.CacheEndpoint] // by account, then name
	clusters  map[string]*Versioned[fleet.KubeIdentity]             // by cluster/namespace
	servers   map[fleet.ServerKey]*server
	events    map[fleet.ServerKey]int64 // revision of each server's newest event
	byRegion  map[string]map[fleet.ServerKey]bool
	byAccount map[string]map[fleet.ServerKey]bool
	problems  map[string]Problem // by key below the prefix
	revisions map[string]int64   // of the records that cannot be read
	stored    map[string]Stored  // by token
}

// server is what a view knows of one server.
type server struct {
	key    fleet.ServerKey
	intent *Versioned[fleet.Intent]
	status *Versioned[fleet.Status]
	try    *Versioned[fleet.Try]
	latest *Versioned[fleet.Deployment]
	bad    int // how many of its records cannot be read
}

// whole reports whether the server exists and can be read as a whole.
func (s *server) whole() bool { return s != nil && s.intent != nil && s.bad == 0 }

func newState() *state {
	return &state{
		accounts: map[string]*Versioned[fleet.Account]{}, templates: map[string]*Versioned[fleet.HostTemplate]{},
		regions: map[string]*Versioned[fleet.Region]{}, tokens: map[string]*Versioned[fleet.Token]{},
		endpoints: map[string]map[string]*Versioned[fleet.CacheEndpoint]{},
		clusters:  map[string]*Versioned[fleet.KubeIdentity]{},
		servers:   map[fleet.ServerKey]*server{}, byRegion: map[string]map[fleet.ServerKey]bool{},
		events: map[fleet.ServerKey]int64{}, byAccount: map[string]map[fleet.ServerKey]bool{}, problems: map[string]Problem{}, revisions: map[string]int64{},
		stored: map[string]Stored{},
	}
}

// loader takes records into a state, as all of them were at one revision.
type loader struct {
	records  *Records
	state    *state
	revision int64 // 0: none was read yet
}

// folder takes in all records below a folder.
func (l *loader) folder(ctx context.Context, folder string) error {
	return l.records.scan(ctx, folder, &l.revision, l.take)
}

// record takes in one record, if there is one. A key sorts before all that begin with it, so
// the first of a list of one is the key or something else.
func (l *loader) record(ctx context.Context, key string) error {
	page, err := l.records.store.List(ctx, l.records.prefix+key, kv.ListOptions{Limit: 1, Revision: l.revision})
	if err != nil {
		return unavailable("read "+describe(key), err)
	}
	for _, item := range page.Items {
		if item.Key == l.records.prefix+key {
			l.take(key, item)
		}
	}
	return nil
}

func (l *loader) take(key string, item kv.Item) {
	l.state.apply(key, kv.Change{Key: item.Key, Item: item}, l.records.prefix)
}

// load lists all records at one revision. Of the deployments it reads only the latest
// of each server, which is a tenth of all records at the most.
func load(ctx context.Context, r *Records) (*state, int64, error) {
	l := loader{records: r, state: newState()}
	for _, folder := range []string{accountsFolder, templatesFolder, regionsFolder, tokensFolder, endpointsFolder, clustersFolder, serversFolder, eventsFolder} {
		if err := l.folder(ctx, folder); err != nil {
			return nil, 0, err
		}
	}
	for k, e := range maps.Clone(l.state.servers) {
		if e.intent == nil || e.intent.Value.Deployment == 0 {
			continue
		}
		if err := l.record(ctx, deploymentKey(k, e.intent.Value.Deployment)); err != nil {
			return nil, 0, err
		}
	}
	return l.state, l.revision, nil
}

// apply takes in one change; ok is false where it concerns nothing that a view shows or
// tells of.
func (s *state) apply(key string, e kv.Change, prefix string) (u Update, ok bool) {
	p, known := parseKey(key)
	if !known {
		return u, false
	}
	u = Update{Kind: p.kind, Key: p.server, Name: p.name, Revision: e.Item.Revision, Deleted: e.Deleted}
	wasBad := s.forget(key)
	s.recount(s.counts(p), -1)
	defer func() { s.recount(s.counts(p), 1) }()
	var err error
	switch p.kind {
	case KindAccount:
		err = set(s.accounts, p.name, e)
	case KindTemplate:
		err = set(s.templates, p.name, e)
	case KindRegion:
		err = set(s.regions, p.name, e)
	case KindToken:
		err = set(s.tokens, p.name, e)
	case KindCluster:
		err = set(s.clusters, p.name, e)
	case KindEndpoint:
		err = s.applyEndpoint(p, e)
	case KindTry: // no news of a server
		_ = s.applyServer(p, e, wasBad)
		return u, false
	case KindIntent, KindStatus, KindDeployment:
		err = s.applyServer(p, e, wasBad)
	case KindEvent: // they go all at once
		if e.Deleted {
			delete(s.events, p.server)
		} else {
			s.events[p.server] = max(s.events[p.server], e.Item.Revision)
		}
		return u, true
	case KindLeader, KindSchema, KindClaims, KindReservation, KindReference, KindLock, KindAnchor, KindOrphan:
		return u, false
	}
	if err != nil {
		s.problems[key] = Problem{Key: prefix + key, What: describe(key), Err: err}
		s.revisions[key] = e.Item.Revision
	}
	return u, true
}

// accountOf is the account of a cache endpoint.
func accountOf(p place) string {
	account, _, _ := strings.Cut(p.name, "/")
	return account
}

func (s *state) applyEndpoint(p place, e kv.Change) error {
	account := accountOf(p)
	of := s.endpoints[account]
	if of == nil {
		of = map[string]*Versioned[fleet.CacheEndpoint]{}
		s.endpoints[account] = of
	}
	err := set(of, p.name, e)
	if len(of) == 0 {
		delete(s.endpoints, account)
	}
	return err
}

// forget drops the problem of a key that has changed.
func (s *state) forget(key string) (was bool) {
	_, was = s.problems[key]
	delete(s.problems, key)
	delete(s.revisions, key)
	return was
}

func (s *state) applyServer(p place, e kv.Change, wasBad bool) (err error) {
	v := s.servers[p.server]
	if v == nil {
		v = &server{key: p.server}
		s.servers[p.server] = v
		index(s.byRegion, p.server.Region, p.server)
		index(s.byAccount, p.server.Account, p.server)
	}
	if wasBad {
		v.bad--
	}
	switch {
	case p.kind == KindIntent:
		v.intent, err = decoded[fleet.Intent](e)
	case p.kind == KindTry:
		if v.try, err = decoded[fleet.Try](e); err != nil { // it costs one more try
			v.try, err = &Versioned[fleet.Try]{Revision: e.Item.Revision}, nil
		}
	case p.kind == KindStatus:
		v.status, err = decoded[fleet.Status](e)
	case p.kind == KindDeployment && (v.latest == nil || p.seq >= v.latest.Value.Seq):
		v.latest, err = decoded[fleet.Deployment](e)
	}
	if err != nil {
		v.bad++
	}
	if v.intent == nil && v.status == nil && v.try == nil && v.latest == nil && v.bad == 0 {
		delete(s.servers, p.server)
		unindex(s.byRegion, p.server.Region, p.server)
		unindex(s.byAccount, p.server.Account, p.server)
	}
	return err
}

// whole returns those of the keys that are of whole servers and that keep wants (nil: all),
// sorted.
func (s *state) whole(keys iter.Seq[fleet.ServerKey], keep func(fleet.ServerKey) bool) []fleet.ServerKey {
	var out []fleet.ServerKey
	for k := range keys {
		if s.servers[k].whole() && (keep == nil || keep(k)) {
			out = append(out, k)
		}
	}
	slices.SortFunc(out, compareKeys)
	return out
}

// index of everything that a view tells of: the key and its revision.
func (s *state) all() map[string]int64 {
	out := maps.Clone(s.revisions)
	for n, v := range s.accounts {
		out[accountsFolder+n] = v.Revision
	}
	for n, v := range s.templates {
		out[templatesFolder+n] = v.Revision
	}
	for n, v := range s.regions {
		out[regionsFolder+n] = v.Revision
	}
	for n, v := range s.tokens {
		out[tokensFolder+n] = v.Revision
	}
	for _, of := range s.endpoints {
		for n, v := range of {
			out[endpointsFolder+n] = v.Revision
		}
	}
	for k, revision := range s.events {
		out[eventFolder(k)+"newest"] = revision
	}
	for k, v := range s.servers {
		if v.intent != nil {
			out[intentKey(k)] = v.intent.Revision
		}
		if v.status != nil {
			out[statusKey(k)] = v.status.Revision
		}
		if v.latest != nil {
			out[deploymentKey(k, v.latest.Value.Seq)] = v.latest.Revision
		}
	}
	return out
}

// differences are the updates that lead from one state to another: first what went,
// then what came or changed, in the order of revisions.
func differences(before, after *state, revision int64) []Update {
	old, fresh := before.all(), after.all()
	var out []Update
	add := func(key string, rev int64, deleted bool) {
		if p, ok := parseKey(key); ok {
			out = append(out, Update{Kind: p.kind, Key: p.server, Name: p.name, Revision: rev, Deleted: deleted})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(old)) {
		if _, ok := fresh[key]; !ok {
			add(key, revision, true)
		}
	}
	changed := slices.DeleteFunc(slices.Collect(maps.Keys(fresh)), func(key string) bool { return old[key] == fresh[key] })
	slices.SortFunc(changed, func(a, b string) int {
		return cmp.Or(cmp.Compare(fresh[a], fresh[b]), strings.Compare(a, b))
	})
	for _, key := range changed {
		add(key, fresh[key], false)
	}
	return out
}

func newProblems(before, after *state) []Problem {
	fresh := maps.Clone(after.problems)
	maps.DeleteFunc(fresh, func(key string, _ Problem) bool { return before.revisions[key] == after.revisions[key] })
	return sortedProblems(fresh)
}

func set[T any](m map[string]*Versioned[T], name string, e kv.Change) error {
	v, err := decoded[T](e)
	if v == nil {
		delete(m, name)
	} else {
		m[name] = v
	}
	return err
}

// decoded returns the record after a change; nil where it is gone or cannot be read.
func decoded[T any](e kv.Change) (*Versioned[T], error) {
	if e.Deleted {
		return nil, nil
	}
	v, err := decode[T](e.Item)
	if err != nil {
		return nil, err
	}
	return &v, nil
}

func index(m map[string]map[fleet.ServerKey]bool, name string, k fleet.ServerKey) {
	if m[name] == nil {
		m[name] = map[fleet.ServerKey]bool{}
	}
	m[name][k] = true
}

func unindex(m map[string]map[fleet.ServerKey]bool, name string, k fleet.ServerKey) {
	if delete(m[name], k); len(m[name]) == 0 {
		delete(m, name)
	}
}

func compareKeys(a, b fleet.ServerKey) int {
	return cmp.Or(strings.Compare(a.Region, b.Region), strings.Compare(a.Account, b.Account))
}
