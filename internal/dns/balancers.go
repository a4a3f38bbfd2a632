package dns

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Balancers change the load balancers of one zone and their pools, one call at a time: between
// the read and the write of a balancer nothing of ours changes it, and what its pools are is
// known from that read, not from what was done before. An answer says what was read back (R2).
type Balancers struct {
	Zone        Zone
	Environment fleet.Environment
	API         API

	turn turn
}

// member is a server that joins the load balancer of its account's global host, or leaves it.
type member struct {
	fleet.Effect
	key  fleet.ServerKey
	task int
}

// group are the tasks of one load balancer.
type group struct {
	host, account string
	members       []member
	is            Balancer // without an id: there is none of ours
}

// pooling is a call of Balancers.
type pooling struct {
	*Balancers
	ctx     context.Context
	effects []fleet.Effect
	answers []fleet.Outcome
	x       *Index
	written map[int]bool // tasks that something was written for
	redo    []int        // tasks whose balancer or pool was changed by another meanwhile
	looked  bool         // they were looked at once more
	noMore  map[string]*Error
	over    *Error // nothing is sent any more
}

// What there may be too many of.
const (
	quotaPools     = "pools"
	quotaBalancers = "balancers"
)

// Run does tasks of many servers, TaskJoin and TaskLeave, and answers each in its place. Of those
// of one load balancer it makes one write.
func (b *Balancers) Run(ctx context.Context, effects []fleet.Effect) []fleet.Outcome {
	p := &pooling{Balancers: b, ctx: ctx, effects: effects, answers: make([]fleet.Outcome, len(effects)), written: map[int]bool{}, noMore: map[string]*Error{}}
	if p.over = failure(b.turn.take(ctx)); p.over == nil {
		defer b.turn.end()
	}
	var tasks []int
	for i := range effects {
		tasks = append(tasks, i)
	}
	p.pass(tasks)
	if again := p.redo; len(again) > 0 {
		p.redo, p.looked = nil, true
		p.pass(again)
	}
	if len(p.written) > 0 {
		p.readBack()
	}
	return p.answers
}

// list reads balancers, pools, and the records that a balancer would answer before.
func (p *pooling) list() error {
	l, err := p.API.List(p.ctx, Parts{Records: true, Balancers: true})
	p.x = NewIndex(l, p.Zone, p.Environment)
	return err
}

func (p *pooling) pass(tasks []int) {
	if p.over == nil {
		if err := p.list(); err != nil {
			p.over = failure(err)
		}
	}
	var order []*group
	groups := map[[2]string]*group{}
	for _, i := range tasks {
		e := p.effects[i]
		_, key, ok := ParseResource(e.DNS.Resource)
		if !ok {
			p.answers[i] = refuse(fleet.ReasonInvalid, fmt.Sprintf("%s: %q names no server", e.Describe(), e.DNS.Resource))
			continue
		}
		of := [2]string{canonical(e.Name), key.Account}
		if groups[of] == nil {
			groups[of] = &group{host: of[0], account: of[1]}
			order = append(order, groups[of])
		}
		groups[of].members = append(groups[of].members, member{e, key, i})
	}
	for i, g := range order {
		switch {
		case p.over != nil:
			p.fail(g.members, p.over)
		case p.late():
			p.fail(g.members, &Error{
				Class: fleet.ClassTransient, Reason: fleet.ReasonRateLimited, Answered: true,
				Message: fmt.Sprintf("not begun: the time of one call was enough for %d load balancers of the %d that came together", i, len(order)),
			})
		default:
			p.change(g)
		}
	}
}

// lastBegin is how long before the end of its time a call begins with no further balancer: what
// it has done is read back.
const lastBegin = 15 * time.Second

func (p *pooling) late() bool {
	end, limited := p.ctx.Deadline()
	return limited && time.Until(end) < lastBegin
}

