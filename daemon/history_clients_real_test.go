//go:build real

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// chronicle holds what all callers asked of kurad and what they heard.
type chronicle struct {
	begun time.Time

	mu     sync.Mutex
	calls  map[fleet.ServerKey][]porcupine.Operation
	deaths []int64 // when a kurad had died, and the next one had not begun
	acks   []fleet.Deployment
	faults []string       // answers that no rule allows
	heard  map[string]int // calls by verb and status
}

func newChronicle() *chronicle {
	return &chronicle{begun: time.Now(), calls: map[fleet.ServerKey][]porcupine.Operation{}, heard: map[string]int{}}
}

func (b *chronicle) now() int64 { return int64(time.Since(b.begun)) }

// died notes that nothing of what was asked before can have an effect later than now.
func (b *chronicle) died() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deaths = append(b.deaths, b.now())
}

func (b *chronicle) fault(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, fmt.Sprintf(format, args...))
}

// add notes a call that ended now.
func (b *chronicle) add(client int, key fleet.ServerKey, from int64, c apiCall, a apiAnswer) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard[fmt.Sprintf("%s %d", c.Verb, a.Status)]++
	if a.Status == 0 && c.Verb == verbGet {
		return // it asked for nothing and told nothing
	}
	b.calls[key] = append(b.calls[key], porcupine.Operation{ClientId: client, Input: c, Call: from, Output: a, Return: b.now()})
}

// history is what is known of one server. A call that was not answered may have its
// effect until the kurad that it was sent to is dead: what that had written is seen by
// the next one from the start.
func (b *chronicle) history(key fleet.ServerKey) []porcupine.Operation {
	b.mu.Lock()
	defer b.mu.Unlock()
	ops := slices.Clone(b.calls[key])
	for i, op := range ops {
		if op.Output.(apiAnswer).Status != 0 {
			continue
		}
		next, _ := slices.BinarySearch(b.deaths, op.Return)
		if ops[i].Return = math.MaxInt64; next < len(b.deaths) {
			ops[i].Return = b.deaths[next]
		}
	}
	return ops
}

// caller is one client of the API. It sends each request once: an answer that is lost
// stays lost.
type caller struct {
	id     int
	random *rand.Rand
	book   *chronicle
	keys   []fleet.ServerKey
	http   *http.Client
	url    string
	token  string
	seen   map[fleet.ServerKey]int64  // generation
	last   map[fleet.ServerKey]string // idempotency key
}

