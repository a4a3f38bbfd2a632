package cloudflare

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// root is where Cloudflare's API begins.
const root = "/client/v4"

// failure is one entry of errors and of messages.
type failure struct {
	status  int
	Code    int       `json:"code"`
	Message string    `json:"message"`
	Chain   []failure `json:"error_chain,omitempty"`
}

// invalid is what fails a check before anything is changed.
func invalid(code int, format string, args ...any) *failure {
	return &failure{status: http.StatusBadRequest, Code: code, Message: fmt.Sprintf(format, args...)}
}

// reply is what a route answers with.
type reply struct {
	result   any
	info     *resultInfo
	messages []failure
}

// resultInfo goes with lists.
type resultInfo struct {
	Page       int `json:"page"`
	PerPage    int `json:"per_page"`
	Count      int `json:"count"`
	TotalCount int `json:"total_count"`
	TotalPages int `json:"total_pages"`
}

// envelope is the form of every answer (API documentation; cloudflare-go's *ResponseEnvelope).
type envelope struct {
	Result   any         `json:"result"`
	Success  bool        `json:"success"`
	Errors   []failure   `json:"errors"`
	Messages []failure   `json:"messages"`
	Info     *resultInfo `json:"result_info,omitempty"`
}

// call is one request that passed its token's check.
type call struct {
	*http.Request
	kind    string
	body    []byte
	token   *Token
	zone    *zone
	account string // its name
	faults  []*Fault
}

// decode reads the body. Fields that nobody knows are left out, as Cloudflare does.
func (c *call) decode(into any) *failure {
	if err := json.Unmarshal(c.body, into); err != nil || !bytes.HasPrefix(bytes.TrimSpace(c.body), []byte("{")) {
		return invalid(9207, "Request body is invalid.")
	}
	return nil
}

// route is one call of the API.
type route struct {
	pattern string
	kind    string // what the counters and faults call it, after the method
	need    Permission
	handle  func(*Emulator, *call) (reply, *failure)
}

var routes = []route{
	{"GET /user/tokens/verify", "verify", "", (*Emulator).verify},
	{"GET /zones", "zones", "", (*Emulator).listZones},
	{"GET /zones/{zone}", "zone", ZoneRead, (*Emulator).getZone},
	{"GET /zones/{zone}/dns_records", "records", DNSRead, (*Emulator).listRecords},
	{"POST /zones/{zone}/dns_records", "records", DNSEdit, (*Emulator).createRecord},
	{"POST /zones/{zone}/dns_records/batch", "batch", DNSEdit, (*Emulator).batch},
	{"GET /zones/{zone}/dns_records/{id}", "record", DNSRead, (*Emulator).getRecord},
	{"PATCH /zones/{zone}/dns_records/{id}", "record", DNSEdit, (*Emulator).patchRecord},
	{"PUT /zones/{zone}/dns_records/{id}", "record", DNSEdit, (*Emulator).putRecord},
	{"DELETE /zones/{zone}/dns_records/{id}", "record", DNSEdit, (*Emulator).deleteRecord},
	{"GET /zones/{zone}/load_balancers", "balancers", BalancersRead, (*Emulator).listBalancers},
	{"POST /zones/{zone}/load_balancers", "balancers", BalancersEdit, (*Emulator).createBalancer},
	{"GET /zones/{zone}/load_balancers/{id}", "balancer", BalancersRead, (*Emulator).getBalancer},
	{"PATCH /zones/{zone}/load_balancers/{id}", "balancer", BalancersEdit, (*Emulator).changeBalancer},
	{"PUT /zones/{zone}/load_balancers/{id}", "balancer", BalancersEdit, (*Emulator).changeBalancer},
	{"DELETE /zones/{zone}/load_balancers/{id}", "balancer", BalancersEdit, (*Emulator).deleteBalancer},
	{"GET /accounts/{account}/load_balancers/pools", "pools", PoolsRead, (*Emulator).listPools},
	{"POST /accounts/{account}/load_balancers/pools", "pools", PoolsEdit, (*Emulator).createPool},
	{"GET /accounts/{account}/load_balancers/pools/{id}", "pool", PoolsRead, (*Emulator).getPool},
	{"PATCH /accounts/{account}/load_balancers/pools/{id}", "pool", PoolsEdit, (*Emulator).changePool},
	{"PUT /accounts/{account}/load_balancers/pools/{id}", "pool", PoolsEdit, (*Emulator).changePool},
	{"DELETE /accounts/{account}/load_balancers/pools/{id}", "pool", PoolsEdit, (*Emulator).deletePool},
}

