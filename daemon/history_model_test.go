package main

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// verb is what a call asks of a server.
type verb string

const (
	verbGet      verb = "GET"
	verbPut      verb = "PUT"
	verbDelete   verb = "DELETE"
	verbRedeploy verb = "redeploy"
)

// apiCall is one call about one server.
type apiCall struct {
	Verb       verb
	Image      string // of a put
	IfMatch    int64  // of a put; 0: whatever the generation is
	CreateOnly bool   // of a put: If-None-Match: *
	Key        string // of a redeploy, its idempotency key
}

// apiAnswer is what an answer says of the server: after a redeploy, of the deployment.
type apiAnswer struct {
	Status     int // 0: none came, so the call may have had its effect or not
	Generation int64
	Image      string
	Seq        int64 // of the latest deployment
	Deleting   bool
	Changed    bool // of a put
}

// declaration is a server as the API tells of it; the zero value is none. It is compared
// by ==, so the redeploys that are kept are text.
type declaration struct {
	Generation int64
	Image      string
	Seq        int64
	Deleting   bool
	Redeploys  string // a line for each: key, sequence number, generation, image
}

// do is the API as a program that takes one call at a time: what it answers, and what is
// declared then.
func (d declaration) do(c apiCall) (apiAnswer, declaration) {
	refused := func(status int) (apiAnswer, declaration) { return apiAnswer{Status: status}, d }
	exists := d.Generation > 0
	next := d
	next.Generation++
	if c.Verb != verbPut && !exists {
		return refused(http.StatusNotFound)
	}
	switch c.Verb {
	case verbGet:
		return d.shown(http.StatusOK), d
	case verbPut:
		switch {
		case d.Deleting, c.CreateOnly && exists:
			return refused(http.StatusConflict)
		case c.IfMatch != 0 && c.IfMatch != d.Generation:
			return refused(http.StatusPreconditionFailed)
		case exists && c.Image == d.Image:
			return d.shown(http.StatusOK), d
		}
		next.Image, next.Seq = c.Image, d.Seq+1
		a := next.shown(http.StatusOK)
		if a.Changed = true; !exists {
			a.Status = http.StatusCreated
		}
		return a, next
	case verbDelete:
		if d.Deleting {
			return d.shown(http.StatusAccepted), d
		}
		next.Deleting = true
		return next.shown(http.StatusAccepted), next
	case verbRedeploy:
		if again, ok := d.redeployed(c.Key); ok {
			return again, d
		}
		if d.Deleting {
			return refused(http.StatusConflict)
		}
		next.Seq++
		next.Redeploys += fmt.Sprintf("%s %d %d %s\n", c.Key, next.Seq, next.Generation, next.Image)
		return next.shown(http.StatusCreated), next
	}
	panic("no such verb: " + c.Verb)
}

func (d declaration) shown(status int) apiAnswer {
	return apiAnswer{Status: status, Generation: d.Generation, Image: d.Image, Seq: d.Seq, Deleting: d.Deleting}
}

// redeployed is the answer to a redeploy whose key a deployment that is kept has.
func (d declaration) redeployed(key string) (apiAnswer, bool) {
	for line := range strings.Lines(d.Redeploys) {
		a := apiAnswer{Status: http.StatusOK}
		var k string
		if _, err := fmt.Sscan(line, &k, &a.Seq, &a.Generation, &a.Image); err != nil {
			panic(err) // written by do
		}
		if k == key && a.Seq > d.Seq-store.MaxDeployments {
			return a, true
		}
	}
	return apiAnswer{}, false
}

// step returns what may be declared after a call that was answered so. The end of a
// destruction is nobody's call: it may come before any.
func (d declaration) step(c apiCall, a apiAnswer) (next []any) {
	from := []declaration{d}
	if d.Deleting {
		from = append(from, declaration{})
	}
	for _, d := range from {
		promised, then := d.do(c)
		if a.Status == 0 {
			next = append(next, d, then)
		} else if a == promised {
			next = append(next, then)
		}
	}
	return next
}

// serverModel is what a history of calls about one server is checked against.
func serverModel() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{declaration{}} },
		Step: func(state, call, answer any) []any {
			return state.(declaration).step(call.(apiCall), answer.(apiAnswer))
		},
		DescribeOperation: func(call, answer any) string {
			return fmt.Sprintf("%s → %s", call.(apiCall), answer.(apiAnswer))
		},
		DescribeState: func(state any) string { return state.(declaration).String() },
	}
	return m.ToModel()
}

func (c apiCall) String() string {
	text := strings.TrimSpace(fmt.Sprintf("%s %s%s", c.Verb, c.Image, c.Key))
	if c.IfMatch != 0 {
		text += fmt.Sprintf(" if %d", c.IfMatch)
	}
	if c.CreateOnly {
		text += " if none"
	}
	return text
}

func (a apiAnswer) String() string {
	if a.Status == 0 {
		return "no answer"
	}
	if a.Generation == 0 {
		return fmt.Sprint(a.Status)
	}
	text := fmt.Sprintf("%d %s generation %d deployment %d", a.Status, a.Image, a.Generation, a.Seq)
	if a.Deleting {
		text += " deleting"
	}
	return text
}

func (d declaration) String() string {
	if d.Generation == 0 {
		return "none"
	}
	return d.shown(http.StatusOK).String()[len("200 "):]
}
