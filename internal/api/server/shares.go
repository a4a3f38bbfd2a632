package server

import (
	"fmt"
	"sync"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Who may have how much of what at the same time (G8). What a token uses up is refused to it
// alone, with 429; what all use up together, with 503, and not to admins, for whom some is left.
// Eight runs of Terraform with one token, each with ten regions and sixteen requests at once,
// take less than half of each share.
var (
	shareOfConnections = share{"connections", 512, 1536, 128}
	shareOfRequests    = share{"requests", 512, 2048, 128}
	shareOfPolls       = share{"long polls", 128, 512, 64}
	shareOfLists       = share{"lists", 32, 128, 16}
	shareOfBodies      = share{"bytes of bodies", 4 << 20, 16 << 20, 2 << 20}
	shareOfKeptLists   = share{"unfinished lists", 16, 64, 0} // who has the most gives one to others
)

// newcomers is how many connections may be open that have not shown a valid token.
const newcomers = 512

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
}

func newPool(s share) *pool { return &pool{share: s, used: map[string]int{}} }

// take gives a token n more, until leave gives them back.
func (p *pool) take(token fleet.Token, n int) (leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.used[token.ID]+n > p.each:
		return nil, p.mine(token)
	case p.total+n > p.limit(token):
		return nil, p.ours()
	}
	p.used[token.ID] += n
	p.total += n
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.total -= n
		if p.used[token.ID] -= n; p.used[token.ID] == 0 {
			delete(p.used, token.ID)
		}
	}, nil
}

// shares are those that handlers take of.
type shares struct{ requests, polls, lists, bodies *pool }

func newShares() shares {
	return shares{newPool(shareOfRequests), newPool(shareOfPolls), newPool(shareOfLists), newPool(shareOfBodies)}
}

// String tells a share to an operator.
func (s share) String() string {
	return fmt.Sprintf("%s: %d of one token, %d of all, %d of them for admins", s.what, s.each, s.all, s.admins)
}