func (e *Emulator) handler() http.Handler {
	mux := http.NewServeMux()
	for _, route := range routes {
		method, path, _ := strings.Cut(route.pattern, " ")
		mux.HandleFunc(method+" "+root+path, func(w http.ResponseWriter, r *http.Request) { e.serve(w, r, route) })
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		e.serve(w, r, route{kind: "unknown", handle: func(*Emulator, *call) (reply, *failure) {
			return reply{}, &failure{status: http.StatusBadRequest, Code: 7003, Message: "Could not route to " + r.URL.Path + ", perhaps your object identifier is invalid?"}
		}})
	})
	return mux
}

// serve answers one call: what was told to go wrong first, then the budget, the token, the route.
func (e *Emulator) serve(w http.ResponseWriter, r *http.Request, route route) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 16<<20))
	if err != nil {
		return // the caller broke off
	}
	c := &call{Request: r, kind: r.Method + " " + route.kind, body: body}
	c.faults = e.struck(c.kind)
	if status, over := e.broken(w, c); over {
		e.answered(status)
		return
	}
	out, fail := e.answer(c, route, w.Header())
	if fault := c.find(LostAnswer); fault != nil {
		if e.answered(fault.Status); fault.Status == 0 {
			reset(w)
		} else {
			w.WriteHeader(fault.Status)
		}
		return
	}
	said := envelope{Result: out.result, Success: fail == nil, Errors: []failure{}, Messages: out.messages, Info: out.info}
	status := http.StatusOK
	if fail != nil {
		status, said.Result, said.Errors, said.Info = fail.status, nil, []failure{*fail}, nil
	}
	if said.Messages == nil {
		said.Messages = []failure{}
	}
	text, err := json.Marshal(said)
	if err != nil {
		panic(err) // a type of ours that JSON does not know
	}
	if c.has(Truncated) {
		text = text[:len(text)/2]
	}
	e.answered(status)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

func (e *Emulator) answered(status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.counters.Statuses[status]++
}

// answer is what is done under the lock.
func (e *Emulator) answer(c *call, route route, header http.Header) (reply, *failure) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if fail := c.refused(header); fail != nil {
		return reply{}, fail
	}
	var fail *failure
	if c.token, fail = e.authenticate(c.Request, route.kind == "verify"); fail != nil {
		return reply{}, fail
	}
	if fail := e.spend(c.token.User, header); fail != nil {
		return reply{}, fail
	}
	if fail := e.authorize(c, route.need); fail != nil {
		return reply{}, fail
	}
	return route.handle(e, c)
}

// authorize finds the zone or account of the path and asks whether the token is for it. One that does not exist is
// refused like one that is somebody else's: nobody learns which (API behaviour).
func (e *Emulator) authorize(c *call, need Permission) *failure {
	if id := c.PathValue("zone"); id != "" {
		z := e.zoneByID(id)
		if z == nil || !c.token.forZone(z) || !c.token.may(need) {
			if need == ZoneRead {
				return &failure{status: http.StatusForbidden, Code: 9109, Message: "Unauthorized to access requested resource"}
			}
			return denied()
		}
		c.zone, c.account = z, z.Account
	}
	if id := c.PathValue("account"); id != "" {
		name, exists := e.accountByID(id)
		if !exists || !c.token.forAccount(name) || !c.token.may(need) {
			return denied()
		}
		c.account = name
	}
	return nil
}

// paged cuts one page out of all. A page beyond the last is empty, not an error.
func paged[T any](c *call, all []T, perPage, most int) ([]T, *resultInfo, *failure) {
	page := 1
	for name, into := range map[string]*int{"page": &page, "per_page": &perPage} {
		if text := c.URL.Query().Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 1 {
				return nil, nil, invalid(1004, "DNS Validation Error: %s must be a positive number", name)
			}
			*into = n
		}
	}
	perPage = min(perPage, most)
	all, total := lie(c, all)
	moved := 0
	if c.has(MovingPages) {
		moved = page - 1
	}
	end := max(0, min(page*perPage, len(all))-moved)
	cut := all[min((page-1)*perPage-moved, end):end]
	return cut, &resultInfo{
		Page: page, PerPage: perPage, Count: len(cut), TotalCount: total, TotalPages: (total + perPage - 1) / perPage,
	}, nil
}
