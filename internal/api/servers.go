package api

import (
	"context"
	"fmt"
	"net/http"
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
	k := get(fmt.Sprintf("read server %s", key), "servers", key.Account, key.Region)
	if opts.ObserveNow {
		k.query.Set("observe", "now")
		k.waits = true
	}
	return fetch[fleet.ServerView](ctx, c, k)
}

// ListServers reads all servers that the filter chooses, sorted by region and account.
func (c *Client) ListServers(ctx context.Context, filter ServerFilter) ([]fleet.ServerView, error) {
	k := get("list servers", "servers")
	return collect[fleet.ServerView](ctx, c, k.with("account", filter.Account, "region", filter.Region, "verdict", string(filter.Verdict)))
}

// PutServer declares a server. The answer names its generation and, in
// Object.Deployment, the deployment that brings it there.
func (c *Client) PutServer(ctx context.Context, s fleet.Server, opts PutOptions) (Written[fleet.ServerView], error) {
	return fetch[Written[fleet.ServerView]](ctx, c, put(fmt.Sprintf("write server %s", s.Key()), s, opts, "servers", s.Account, s.Region))
}

// DeleteServer asks for the destruction of a server and returns it as it is now; it
// is gone once reading it answers not_found (P18).
func (c *Client) DeleteServer(ctx context.Context, key fleet.ServerKey) (fleet.ServerView, error) {
	return fetch[fleet.ServerView](ctx, c, remove(fmt.Sprintf("delete server %s", key), "servers", key.Account, key.Region))
}

// WaitServers returns what changed in a region ("": in all) since the cursor of the last answer,
// waiting up to wait (MaxWait at most) for something to change. An empty cursor
// answers at once with all servers.
func (c *Client) WaitServers(ctx context.Context, region, cursor string, wait time.Duration) (ServerChanges, error) {
	k := get(fmt.Sprintf("wait for servers of region %q", region), "servers")
	return fetch[ServerChanges](ctx, c, k.with("region", region).waiting(cursor, wait))
}

// WaitServer is WaitServers for one server.
func (c *Client) WaitServer(ctx context.Context, key fleet.ServerKey, cursor string, wait time.Duration) (ServerChange, error) {
	return fetch[ServerChange](ctx, c, get(fmt.Sprintf("wait for server %s", key), "servers", key.Account, key.Region).waiting(cursor, wait))
}

// Redeploy makes a new deployment of the present image (P12). The same key always
// answers with the same deployment.
func (c *Client) Redeploy(ctx context.Context, key fleet.ServerKey, idempotencyKey string) (fleet.Deployment, error) {
	k := post(fmt.Sprintf("redeploy server %s", key), nil, "servers", key.Account, key.Region+":redeploy")
	k.header = http.Header{HeaderIdempotency: {idempotencyKey}}
	return fetch[fleet.Deployment](ctx, c, k)
}

// Deployments returns the deployments of a server that are kept, newest first.
func (c *Client) Deployments(ctx context.Context, key fleet.ServerKey) ([]fleet.Deployment, error) {
	return collect[fleet.Deployment](ctx, c, get(fmt.Sprintf("list deployments of server %s", key), "servers", key.Account, key.Region, "deployments"))
}

// Events returns the newest events that the filter chooses, newest first.
func (c *Client) Events(ctx context.Context, filter EventFilter) ([]fleet.Event, error) {
	list, err := fetch[List[fleet.Event]](ctx, c, filter.call("list events"))
	return list.Items, err
}

// WaitEvents returns what happened since the cursor of the last answer, waiting up to
// wait (MaxWait at most) for something to happen. An empty cursor answers at once with
// the newest events. A cursor outlives a restart of the daemon.
func (c *Client) WaitEvents(ctx context.Context, filter EventFilter, cursor string, wait time.Duration) (EventChanges, error) {
	return fetch[EventChanges](ctx, c, filter.call("wait for events").waiting(cursor, wait))
}

func (f EventFilter) call(what string) call {
	k := get(what, "events").with("account", f.Account, "region", f.Region)
	if f.Limit > 0 {
		k.query.Set("limit", strconv.Itoa(f.Limit))
	}
	return k
}

// Resolve returns what clients of an account use, those that answer first.
func (c *Client) Resolve(ctx context.Context, account string) ([]Endpoint, error) {
	list, err := fetch[List[Endpoint]](ctx, c, get(fmt.Sprintf("read endpoints of account %q", account), "accounts", account, "endpoints"))
	return list.Items, err
}

// CreateToken makes a token.
func (c *Client) CreateToken(ctx context.Context, r TokenRequest) (CreatedToken, error) {
	k := post(fmt.Sprintf("create token %q", r.Name), r, "tokens")
	k.repeat = unsent // another one would be made
	return fetch[CreatedToken](ctx, c, k)
}

// ListTokens returns all tokens, revoked and expired ones included.
func (c *Client) ListTokens(ctx context.Context) ([]TokenInfo, error) {
	return collect[TokenInfo](ctx, c, get("list tokens", "tokens"))
}

// RevokeToken ends a token for good.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.do(ctx, remove(fmt.Sprintf("revoke token %q", id), "tokens", id), nil)
}
