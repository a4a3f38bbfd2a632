package cloudflare

import (
	"cmp"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// FaultKind is one way to go wrong.
type FaultKind string

// Outages: nothing happened.
const (
	Reset       FaultKind = "reset"       // the connection is cut before an answer
	Unavailable FaultKind = "unavailable" // Status without a body; 503 by default
	HTML        FaultKind = "html"        // Cloudflare's page about its own outage instead of JSON; Status, 502 by default
	Hang        FaultKind = "hang"        // no answer until the caller goes
	RateLimited FaultKind = "ratelimited" // refused in the form of Form, whatever the budget says
	// Unsuccessful is 200 with success=false and no result. Clients that look at the status only, as cloudflare-go
	// does, read it as an empty answer.
	Unsuccessful FaultKind = "unsuccessful"
)

// Answers that say less than what happened.
const (
	Slow       FaultKind = "slow"       // right, but Delay later
	LostAnswer FaultKind = "lostanswer" // the effect takes place, then the connection is cut; with Status it is that, without a body
	Truncated  FaultKind = "truncated"  // the effect takes place, then comes half of the JSON
)

// Listings that lie: all of them are 200 and say success.
const (
	EmptyListing FaultKind = "empty"  // nothing, and total_count says so too
	HalfListing  FaultKind = "half"   // the first half of all, and total_count is of that half
	ShortListing FaultKind = "short"  // the first half of all, though total_count is right
	MovingPages  FaultKind = "moving" // each page begins one entry too early: some come twice, the last ones never
	AnyOrder     FaultKind = "order"  // each answer has an order of its own, so pages overlap
)

// Refusals of creations, with the codes and texts of the real ones (hashicorp/terraform 17948, ingress-controller 18).
const (
	QuotaExceeded FaultKind = "quota"         // of records, pools and balancers
	NotSubscribed FaultKind = "notsubscribed" // of pools and balancers
)

func (k FaultKind) known() bool {
	switch k {
	case Reset, Unavailable, HTML, Hang, RateLimited, Unsuccessful, Slow, LostAnswer, Truncated, EmptyListing, HalfListing, ShortListing, MovingPages, AnyOrder, QuotaExceeded, NotSubscribed:
		return true
	}
	return false
}

// Fault is one thing that goes wrong.
type Fault struct {
	Kind   FaultKind     `json:"kind"`
	Only   string        `json:"only,omitempty"`   // calls that it strikes: a name of Counters.Calls, or a part: "POST", "records", "writes" (all but GET); all by default
	Times  int           `json:"times,omitempty"`  // calls until it is over; 0: it stays until Heal
	Status int           `json:"status,omitempty"` // of Unavailable, HTML and LostAnswer
	Delay  time.Duration `json:"-"`                // of Slow
	Form   LimitForm     `json:"form,omitempty"`   // of RateLimited; FormRetryAfter by default
}

// Break adds faults; they strike together.
func (e *Emulator) Break(faults ...Fault) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, fault := range faults {
		e.faults = append(e.faults, &fault)
	}
}

// Heal ends all faults. What hangs goes on hanging: its caller has to go.
func (e *Emulator) Heal() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.faults = nil
}

// struck counts a call and returns the faults that strike it.
func (e *Emulator) struck(kind string) []*Fault {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counters.Calls[kind]++
	var striking []*Fault
	e.faults = slices.DeleteFunc(e.faults, func(f *Fault) bool {
		if !f.strikes(kind) {
			return false
		}
		striking = append(striking, f)
		if f.Times == 0 {
			return false
		}
		f.Times--
		return f.Times == 0
	})
	return striking
}

func (f *Fault) strikes(kind string) bool {
	method, path, _ := strings.Cut(kind, " ")
	switch f.Only {
	case "", kind, method, path:
		return true
	case "writes":
		return method != http.MethodGet
	}
	return false
}

// find returns the fault of that kind that strikes this call, or nil.
func (c *call) find(kind FaultKind) *Fault {
	for _, fault := range c.faults {
		if fault.Kind == kind {
			return fault
		}
	}
	return nil
}

func (c *call) has(kind FaultKind) bool { return c.find(kind) != nil }

// broken does what goes wrong before anything is done, and tells whether the call is over, and with which status.
func (e *Emulator) broken(w http.ResponseWriter, c *call) (status int, over bool) {
	if fault := c.find(Slow); fault != nil {
		delay := time.NewTimer(fault.Delay)
		defer delay.Stop()
		select {
		case <-delay.C:
		case <-c.Context().Done():
		case <-e.closed:
		}
	}
	if c.has(Hang) {
		select {
		case <-c.Context().Done():
		case <-e.closed:
		}
		return 0, true
	}
	if c.has(Reset) {
		reset(w)
		return 0, true
	}
	if fault := c.find(Unavailable); fault != nil {
		status = cmp.Or(fault.Status, http.StatusServiceUnavailable)
		w.WriteHeader(status)
		return status, true
	}
	if fault := c.find(HTML); fault != nil {
		status = cmp.Or(fault.Status, http.StatusBadGateway)
		w.Header().Set("Content-Type", "text/html; charset=UTF-8")
		w.WriteHeader(status)
		_, _ = w.Write([]byte("<!DOCTYPE html>\n<html><head><title>api.cloudflare.com | 502: Bad gateway</title></head><body>Bad gateway</body></html>\n"))
		return status, true
	}
	return 0, false
}

// refused does what goes wrong at the API's door.
func (c *call) refused(header http.Header) *failure {
	if fault := c.find(RateLimited); fault != nil {
		return limited(fault.Form, 1, header)
	}
	if c.has(Unsuccessful) {
		return &failure{status: http.StatusOK, Code: 10001, Message: "Unable to process the request."}
	}
	return nil
}

// reset cuts the connection: the caller reads that its peer reset it.
func reset(w http.ResponseWriter) {
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		panic(http.ErrAbortHandler)
	}
	conn, _, err := hijacker.Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// lie shortens a listing as it was told to, and says how many entries the answer is to speak of.
func lie[T any](c *call, all []T) ([]T, int) {
	switch half := all[:len(all)/2]; {
	case c.has(EmptyListing):
		return all[:0], 0
	case c.has(HalfListing):
		return half, len(half)
	case c.has(ShortListing):
		return half, len(all)
	default:
		return all, len(all)
	}
}
