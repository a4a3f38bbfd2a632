package api

import (
	"context"
	"fmt"
	"iter"
	"net/http"
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
	var out VersionInfo
	return out, c.do(ctx, get("read the daemon's version", "v1", "version"), &out)
}

// collection is what accounts, host templates and regions share: wire type W of
// domain type D under one path.
type collection[W, D any] struct {
	path string // v1/<path>
	noun string
}

var (
	accounts  = collection[Account, fleet.Account]{"accounts", "account"}
	templates = collection[HostTemplate, fleet.HostTemplate]{"host-templates", "host template"}
	regions   = collection[Region, fleet.Region]{"regions", "region"}
)

func (k collection[W, D]) get(ctx context.Context, c *Client, name string) (W, error) {
	var out W
	err := c.do(ctx, get(fmt.Sprintf("read %s %q", k.noun, name), "v1", k.path, name), &out)
	return out, err
}

func (k collection[W, D]) list(ctx context.Context, c *Client) ([]W, error) {
	return collect[W](ctx, c, get(fmt.Sprintf("list %ss", k.noun), "v1", k.path))
}

func (k collection[W, D]) put(ctx context.Context, c *Client, name string, object D, opts PutOptions) (Written[W], error) {
	var out Written[W]
	err := c.do(ctx, put(fmt.Sprintf("write %s %q", k.noun, name), object, opts, "v1", k.path, name), &out)
	return out, err
}

func (k collection[W, D]) delete(ctx context.Context, c *Client, name string) error {
	return c.do(ctx, call{what: fmt.Sprintf("delete %s %q", k.noun, name), method: http.MethodDelete, path: []string{"v1", k.path, name}, repeat: always}, nil)
}

// GetAccount reads an account.
func (c *Client) GetAccount(ctx context.Context, id string) (Account, error) {
	return accounts.get(ctx, c, id)
}

// ListAccounts reads all accounts, sorted by id.
func (c *Client) ListAccounts(ctx context.Context) ([]Account, error) { return accounts.list(ctx, c) }

// PutAccount declares an account.
func (c *Client) PutAccount(ctx context.Context, a fleet.Account, opts PutOptions) (Written[Account], error) {
	return accounts.put(ctx, c, a.ID, a, opts)
}

// DeleteAccount removes an account that has no servers.
func (c *Client) DeleteAccount(ctx context.Context, id string) error {
	return accounts.delete(ctx, c, id)
}

// GetHostTemplate reads a host template.
func (c *Client) GetHostTemplate(ctx context.Context, name string) (HostTemplate, error) {
	return templates.get(ctx, c, name)
}

// ListHostTemplates reads all host templates, sorted by name.
func (c *Client) ListHostTemplates(ctx context.Context) ([]HostTemplate, error) {
	return templates.list(ctx, c)
}

// PutHostTemplate declares a host template.
func (c *Client) PutHostTemplate(ctx context.Context, t fleet.HostTemplate, opts PutOptions) (Written[HostTemplate], error) {
	return templates.put(ctx, c, t.Name, t, opts)
}

// DeleteHostTemplate removes a host template that no region names.
func (c *Client) DeleteHostTemplate(ctx context.Context, name string) error {
	return templates.delete(ctx, c, name)
}

// GetRegion reads a region.
func (c *Client) GetRegion(ctx context.Context, name string) (Region, error) {
	return regions.get(ctx, c, name)
}

// ListRegions reads all regions, sorted by name.
func (c *Client) ListRegions(ctx context.Context) ([]Region, error) { return regions.list(ctx, c) }

// PutRegion declares a region.
func (c *Client) PutRegion(ctx context.Context, r fleet.Region, opts PutOptions) (Written[Region], error) {
	return regions.put(ctx, c, r.Name, r, opts)
}

// DeleteRegion removes a region that has no servers.
func (c *Client) DeleteRegion(ctx context.Context, name string) error {
	return regions.delete(ctx, c, name)
}

// GetCacheEndpoint reads a declared endpoint.
func (c *Client) GetCacheEndpoint(ctx context.Context, e fleet.CacheEndpoint) (CacheEndpoint, error) {
	var out CacheEndpoint
	err := c.do(ctx, get("read cache endpoint "+e.String(), "v1", "cache-endpoints", e.Account, e.Key()), &out)
	return out, err
}

// ListCacheEndpoints reads all declared endpoints that the filter chooses, sorted by
// account and key.
func (c *Client) ListCacheEndpoints(ctx context.Context, filter CacheEndpointFilter) ([]CacheEndpoint, error) {
	k := get("list cache endpoints", "v1", "cache-endpoints")
	setNonEmpty(k.query, "account", filter.Account)
	setNonEmpty(k.query, "technology", filter.Technology)
	return collect[CacheEndpoint](ctx, c, k)
}

// PutCacheEndpoint declares an endpoint.
func (c *Client) PutCacheEndpoint(ctx context.Context, e fleet.CacheEndpoint, opts PutOptions) (Written[CacheEndpoint], error) {
	var out Written[CacheEndpoint]
	err := c.do(ctx, put("write cache endpoint "+e.String(), e, opts, "v1", "cache-endpoints", e.Account, e.Key()), &out)
	return out, err
}

// DeleteCacheEndpoint removes a declared endpoint.
func (c *Client) DeleteCacheEndpoint(ctx context.Context, e fleet.CacheEndpoint) error {
	return c.do(ctx, call{what: "delete cache endpoint " + e.String(), method: http.MethodDelete, path: []string{"v1", "cache-endpoints", e.Account, e.Key()}, repeat: always}, nil)
}

// pages reads a list page by page; all pages are of one revision.
func pages[T any](ctx context.Context, c *Client, k call) iter.Seq2[List[T], error] {
	return func(yield func(List[T], error) bool) {
		k.query.Set("limit", strconv.Itoa(MaxPage))
		for {
			var page List[T]
			if err := c.do(ctx, k, &page); err != nil {
				yield(page, err)
				return
			}
			if !yield(page, nil) || page.Next == "" {
				return
			}
			k.query.Set("page", page.Next)
		}
	}
}

// collect reads all pages. A list that the daemon no longer keeps is begun again.
func collect[T any](ctx context.Context, c *Client, k call) ([]T, error) {
	const begins = 3
	for begin := 1; ; begin++ {
		all, err := collectOnce[T](ctx, c, k)
		if fleet.CodeOf(err) != CodeCursorExpired || begin == begins {
			return all, err
		}
		k.query.Del("page")
	}
}

func collectOnce[T any](ctx context.Context, c *Client, k call) ([]T, error) {
	var all []T
	for page, err := range pages[T](ctx, c, k) {
		if err != nil {
			return nil, err
		}
		all = append(all, page.Items...)
	}
	return all, nil
}