func newCaller(id int, random *rand.Rand, book *chronicle, address, token string, keys []fleet.ServerKey) *caller {
	return &caller{
		id: id, random: random, book: book, keys: keys, url: "http://" + address, token: token,
		seen: map[fleet.ServerKey]int64{}, last: map[fleet.ServerKey]string{},
		// A connection of its own for each request: on one that was used before,
		// net/http repeats what got no answer.
		http: &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// Images that the callers declare: those of good serve.
var (
	good = []string{"v1", "v2", "v2-ignoreterm"} // the last one takes its whole grace to end
	bad  = []string{"v2-lost", "v2-fail"}        // cannot be had; never answers well
)

// storm calls at random until ctx ends.
func (c *caller) storm(ctx context.Context) {
	for ctx.Err() == nil {
		if c.random.IntN(12) == 0 {
			c.meet(ctx)
		} else {
			c.any()
		}
		pause(ctx, time.Duration(c.random.Int64N(int64(500*time.Millisecond))))
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// current is the server that half of all calls are about: another one each second.
func (c *caller) current() fleet.ServerKey {
	return c.keys[int(time.Since(c.book.begun)/time.Second)%len(c.keys)]
}

// meet writes at the same moment as others do, and what they have read too: one of them
// succeeds.
func (c *caller) meet(ctx context.Context) {
	const every = 500 * time.Millisecond
	key := c.current()
	v, exists := c.get(key)
	pause(ctx, every-time.Since(c.book.begun)%every)
	switch {
	case !exists:
		c.put(key, apiCall{Verb: verbPut, Image: good[c.random.IntN(len(good))], CreateOnly: true})
	case c.random.IntN(3) == 0:
		c.put(key, apiCall{Verb: verbPut, Image: v.Intent.ImageTag})
	default:
		c.put(key, apiCall{Verb: verbPut, Image: good[c.random.IntN(len(good))], IfMatch: v.Generation})
	}
}

// any makes a call.
func (c *caller) any() {
	key := c.keys[c.random.IntN(len(c.keys))]
	if c.random.IntN(2) == 0 {
		key = c.current()
	}
	image := good[c.random.IntN(len(good))]
	if c.random.IntN(5) == 0 {
		image = bad[c.random.IntN(len(bad))]
	}
	switch n := c.random.IntN(1000); {
	case n < 15:
		c.put(key, apiCall{Verb: verbPut, Image: image})
	case n < 25:
		c.put(key, apiCall{Verb: verbPut, Image: image, CreateOnly: true})
	case n < 50:
		c.put(key, apiCall{Verb: verbPut, Image: image, IfMatch: c.seen[key]})
	case n < 62:
		if c.last[key] == "" || c.random.IntN(3) > 0 {
			c.last[key] = fmt.Sprintf("c%d-%d", c.id, c.random.Uint64())
		}
		c.redeploy(key, c.last[key])
	case n < 67:
		c.delete(key)
	case n < 170:
		c.list()
	default:
		c.get(key)
	}
}

// send makes one request. sent is false where it certainly did not arrive; status is 0
// where no answer, or none that tells, came.
func (c *caller) send(method, path string, body any, header http.Header, out any) (status int, sent bool) {
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			panic(err) // of types of ours
		}
	}
	req, err := http.NewRequest(method, c.url+path, bytes.NewReader(text))
	if err != nil {
		panic(err)
	}
	maps.Copy(req.Header, header)
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	res, err := c.http.Do(req)
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "dial" {
		return 0, false
	}
	if err != nil {
		return 0, true
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, true
	}
	var problem api.Problem
	switch {
	case res.StatusCode < 300:
		if err := json.Unmarshal(answer, out); err != nil {
			c.book.fault("%s %s answered %d %s: %v", method, path, res.StatusCode, answer, err)
		}
		return res.StatusCode, true
	case json.Unmarshal(answer, &problem) != nil:
		c.book.fault("%s %s answered %d %s: no problem document", method, path, res.StatusCode, answer)
		return 0, true
	}
	switch problem.Code {
	case fleet.CodeNotFound, fleet.CodeConflict, fleet.CodePrecondition:
		return res.StatusCode, true
	case fleet.CodeUnavailable: // "try again": it may have been done
	default:
		c.book.fault("%s %s answered %d %s", method, path, res.StatusCode, answer)
	}
	return 0, true
}

func serverPath(key fleet.ServerKey) string { return "/v1/servers/" + key.Account + "/" + key.Region }

// told is what a representation says of its server.
func (c *caller) told(status int, v fleet.ServerView) apiAnswer {
	if status >= 300 || status == 0 {
		return apiAnswer{Status: status}
	}
	if text := contradiction(v); text != "" {
		c.book.fault("%s/%s: %s: it is %s", v.Account, v.Region, text, brief(v))
	}
	return apiAnswer{Status: status, Generation: v.Generation, Image: v.Intent.ImageTag, Seq: v.Intent.Deployment, Deleting: v.Intent.Deleting != nil}
}

// contradiction says what of a representation cannot be true at once (P7, P20).
func contradiction(v fleet.ServerView) string {
	switch {
	case v.Deployment == nil:
		return "a server without a deployment"
	case v.Deployment.Seq != v.Intent.Deployment || v.Deployment.ImageTag != v.Intent.ImageTag:
		return "the latest deployment is not that of the intent"
	case v.Status == fleet.StatusActive && (v.PublishedURL == "" || v.ServingImageTag == ""):
		return "active, and does not serve"
	case v.Status == fleet.StatusFailed && v.Reason == "":
		return "failed without a reason"
	}
	return ""
}

func (c *caller) get(key fleet.ServerKey) (v fleet.ServerView, exists bool) {
	from := c.book.now()
	status, sent := c.send(http.MethodGet, serverPath(key), nil, nil, &v)
	if sent {
		c.book.add(c.id, key, from, apiCall{Verb: verbGet}, c.told(status, v))
		c.seen[key] = v.Generation
	}
	return v, status == http.StatusOK
}

// list reads all servers, which is a read of each.
func (c *caller) list() {
	from := c.book.now()
	var page api.List[fleet.ServerView]
	status, sent := c.send(http.MethodGet, "/v1/servers?region="+c.keys[0].Region, nil, nil, &page)
	if !sent || status == 0 {
		return
	}
	for _, key := range c.keys {
		a := apiAnswer{Status: http.StatusNotFound}
		for _, v := range page.Items {
			if v.Account == key.Account {
				a = c.told(status, v)
			}
		}
		c.book.add(c.id, key, from, apiCall{Verb: verbGet}, a)
	}
}

// put declares a server. As after every write, the next thing is to read it: at once,
// for that is when a read that is behind shows.
func (c *caller) put(key fleet.ServerKey, call apiCall) (answered bool) {
	header := http.Header{}
	if call.IfMatch != 0 {
		header.Set("If-Match", strconv.Quote(strconv.FormatInt(call.IfMatch, 10)))
	}
	if call.CreateOnly {
		header.Set("If-None-Match", "*")
	}
	from := c.book.now()
	var w api.Written[fleet.ServerView]
	status, sent := c.send(http.MethodPut, serverPath(key), fleet.Server{Account: key.Account, Region: key.Region, ImageTag: call.Image}, header, &w)
	if !sent {
		return false
	}
	a := c.told(status, w.Object)
	a.Changed = w.Changed
	if w.Created != (status == http.StatusCreated) {
		c.book.fault("PUT of %s answered %d and created: %v", key, status, w.Created)
	}
	c.book.add(c.id, key, from, call, a)
	if status != 0 && w.Changed {
		c.acknowledged(*w.Object.Deployment)
	}
	c.get(key)
	return status != 0 && status < 300
}

func (c *caller) delete(key fleet.ServerKey) {
	from := c.book.now()
	var v fleet.ServerView
	if status, sent := c.send(http.MethodDelete, serverPath(key), nil, nil, &v); sent {
		c.book.add(c.id, key, from, apiCall{Verb: verbDelete}, c.told(status, v))
		c.get(key)
	}
}

func (c *caller) redeploy(key fleet.ServerKey, idempotency string) {
	from := c.book.now()
	var d fleet.Deployment
	status, sent := c.send(http.MethodPost, serverPath(key)+":redeploy", nil, http.Header{api.HeaderIdempotency: {idempotency}}, &d)
	if !sent {
		return
	}
	a := apiAnswer{Status: status, Generation: d.Generation, Image: d.ImageTag, Seq: d.Seq}
	c.book.add(c.id, key, from, apiCall{Verb: verbRedeploy, Key: idempotency}, a)
	if status == http.StatusCreated {
		c.acknowledged(d)
	}
	c.get(key)
}

func (c *caller) acknowledged(d fleet.Deployment) {
	c.book.mu.Lock()
	defer c.book.mu.Unlock()
	c.book.acks = append(c.book.acks, d)
}

// linearizable checks the history of each server; what is refused is drawn for who reads
// the failure.
func (b *chronicle) linearizable(t *testing.T, keys []fleet.ServerKey) {
	t.Helper()
	for _, key := range keys {
		ops := b.history(key)
		result, info := porcupine.CheckOperationsVerbose(serverModel(), ops, 2*patience)
		if result == porcupine.Ok {
			continue
		}
		where := drawing(t, key, info)
		t.Errorf("the %d calls about %s are not linearizable (%s); see %s", len(ops), key, strings.ToLower(string(result)), where)
	}
}
