package api

import (
	"context"
	"fmt"
	"strconv"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// PutOptions are the conditions of a write.
type PutOptions struct {
	IfMatch     int64 // generation that the object must have; 0: any
	IfNoneMatch bool  // create only: an object that exists is a conflict
	DryRun      bool  // validate and warn, write nothing
	Again       bool  // of a server: a version that came to nothing is tried again
}

// Version asks the daemon who it is.
func (c *Client) Version(ctx context.Context) (VersionInfo, error) {
	return fetch[VersionInfo](ctx, c, get("read the daemon's version", "version"))
}

// GetAccount reads an account.
func (c *Client) GetAccount(ctx context.Context, id string) (Account, error) {
	return fetch[Account](ctx, c, get(fmt.Sprintf("read account %q", id), "accounts", id))
}

// ListAccounts reads all accounts, sorted by id.
func (c *Client) ListAccounts(ctx context.Context) ([]Account, error) {
	return collect[Account](ctx, c, get("list accounts", "accounts"))
}

// PutAccount declares an account.
func (c *Client) PutAccount(ctx context.Context, a fleet.Account, opts PutOptions) (Written[Account], error) {
	return fetch[Written[Account]](ctx, c, put(fmt.Sprintf("write account %q", a.ID), a, opts, "accounts", a.ID))
}

// DeleteAccount removes an account that has no servers.
func (c *Client) DeleteAccount(ctx context.Context, id string) error {
	return c.do(ctx, remove(fmt.Sprintf("delete account %q", id), "accounts", id), nil)
}

// GetHostTemplate reads a host template.
func (c *Client) GetHostTemplate(ctx context.Context, name string) (HostTemplate, error) {
	return fetch[HostTemplate](ctx, c, get(fmt.Sprintf("read host template %q", name), "host-templates", name))
}

// ListHostTemplates reads all host templates, sorted by name.
func (c *Client) ListHostTemplates(ctx context.Context) ([]HostTemplate, error) {
	return collect[HostTemplate](ctx, c, get("list host templates", "host-templates"))
}

// PutHostTemplate declares a host template.
func (c *Client) PutHostTemplate(ctx context.Context, t fleet.HostTemplate, opts PutOptions) (Written[HostTemplate], error) {
	return fetch[Written[HostTemplate]](ctx, c, put(fmt.Sprintf("write host template %q", t.Name), t, opts, "host-templates", t.Name))
}

// DeleteHostTemplate removes a host template that no region names.
func (c *Client) DeleteHostTemplate(ctx context.Context, name string) error {
	return c.do(ctx, remove(fmt.Sprintf("delete host template %q", name), "host-templates", name), nil)
}

// GetRegion reads a region.
func (c *Client) GetRegion(ctx context.Context, name string) (Region, error) {
	return fetch[Region](ctx, c, get(fmt.Sprintf("read region %q", name), "regions", name))
}

// ListRegions reads all regions, sorted by name.
func (c *Client) ListRegions(ctx context.Context) ([]Region, error) {
	return collect[Region](ctx, c, get("list regions", "regions"))
}

// PutRegion declares a region.
func (c *Client) PutRegion(ctx context.Context, r fleet.Region, opts PutOptions) (Written[Region], error) {
	return fetch[Written[Region]](ctx, c, put(fmt.Sprintf("write region %q", r.Name), r, opts, "regions", r.Name))
}

// DeleteRegion removes a region that has no servers.
func (c *Client) DeleteRegion(ctx context.Context, name string) error {
	return c.do(ctx, remove(fmt.Sprintf("delete region %q", name), "regions", name), nil)
}

// GetCacheEndpoint reads a declared endpoint.
func (c *Client) GetCacheEndpoint(ctx context.Context, e fleet.CacheEndpoint) (CacheEndpoint, error) {
	return fetch[CacheEndpoint](ctx, c, get("read cache endpoint "+e.String(), "cache-endpoints", e.Account, e.Key()))
}

// ListCacheEndpoints reads all declared endpoints that the filter chooses, sorted by
// account and key.
func (c *Client) ListCacheEndpoints(ctx context.Context, filter CacheEndpointFilter) ([]CacheEndpoint, error) {
	k := get("list cache endpoints", "cache-endpoints")
	return collect[CacheEndpoint](ctx, c, k.with("account", filter.Account, "technology", filter.Technology))
}

// PutCacheEndpoint declares an endpoint.
func (c *Client) PutCacheEndpoint(ctx context.Context, e fleet.CacheEndpoint, opts PutOptions) (Written[CacheEndpoint], error) {
	return fetch[Written[CacheEndpoint]](ctx, c, put("write cache endpoint "+e.String(), e, opts, "cache-endpoints", e.Account, e.Key()))
}

// DeleteCacheEndpoint removes a declared endpoint.
func (c *Client) DeleteCacheEndpoint(ctx context.Context, e fleet.CacheEndpoint) error {
	return c.do(ctx, remove("delete cache endpoint "+e.String(), "cache-endpoints", e.Account, e.Key()), nil)
}

// collect reads all pages of a list, which are of one revision.
func collect[T any](ctx context.Context, c *Client, k call) (all []T, err error) {
	err = pages(k, func(k call, first bool) (string, error) {
		page, err := fetch[List[T]](ctx, c, k)
		if first {
			all = nil
		}
		all = append(all, page.Items...)
		return page.Next, err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// pages reads a list page by page: read says where the next one begins, and hears which is the
// first, once more where the daemon no longer keeps the list.
func pages(k call, read func(k call, first bool) (next string, err error)) error {
	const begins = 3
	k.query.Set("limit", strconv.Itoa(MaxPage))
	for begin := 1; ; {
		next, err := read(k, !k.query.Has("page"))
		switch {
		case fleet.CodeOf(err) == CodeCursorExpired && begin < begins:
			begin++
			k.query.Del("page")
		case err != nil || next == "":
			return err
		default:
			k.query.Set("page", next)
		}
	}
}
