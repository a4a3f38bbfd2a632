package cloudflare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/cloudflare/cloudflare-go/v7/option"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Bounds of one call (G9).
const (
	callWithin = 30 * time.Second
	maxAnswer  = 32 << 20 // bytes; 5,000 records have about 3 MiB
)

// Permissions of a token, as Cloudflare's dashboard calls them (API documentation, permissions).
const (
	zoneRead      = "Zone:Read"
	dnsEdit       = "DNS:Edit"
	balancersEdit = "Load Balancers:Edit"
	poolsEdit     = "Load Balancing: Monitors And Pools:Edit"
)

// call is one thing to ask of Cloudflare.
type call struct {
	zone  string // its domain
	what  string // list its records
	need  string // the permission
	write bool
	do    func(ctx context.Context, with ...option.RequestOption) error
}

func (c *call) String() string { return fmt.Sprintf("zone %s: %s", c.zone, c.what) }

// answer is what came back.
type answer[T any] struct {
	Result T     `json:"result"`
	Info   *info `json:"result_info"`
	at     time.Time
}

// info goes with listings.
type info struct {
	PerPage    int  `json:"per_page"`
	TotalCount *int `json:"total_count"`
}

// ask makes a call in its turn and returns at its deadline, even if the call does not end. Its error
// is of the type dns.Error.
func ask[T any](ctx context.Context, client *Client, s share, c *call) (answer[T], error) {
	var a answer[T]
	if after, ok := client.budget.wait(ctx, s); ctx.Err() != nil {
		e := c.classify(ctx.Err())
		e.Answered = true // it was never sent
		return a, e
	} else if !ok {
		return a, &dns.Error{
			Class: fleet.ClassTransient, Reason: fleet.ReasonRateLimited, After: after, Answered: true,
			Message: fmt.Sprintf("%s: not asked: kurad's share of what Cloudflare allows its token is used up for %s", c, after.Round(time.Second)),
		}
	}
	ctx, cancel := context.WithTimeout(ctx, client.within)
	defer cancel()
	type outcome struct {
		answer[T]
		err error
	}
	ended := make(chan outcome, 1)
	go func() {
		var o outcome
		var response *http.Response
		o.err = c.do(ctx, option.WithResponseInto(&response), option.WithResponseBodyInto(&o.answer))
		if o.err == nil {
			o.at, _ = http.ParseTime(response.Header.Get("Date")) // zero: it does not say
		}
		ended <- o
	}()
	var err error
	select {
	case o := <-ended:
		a, err = o.answer, o.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		return a, nil
	}
	e := c.classify(err)
	if e.Reason == fleet.ReasonRateLimited {
		var headers http.Header
		if said, ok := errors.AsType[*refusal](err); ok {
			headers = said.header
		}
		e.After = client.budget.limited(headers, time.Now())
	}
	return answer[T]{}, e
}

// noToken is why the token could not be read.
type noToken struct{ error }

// Do implements option.HTTPClient: it makes a request with the token, and returns an answer of the
// API's that says success, or an error.
func (c *Client) Do(request *http.Request) (*http.Response, error) {
	token, err := c.secret(request.Context())
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	c.budget.heard(response.Header, time.Now())
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer: %w", err)
	case len(body) > maxAnswer:
		return nil, fmt.Errorf("the answer has more than %d bytes", maxAnswer)
	}
	if !succeeded(response, body) {
		return nil, newRefusal(response.StatusCode, response.Header, strings.ReplaceAll(string(body), string(token), hidden))
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	return response, nil
}

func (c *Client) secret(ctx context.Context) (secret, error) {
	select {
	case r := <-c.read.DoChan("", func() (any, error) { return c.token.read() }):
		if r.Err != nil {
			return "", noToken{fmt.Errorf("read the token: %w", r.Err)}
		}
		token, _ := r.Val.(secret)
		return token, nil
	case <-ctx.Done():
		return "", fmt.Errorf("read the token: %w", ctx.Err())
	}
}

// succeeded reports whether this is an envelope that says so.
func succeeded(r *http.Response, body []byte) bool {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var envelope struct {
		Success bool `json:"success"`
	}
	return r.StatusCode/100 == 2 && kind == "application/json" && json.Unmarshal(body, &envelope) == nil && envelope.Success
}
