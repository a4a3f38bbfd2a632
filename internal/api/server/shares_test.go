package server

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// What a token uses up is refused to it, what all use up to all but admins, who go on until
// they have used up the rest.
func TestG8_sharesAreOfEachAndOfAllAndAdminsKeepSome(t *testing.T) {
	p := newPool(share{"things", 3, 6, 2})
	a, b, c := fleet.Token{ID: "a", Scope: fleet.ScopeWrite}, fleet.Token{ID: "b", Scope: fleet.ScopeRead}, fleet.Token{ID: "c", Scope: fleet.ScopeAdmin}
	code := func(token fleet.Token) fleet.Code {
		_, err := p.try(token, 1)
		return fleet.CodeOf(err)
	}
	for i, want := range []struct {
		token fleet.Token
		code  fleet.Code
	}{{a, ""}, {a, ""}, {a, ""}, {a, api.CodeRateLimited}, {b, ""}, {b, fleet.CodeUnavailable}, {c, ""}, {c, ""}, {c, fleet.CodeUnavailable}} {
		if got := code(want.token); got != want.code {
			t.Errorf("%d: token %s gets %q, want %q", i, want.token.ID, got, want.code)
		}
	}
	p.give(c, 2)
	p.give(a, 1)
	if code(b) != "" || p.total != 4 || p.used["c"] != 0 {
		t.Errorf("after some came back: %+v", p)
	}
}

func TestG8_aListWaitsForItsPlaceAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPool(share{"things", 1, 10, 0})
		token := fleet.Token{ID: "a"}
		leave, err := p.take(t.Context(), token, 1, 0)
		if err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if _, err := p.take(t.Context(), token, 1, time.Second); fleet.CodeOf(err) != api.CodeRateLimited || time.Since(begun) != time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
		time.AfterFunc(time.Second, leave)
		if _, err := p.take(t.Context(), token, 1, time.Minute); err != nil || time.Since(begun) != 2*time.Second {
			t.Errorf("%v after %s", err, time.Since(begun))
		}
	})
}
