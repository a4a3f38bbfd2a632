package server

import (
	"context"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Who may have how much of what at the same time (G8). What a token uses up is refused to it
// alone, with 429; what all use up together, with 503, and not to admins, for whom some is left.
// Eight runs of Terraform with one token, each with ten regions and sixteen requests at once,
// take 80 of its 128 long polls and less than half of its connections and requests; their lists
// wait for each other (queueFor).
var (
	shareOfConnections = share{"connections", 512, 1536, 128}
	shareOfRequests    = share{"requests", 512, 2048, 128}
	shareOfPolls       = share{"long polls", 128, 512, 64}
	shareOfBodies      = share{"bytes of bodies", 4 << 20, 16 << 20, 2 << 20}
	shareOfAnswers     = share{"bytes of lists", 32 << 20, 128 << 20, 16 << 20}
	shareOfKeptLists   = share{"unfinished lists", 32, 128, 0} // of one's own the oldest goes; else of whoever has the most
)

const (
	// answerTakes is what a page, or the beginning of a long poll that lists everything,
	// counts for while it is put together and sent.
	answerTakes = 4 << 20
	// queueFor is how long it waits for that: lists are short, and many are asked for at once.
	queueFor = 5 * time.Second
)

// newcomers is how many connections may be open that have not shown a valid token.
const newcomers = 2048

// share is how much there is of something: for one token, for all together, and of that for
// admins only.
type share struct {
	what              string
	each, all, admins int
}

// limit is how much a token may make of what all have.
func (s share) limit(token fleet.Token) int {
	if token.Scope == fleet.ScopeAdmin {
		return s.all
	}
	return s.all - s.admins
}

// mine is why a token gets no more of what it has itself.
func (s share) mine(token fleet.Token) error {
	return fleet.Errorf(api.CodeRateLimited, "token %q has %d %s at the same time, the most for one token; let some end and try again, or use a token of its own for each who calls (kurad token create)", token.Name, s.each, s.what)
}

// ours is why nobody gets more.
func (s share) ours() error {
	return fleet.Errorf(fleet.CodeUnavailable, "all callers together have as many %s as kurad takes; try again", s.what)
}

// pool hands out a share.
type pool struct {
	share
	mu    sync.Mutex
	used  map[string]int // by token
	total int
	freed chan struct{} // closed when something is given back
}

func newPool(s share) *pool {
	return &pool{share: s, used: map[string]int{}, freed: make(chan struct{})}
}

// take gives a token n more, until leave gives them back; it waits so long for that.
func (p *pool) take(ctx context.Context, token fleet.Token, n int, wait time.Duration) (leave func(), err error) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		freed, err := p.try(token, n)
		if err == nil {
			return func() { p.give(token, n) }, nil
		}
		if wait == 0 {
			return nil, err
		}
		select {
		case <-freed:
		case <-timer.C:
			return nil, err
		case <-ctx.Done():
			return nil, err
		}
	}
}

func (p *pool) try(token fleet.Token, n int) (freed <-chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.used[token.ID]+n > p.each:
		return p.freed, p.mine(token)
	case p.total+n > p.limit(token):
		return p.freed, p.ours()
	}
	p.used[token.ID] += n
	p.total += n
	return nil, nil
}

func (p *pool) give(token fleet.Token, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.total -= n
	if p.used[token.ID] -= n; p.used[token.ID] == 0 {
		delete(p.used, token.ID)
	}
	close(p.freed)
	p.freed = make(chan struct{})
}

// shares are those that handlers take of.
type shares struct{ requests, polls, bodies, answers *pool }

func newShares() shares {
	return shares{newPool(shareOfRequests), newPool(shareOfPolls), newPool(shareOfBodies), newPool(shareOfAnswers)}
}
