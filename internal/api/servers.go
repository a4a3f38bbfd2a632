package api

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// GetOptions change how a server is read.
type GetOptions struct {
	// ObserveNow asks for one turn begun after the request, with a fresh read and
	// probe: MaxObserve at most, and Stale is set where it took longer.
	ObserveNow bool
}

// GetServer reads a server.
func (c *Client) GetServer(ctx context.Context, key fleet.ServerKey, opts GetOptions) (fleet.ServerView, error) {
	k := get(fmt.Sprintf("read server %s", key), "v1", "servers", key.Account, key.Region)
	if opts.ObserveNow {
		k.query.Set("observe", "now")
		k.waits = true
	}
	var out fleet.ServerView
	err := c.do(ctx, k, &out)
	return out, err
}

// ListServers reads all servers that the filter chooses, sorted by region and account.
func (c *Client) ListServers(ctx context.Context, filter ServerFilter) ([]fleet.ServerView, error) {
	k := get("list servers", "v1", "servers")
	setNonEmpty(k.query, "account", filter.Account)
	setNonEmpty(k.query, "region", filter.Region)
	setNonEmpty(k.query, "verdict", string(filter.Verdict))
	return collect[fleet.ServerView](ctx, c, k)
}

// PutServer declares a server. The answer names its generation and, in
// Object.Deployment, the deployment that brings it there.
func (c *Client) PutServer(ctx context.Context, s fleet.Server, opts PutOptions) (Written[fleet.ServerView], error) {
	var out Written[fleet.ServerView]
	err := c.do(ctx, put(fmt.Sprintf("write server %s", s.Key()), s, opts, "v1", "servers", s.Account, s.Region), &out)
	return out, err
}

// DeleteServer asks for the destruction of a server and returns it as it is now; it
// is gone once reading it answers not_found (P18).
func (c *Client) DeleteServer(ctx context.Context, key fleet.ServerKey) (fleet.ServerView, error) {
	var out fleet.ServerView
	err := c.do(ctx, call{what: fmt.Sprintf("delete server %s", key), method: http.MethodDelete, path: []string{"v1", "servers", key.Account, key.Region}, repeat: always}, &out)
	return out, err
}

// WaitServers returns what changed in a region ("": in all) since the cursor of the last answer,
// waiting up to wait (MaxWait at most) for something to change. An empty cursor
// answers at once with all servers.
func (c *Client) WaitServers(ctx context.Context, region, cursor string, wait time.Duration) (ServerChanges, error) {
	k := get(fmt.Sprintf("wait for servers of region %q", region), "v1", "servers")
	setNonEmpty(k.query, "region", region)
	var out ServerChanges
	err := c.do(ctx, k.waiting(cursor, wait), &out)
	return out, err
}

// WaitServer is WaitServers for one server.
func (c *Client) WaitServer(ctx context.Context, key fleet.ServerKey, cursor string, wait time.Duration) (ServerChange, error) {
	k := get(fmt.Sprintf("wait for server %s", key), "v1", "servers", key.Account, key.Region)
	var out ServerChange
	err := c.do(ctx, k.waiting(cursor, wait), &out)
	return out, err
}

func (k call) waiting(cursor string, wait time.Duration) call {
	wait = min(max(wait, 0), MaxWait)
	k.query.Set("wait", wait.String())
	setNonEmpty(k.query, "after", cursor)
	k.waits = true
	return k
}

// Redeploy makes a new deployment of the present image (P12). The same key always
// answers with the same deployment.
func (c *Client) Redeploy(ctx context.Context, key fleet.ServerKey, idempotencyKey string) (fleet.Deployment, error) {
	var out fleet.Deployment
	err := c.do(ctx, call{
		what: fmt.Sprintf("redeploy server %s", key), method: http.MethodPost,
		path: []string{"v1", "servers", key.Account, key.Region + ":redeploy"}, header: http.Header{HeaderIdempotency: {idempotencyKey}}, repeat: always,
	}, &out)
	return out, err
}

// Deployments returns the deployments of a server that are kept, newest first.
func (c *Client) Deployments(ctx context.Context, key fleet.ServerKey) ([]fleet.Deployment, error) {
	return collect[fleet.Deployment](ctx, c, get(fmt.Sprintf("list deployments of server %s", key), "v1", "servers", key.Account, key.Region, "deployments"))
}

// Events returns the newest events that the filter chooses, newest first.
func (c *Client) Events(ctx context.Context, filter EventFilter) ([]fleet.Event, error) {
	var out List[fleet.Event]
	err := c.do(ctx, filter.call("list events"), &out)
	return out.Items, err
}

// WaitEvents returns what happened since the cursor of the last answer, waiting up to
// wait (MaxWait at most) for something to happen. An empty cursor answers at once with
// the newest events. A cursor outlives a restart of the daemon.
func (c *Client) WaitEvents(ctx context.Context, filter EventFilter, cursor string, wait time.Duration) (EventChanges, error) {
	var out EventChanges
	err := c.do(ctx, filter.call("wait for events").waiting(cursor, wait), &out)
	return out, err
}

func (f EventFilter) call(what string) call {
	k := get(what, "v1", "events")
	setNonEmpty(k.query, "account", f.Account)
	setNonEmpty(k.query, "region", f.Region)
	if f.Limit > 0 {
		k.query.Set("limit", strconv.Itoa(f.Limit))
	}
	return k
}

// Resolve returns what clients of an account use, those that answer first.
func (c *Client) Resolve(ctx context.Context, account string) ([]Endpoint, error) {
	var out List[Endpoint]
	err := c.do(ctx, get(fmt.Sprintf("read endpoints of account %q", account), "v1", "accounts", account, "endpoints"), &out)
	return out.Items, err
}

// CreateToken makes a token.
func (c *Client) CreateToken(ctx context.Context, r TokenRequest) (CreatedToken, error) {
	var out CreatedToken
	err := c.do(ctx, call{what: fmt.Sprintf("create token %q", r.Name), method: http.MethodPost, path: []string{"v1", "tokens"}, body: r, repeat: unsent}, &out)
	return out, err
}

// ListTokens returns all tokens, revoked and expired ones included.
func (c *Client) ListTokens(ctx context.Context) ([]TokenInfo, error) {
	return collect[TokenInfo](ctx, c, get("list tokens", "v1", "tokens"))
}

// RevokeToken ends a token for good.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.do(ctx, call{what: fmt.Sprintf("revoke token %q", id), method: http.MethodDelete, path: []string{"v1", "tokens", id}, repeat: always}, nil)
}

func setNonEmpty(q url.Values, name, value string) {
	if value != "" {
		q.Set(name, value)
	}
}