// change makes one write of a load balancer, with its new pools made before and the others
// removed after.
func (p *pooling) change(g *group) {
	for _, b := range p.x.Balancers(g.host) {
		if b.Description == BalancerOf(p.Environment.Name, g.account) {
			g.is = b
		}
	}
	pools := map[string]Pool{} // by id: what it has and we own
	for _, pool := range p.x.OurPools(g.is, g.account) {
		pools[pool.ID] = pool
	}
	joins, leaves := apart(g.members, func(m member) bool { return m.Kind == fleet.TaskJoin })
	joins = slices.DeleteFunc(joins, func(m member) bool {
		pool, ok := p.join(m)
		if ok {
			pools[pool.ID] = pool
		}
		return !ok
	})
	for _, m := range leaves {
		if pool, ours := p.pool(m); ours {
			delete(pools, pool.ID)
		}
	}
	if members := slices.Concat(joins, leaves); len(members) > 0 && p.put(g, members, slices.Collect(maps.Values(pools)), len(joins) > 0) {
		for _, m := range joins {
			p.answers[m.task] = done()
		}
		for _, m := range leaves {
			p.leave(g, m)
		}
	}
}

// pool is that of a server, where there is one of ours.
func (p *pooling) pool(m member) (Pool, bool) {
	pool := p.x.pools[p.x.poolNames[fleet.PoolName(p.Environment.Name, m.key)]]
	return pool, pool.ID != "" && pool.Description == PoolOf(p.Environment.Name, m.key)
}

// join makes the pool of a server as it is declared.
func (p *pooling) join(m member) (Pool, bool) {
	if is := p.x.Pool(m.Name, m.DNS.Owner, m.key); is.Foreign != "" {
		p.answers[m.task] = refuse(fleet.ReasonForeignBalancer, fmt.Sprintf("%s: %s; kurad does not touch it: remove it, or choose another global host", m.Name, is.Foreign))
		return Pool{}, false
	}
	want := DeclaredPool(p.Environment.Name, m.key, m.DNS)
	is, _ := p.pool(m)
	if is.equals(want) {
		return is, true
	}
	if want.ID = is.ID; p.barred([]member{m}, quotaPools, want.ID == "") {
		return Pool{}, false
	}
	made, err := p.API.PutPool(p.ctx, want)
	p.written[m.task] = true
	if err != nil {
		p.failed([]member{m}, quotaPools, failure(err))
		return Pool{}, false
	}
	p.x.pools[made.ID] = made
	return made, true
}

// put writes the load balancer where it differs; without a pool it goes. A departure alone
// corrects nothing else of it.
func (p *pooling) put(g *group, members []member, pools []Pool, corrects bool) bool {
	want, kind := DeclaredBalancer(p.Environment.Name, g.account, g.host, pools), ""
	want.ID = g.is.ID
	var err error
	switch {
	case len(pools) == 0 && g.is.ID == "":
		return true
	case len(pools) == 0:
		if p.barred(members, "", false) {
			return false
		}
		if err = p.API.DeleteBalancer(p.ctx, g.is.ID); err != nil && failure(err).NotFound { // as wanted
			err = nil
		}
	case want.equals(g.is), !corrects && (g.is.ID == "" || len(want.Pools) == len(g.is.Pools)):
		return true
	default:
		if kind = quotaBalancers; p.barred(members, kind, want.ID == "") {
			return false
		}
		_, err = p.API.PutBalancer(p.ctx, want)
	}
	for _, m := range members {
		p.written[m.task] = true
	}
	if err != nil {
		p.failed(members, kind, failure(err))
		return false
	}
	return true
}

// leave removes the pool of a server that is in its load balancer no more.
func (p *pooling) leave(g *group, m member) {
	p.answers[m.task] = done()
	pool, ours := p.pool(m)
	if !ours || p.usedByOurs(g, pool.ID) {
		return
	}
	if p.barred([]member{m}, "", false) {
		return
	}
	err := p.API.DeletePool(p.ctx, pool.ID)
	p.written[m.task] = true
	switch e := failure(err); {
	case err == nil, e.NotFound:
	case e.Conflict: // another's balancer, or one whose end has not come round
		p.answers[m.task] = e.outcome()
		p.answers[m.task].Class, p.answers[m.task].Reason = fleet.ClassTransient, fleet.ReasonForeignBalancer
	default:
		p.failed([]member{m}, "", e)
	}
}

