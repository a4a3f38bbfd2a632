package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// maxAnswer bounds what is read of an answer: a full page is a few megabytes.
const maxAnswer = 64 << 20

// call is one request.
type call struct {
	what   string // for errors: `read account "acme"`
	method string
	path   []string // segments below /v1, not yet escaped
	query  url.Values
	header http.Header
	body   any
	repeat repeatable
	waits  bool // the answer may be long in coming, and takes no slot meanwhile
}

// get describes a read.
func get(what string, path ...string) call {
	return call{what: what, method: http.MethodGet, path: path, query: url.Values{}, repeat: always}
}

// post describes a call that does the same however often it is repeated.
func post(what string, body any, path ...string) call {
	return call{what: what, method: http.MethodPost, path: path, query: url.Values{}, body: body, repeat: always}
}

// remove describes the removal of an object.
func remove(what string, path ...string) call {
	return call{what: what, method: http.MethodDelete, path: path, repeat: always}
}

// put describes a write of an object.
func put(what string, body any, opts PutOptions, path ...string) call {
	c := call{what: what, method: http.MethodPut, path: path, query: url.Values{}, header: http.Header{}, body: body, repeat: always}
	if opts.IfMatch > 0 {
		c.header.Set("If-Match", strconv.Quote(strconv.FormatInt(opts.IfMatch, 10)))
		c.repeat = unsent
	}
	if opts.IfNoneMatch {
		c.header.Set("If-None-Match", "*")
		c.repeat = unsent
	}
	if opts.DryRun {
		c.query.Set("dry_run", "true")
		c.repeat = always
	}
	if opts.Again {
		c.query.Set("again", "true")
		c.waits = true
	}
	return c
}

// with adds those of the query's parameters, each a name and a value, that have a value.
func (k call) with(parameters ...string) call {
	for p := range slices.Chunk(parameters, 2) {
		if p[1] != "" {
			k.query.Set(p[0], p[1])
		}
	}
	return k
}

// waiting makes a long poll of a read.
func (k call) waiting(cursor string, wait time.Duration) call {
	k.waits = true
	return k.with("wait", min(max(wait, 0), MaxWait).String(), "after", cursor)
}

// fetch sends the call and returns its answer.
func fetch[T any](ctx context.Context, c *Client, k call) (T, error) {
	var out T
	err := c.do(ctx, k, &out)
	return out, err
}

// do sends the call and decodes the answer into out, unless that is nil.
func (c *Client) do(ctx context.Context, k call, out any) error {
	req, err := c.request(ctx, k)
	if err != nil {
		return err
	}
	client := c.quick
	if k.waits {
		client = c.patient
	} else {
		select {
		case c.slots <- struct{}{}:
			defer func() { <-c.slots }()
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", k.what, context.Cause(ctx))
		}
	}
	resp, err := client.Do(req)
	if err != nil {
		return c.noAnswer(ctx, k.what, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return c.noAnswer(ctx, k.what, err)
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return c.problem(k.what, resp, body)
	}
	if len(body) > maxAnswer {
		return c.strange(k.what, resp, "the answer is larger than any page")
	}
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); mt != "application/json" {
		return c.strange(k.what, resp, fmt.Sprintf("the answer is %q, not JSON", resp.Header.Get("Content-Type")))
	}
	if err := json.Unmarshal(body, out); err != nil {
		return c.strange(k.what, resp, err.Error())
	}
	return nil
}

func (c *Client) request(ctx context.Context, k call) (*retryablehttp.Request, error) {
	for _, s := range k.path {
		if s == "" || s == "." || s == ".." {
			return nil, &Error{Err: fleet.Errorf(fleet.CodeInvalid, "%s: the name is empty or a dot", k.what)}
		}
	}
	u := *c.base
	u.RawPath = c.base.EscapedPath() + "/" + APIVersion
	for _, s := range k.path {
		u.RawPath += "/" + url.PathEscape(s)
	}
	u.Path, _ = url.PathUnescape(u.RawPath)
	u.RawQuery = k.query.Encode()

	var body any
	if k.body != nil {
		b, err := json.Marshal(k.body)
		if err != nil {
			return nil, fmt.Errorf("%s: encode: %w", k.what, err)
		}
		body = bytes.NewReader(b)
	}
	req, err := retryablehttp.NewRequestWithContext(context.WithValue(ctx, attemptsKey{}, &attempts{repeat: k.repeat, once: c.cfg.Impatient, answered: &c.answered}), k.method, u.String(), body)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", k.what, err)
	}
	for name, values := range k.header {
		req.Header[name] = values
	}
	req.Header.Set("Accept", "application/json, "+ContentTypeProblem)
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	if k.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.cfg.Environment != "" {
		req.Header.Set(HeaderEnvironment, c.cfg.Environment)
	}
	if !c.cfg.Token.Empty() {
		req.Header.Set("Authorization", "Bearer "+c.cfg.Token.Reveal())
	}
	return req, nil
}

// problem turns an answer that is no success into an Error. Only kurad's own problem
// document is believed: a proxy's 404 must never read as "this object is gone".
func (c *Client) problem(what string, resp *http.Response, body []byte) error {
	mt, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	var p Problem
	if mt != ContentTypeProblem || json.Unmarshal(body, &p) != nil || p.Code == "" {
		return c.strange(what, resp, "the answer is not kurad's; is something else at this address, or a proxy in between?")
	}
	fault := p.Err()
	fault.Message = what + ": " + fault.Message
	return &Error{Status: resp.StatusCode, RequestID: p.RequestID, RetryAfter: retryAfter(resp), Err: fault}
}

// strange describes an answer that kurad would not give.
func (c *Client) strange(what string, resp *http.Response, why string) error {
	code := fleet.CodeInternal
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		code = fleet.CodeUnavailable
	}
	return &Error{
		Status: resp.StatusCode, RequestID: resp.Header.Get(HeaderRequestID), RetryAfter: retryAfter(resp),
		Err: &fleet.Error{Code: code, Message: fmt.Sprintf("%s: %s answered %d", what, c.cfg.Endpoint, resp.StatusCode), Err: errors.New(why)},
	}
}
