package server

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// Cursors are opaque to clients: base64 of fields between commas. All of them begin
// with the store's id, so that one of another store is recognised.

func (s *Server) cursor(fields ...string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join(append([]string{s.Records.StoreID()}, fields...), ",")))
}

// parseCursor returns the fields of a cursor of this store; ok is false for any other.
func (s *Server) parseCursor(cursor string, fields int) (values []string, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, false
	}
	values = strings.SplitN(string(b), ",", fields+1)
	if len(values) != fields+1 || values[0] != s.Records.StoreID() {
		return nil, false
	}
	return values[1:], true
}

// pointCursor is where a long poll goes on, in an order of the kind.
func (s *Server) pointCursor(kind string, at int64) string { return s.cursor(kind, fmt.Sprint(at)) }

func (s *Server) parsePoint(cursor, kind string) (after int64, ok bool) {
	f, ok := s.parseCursor(cursor, 2)
	if !ok || f[0] != kind {
		return 0, false
	}
	after, err := strconv.ParseInt(f[1], 10, 64)
	return after, err == nil && after >= 0
}

var errPageExpired = fleet.Errorf(api.CodeCursorExpired, "the list that the page cursor belongs to is no longer kept; begin the list again")

// PageInput is what every collection takes.
type PageInput struct {
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"1000" doc:"Items of a page at most."`
	Page  string `query:"page" maxLength:"1024" doc:"The next of the page before; empty for the first."`
}

// pageOptions reads the page cursor of a list that the store keeps by revision.
func (s *Server) pageOptions(in PageInput) (store.PageOptions, error) {
	o := store.PageOptions{Limit: in.Limit}
	if in.Page == "" {
		return o, nil
	}
	f, ok := s.parseCursor(in.Page, 2)
	if !ok {
		return o, errPageExpired
	}
	revision, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || revision < 1 {
		return o, errPageExpired
	}
	o.Revision, o.After = revision, f[1]
	return o, nil
}

// pageOf makes a page of the API from one of the store.
func pageOf[T, W any](s *Server, l store.Listing[T], err error, show func(store.Versioned[T]) W) (api.List[W], error) {
	if errors.Is(err, kv.ErrCompacted) {
		return api.List[W]{}, errPageExpired
	}
	if err != nil {
		return api.List[W]{}, err
	}
	for _, p := range l.Problems {
		s.Logger.Error("a stored record cannot be read and is left out of a list", "record", p.What, "key", p.Key, "error", p.Err)
	}
	out := api.List[W]{Items: make([]W, 0, len(l.Items))}
	for _, v := range l.Items {
		out.Items = append(out.Items, show(v))
	}
	if l.After != "" {
		out.Next = s.cursor(fmt.Sprint(l.Revision), l.After)
	}
	return out, nil
}

const listLife = time.Minute

// lists keep the rest of lists of servers whose first page was given out, so that
// all pages show one revision. They are few and short-lived: whoever comes too late
// begins again. Where a token has too many, the one goes that it used longest ago; where there
// are too many in all, that of whoever has the most.
type lists struct {
	now func() time.Time

	mu   sync.Mutex
	next int64
	kept []*keptList // the one that was used longest ago first
}

type keptList struct {
	id      int64
	used    time.Time
	token   string // who lists
	sees    string // account prefix of who lists: nobody goes on with a list of another view
	servers []fleet.Gathered
}

// keep stores a list and returns its id.
func (s *lists) keep(token fleet.Token, servers []fleet.Gathered) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	has := map[string]int{}
	most := ""
	for _, k := range s.kept {
		if has[k.token]++; has[k.token] > has[most] {
			most = k.token
		}
	}
	of := func(token string) int {
		return slices.IndexFunc(s.kept, func(k *keptList) bool { return k.token == token })
	}
	switch own, others := of(token.ID), of(most); {
	case has[token.ID] >= shareOfKeptLists.each:
		s.kept = slices.Delete(s.kept, own, own+1)
	case len(s.kept) >= shareOfKeptLists.all:
		s.kept = slices.Delete(s.kept, others, others+1)
	}
	s.next++
	s.kept = append(s.kept, &keptList{id: s.next, used: s.now(), token: token.ID, sees: token.AccountPrefix, servers: servers})
	return s.next
}

// get returns a kept list.
func (s *lists) get(id int64, sees string) ([]fleet.Gathered, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire()
	for i, k := range s.kept {
		if k.id == id && k.sees == sees {
			k.used = s.now()
			s.kept = append(slices.Delete(s.kept, i, i+1), k)
			return k.servers, true
		}
	}
	return nil, false
}

func (s *lists) expire() {
	s.kept = slices.DeleteFunc(s.kept, func(k *keptList) bool { return s.now().Sub(k.used) >= listLife })
}

// keepsPage reports whether this process keeps the list that a page's cursor names.
func (s *Server) keepsPage(page string) bool {
	f, ok := s.parseCursor(page, 3)
	return page != "" && ok && f[0] == s.changes.id
}

// pageOfServers cuts a page out of a list, which it keeps where more follows. Cursor
// is "", or names the list and where the page begins. Put takes a server into the answer, and
// says how large it is there.
func (s *Server) pageOfServers(ctx context.Context, in PageInput, first func() ([]fleet.Gathered, error), put func(fleet.Gathered) int) (next string, err error) {
	var id int64
	var from int
	var all []fleet.Gathered
	if in.Page == "" {
		if all, err = first(); err != nil {
			return "", err
		}
	} else {
		f, ok := s.parseCursor(in.Page, 3)
		if !ok || f[0] != s.changes.id { // kept by another replica, or by another life of this one
			return "", errPageExpired
		}
		if _, err := fmt.Sscanf(f[1]+" "+f[2], "%d %d", &id, &from); err != nil {
			return "", errPageExpired
		}
		if all, ok = s.lists.get(id, caller(ctx).AccountPrefix); !ok || from < 0 || from > len(all) {
			return "", errPageExpired
		}
	}
	to := from
	for size := 0; to < len(all) && to < from+in.Limit && size < maxPage; to++ {
		size += put(all[to])
	}
	if to == len(all) {
		return "", nil
	}
	if id == 0 {
		id = s.lists.keep(caller(ctx), all)
	}
	return s.cursor(s.changes.id, fmt.Sprint(id), fmt.Sprint(to)), nil
}
