package cloudflare

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Control is how another process does what the methods do:
//
//	GET    /table                              as text; GET /history as JSON
//	GET    /counters                           DELETE begins anew
//	POST   /faults                             {"kind": "half", "only": "GET records", "times": 1}; Slow has "delay": "2s"
//	DELETE /faults                             heals
//	POST   /records?by=somebody                [{"name": "a.kura.test", "type": "A", "content": "192.0.2.1"}]
//	PATCH  /records?name=…&type=…&content=…    by hand, as DELETE without content
//	PUT    /tokens                             {"value": "secret", "name": "kurad", "permissions": ["Zone:Read"]}
//	DELETE /tokens?value=secret
//	PUT    /limit                              {"calls": 100, "window": "1m", "form": "10100"}
//	PUT    /propagation                        {"delay": "30s"} or {"held": true}
//	PUT    /places                             {"here": {"latitude": 50, "longitude": 8}, "networks": {"198.51.100.0/24": {…}}}
//	PUT    /zones                              {"name": "kura.test", "plan": "free", "unsubscribed": true, "quota": {"pools": 3}}
func (e *Emulator) Control() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /table", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(e.Table())) })
	mux.HandleFunc("GET /history", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, e.History()) })
	mux.HandleFunc("GET /counters", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, e.Counters()) })
	mux.HandleFunc("DELETE /counters", done(func(*http.Request) { e.ResetCounters() }))
	mux.HandleFunc("DELETE /faults", done(func(*http.Request) { e.Heal() }))
	mux.HandleFunc("DELETE /tokens", done(func(r *http.Request) { e.Revoke(r.URL.Query().Get("value")) }))
	mux.HandleFunc("POST /faults", told(func(_ *http.Request, f struct {
		Fault
		Delay fleet.Duration `json:"delay"` // as text
	}) error {
		if !f.Kind.known() {
			return fmt.Errorf("there is no fault %q", f.Kind)
		}
		f.Fault.Delay = time.Duration(f.Delay)
		e.Break(f.Fault)
		return nil
	}))
	mux.HandleFunc("POST /records", told(func(r *http.Request, records []Record) error {
		return e.Seed(r.URL.Query().Get("by"), records...)
	}))
	mux.HandleFunc("PATCH /records", byHand(func(q query) int { return e.Edit(q("name"), q("type"), q("content")) }))
	mux.HandleFunc("DELETE /records", byHand(func(q query) int { return e.Delete(q("name"), q("type")) }))
	mux.HandleFunc("PUT /tokens", told(func(_ *http.Request, t Token) error { e.SetToken(t); return nil }))
	mux.HandleFunc("PUT /limit", told(func(_ *http.Request, l struct {
		Limit
		Window fleet.Duration `json:"window"`
	}) error {
		l.Limit.Window = time.Duration(l.Window)
		e.SetLimit(l.Limit)
		return nil
	}))
	mux.HandleFunc("PUT /propagation", told(func(_ *http.Request, p struct {
		Propagation
		Delay fleet.Duration `json:"delay"`
	}) error {
		p.Propagation.Delay = time.Duration(p.Delay)
		e.SetPropagation(p.Propagation)
		return nil
	}))
	mux.HandleFunc("PUT /places", told(func(_ *http.Request, p Places) error { e.SetPlaces(p); return nil }))
	mux.HandleFunc("PUT /zones", told(func(_ *http.Request, z Zone) error {
		return e.Configure(z.Name, func(to *Zone) { *to = z })
	}))
	return mux
}

type query = func(string) string

// done does something that nothing has to be told for.
func done(do func(*http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		do(r)
		w.WriteHeader(http.StatusNoContent)
	}
}

// byHand says how many records there were.
func byHand(do func(query) int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		say(w, http.StatusOK, map[string]int{"records": do(r.URL.Query().Get)})
	}
}

// told reads the body; a field that nobody knows is a mistake of the test.
func told[T any](do func(*http.Request, T) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var body T
		in := json.NewDecoder(http.MaxBytesReader(w, r.Body, 16<<20))
		in.DisallowUnknownFields()
		err := in.Decode(&body)
		if err == nil {
			err = do(r, body)
		}
		if err != nil {
			say(w, http.StatusBadRequest, map[string]string{"error": fmt.Sprintf("%s %s: %v", r.Method, r.URL.Path, err)})
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

func say(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(what) // the caller may be gone
}