// usedByOurs reports whether the account's load balancer of another host has the pool: its
// global host has moved.
func (p *pooling) usedByOurs(g *group, id string) bool {
	for host, all := range p.x.balancers {
		for _, b := range all {
			if host != g.host && b.Description == BalancerOf(p.Environment.Name, g.account) && slices.Contains(b.Pools, id) {
				return true
			}
		}
	}
	return false
}

// failed takes note of a write that failed. What another has changed meanwhile is looked at once more.
func (p *pooling) failed(members []member, kind string, e *Error) {
	// A load balancer with a pool that is gone is invalid.
	if again := e.Conflict || e.NotFound || e.Reason == fleet.ReasonInvalid; again && !p.looked {
		for _, m := range members {
			p.redo = append(p.redo, m.task)
		}
		return
	} else if again && e.Conflict {
		e = &Error{Class: fleet.ClassRefused, Reason: fleet.ReasonForeignBalancer, Message: e.Message, Answered: true}
	}
	p.fail(members, e)
	switch {
	case e.Reason == fleet.ReasonQuotaExceeded:
		p.noMore[kind] = e
	case !e.ofOne() && !e.Conflict && e.Reason != fleet.ReasonForeignBalancer:
		next := *e
		next.Answered = true // of what is not sent
		p.over = &next
	}
}

// barred answers tasks whose write is not sent: none is any more, or it is for one more of a
// kind of which there may be no more.
func (p *pooling) barred(members []member, kind string, another bool) bool {
	e := p.over
	if e == nil && another {
		e = p.noMore[kind]
	}
	if e != nil {
		p.fail(members, e)
	}
	return e != nil
}

func (p *pooling) fail(members []member, e *Error) {
	for _, m := range members {
		p.answers[m.task] = e.outcome()
	}
}

// readBack answers tasks that succeeded by what is there.
func (p *pooling) readBack() {
	missed := p.over
	if missed == nil {
		l, err := p.API.List(p.ctx, Parts{Balancers: true}) // whose the host is was looked at before
		p.x, missed = NewIndex(l, p.Zone, p.Environment), failure(err)
	}
	for i, e := range p.effects {
		_, key, _ := ParseResource(e.DNS.Resource)
		if p.answers[i].Class != fleet.ClassOK || !p.written[i] {
			continue
		}
		if missed != nil {
			p.answers[i] = missed.outcome() // the next try finds it
			continue
		}
		is, text := p.x.Pool(e.Name, e.DNS.Owner, key), ""
		switch {
		case e.Kind == fleet.TaskJoin && !is.Joined:
			text = fmt.Sprintf("pool %s was added to the load balancer of %s, and is not in it as read back", e.DNS.Pool, e.Name)
		case e.Kind == fleet.TaskLeave && is.Joined:
			text = fmt.Sprintf("pool %s was taken out of the load balancer of %s, and is in it as read back", e.DNS.Pool, e.Name)
		}
		if text != "" {
			p.answers[i] = fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonPoolMissing, Message: text, Answered: true}
		}
	}
}

// equals reports whether a load balancer is as another, but for its id and the case of its name.
func (b Balancer) equals(o Balancer) bool {
	same := slices.Equal(b.Pools, o.Pools) && canonical(b.Name) == canonical(o.Name)
	return same && b.ID == o.ID && b.Description == o.Description && b.Fallback == o.Fallback && b.TTL == o.TTL &&
		b.Steering == o.Steering && b.Proxied == o.Proxied && b.Enabled == o.Enabled
}

// equals reports whether a pool is as another, but for its id.
func (p Pool) equals(o Pool) bool {
	const rounded = 1e-4 // degrees, some ten metres
	return p.Name == o.Name && p.Description == o.Description && slices.Equal(p.Origins, o.Origins) && p.Enabled == o.Enabled &&
		math.Abs(p.Latitude-o.Latitude) <= rounded && math.Abs(p.Longitude-o.Longitude) <= rounded
}
