package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/declare"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// What accounts, host templates, regions and cache endpoints share: they are listed, read,
// declared and removed alike.

// IDPath names an object by id. Paths are exported for huma, which passes over what is not.
type IDPath struct {
	ID string `path:"id" maxLength:"63"`
}

// NamePath names an object by name.
type NamePath struct {
	Name string `path:"name" maxLength:"63"`
}

// EndpointPath names a declared endpoint.
type EndpointPath struct {
	Account string `path:"account" maxLength:"63"`
	Key     string `path:"key" maxLength:"63" doc:"First 16 hexadecimal digits of the SHA-256 of technology, a zero byte and url."`
}

func (p IDPath) names() []string       { return []string{p.ID} }
func (p NamePath) names() []string     { return []string{p.Name} }
func (p EndpointPath) names() []string { return []string{p.Account, p.Key} }

// Match is the condition of every write of an object.
type Match struct {
	IfMatch string `header:"If-Match" maxLength:"64" doc:"Generation that the object must have, in quotes."`
}

// Condition is what a PUT takes besides its body.
type Condition struct {
	Match
	IfNoneMatch string `header:"If-None-Match" maxLength:"64" doc:"*: create only; an object that exists is a conflict."`
	DryRun      bool   `query:"dry_run" doc:"Validate and warn, write nothing."`
}

// request reads the condition of a write of what.
func (m Match) request(ctx context.Context, what string) (r declare.Request, err error) {
	r.By = caller(ctx)
	if m.IfMatch == "" {
		return r, nil
	}
	if r.Generation, err = strconv.ParseInt(strings.Trim(m.IfMatch, `"`), 10, 64); err != nil || r.Generation < 1 {
		return r, fleet.Errorf(fleet.CodeInvalid, "%s: If-Match %s is no generation such as \"3\"", what, m.IfMatch)
	}
	return r, nil
}

func (c Condition) request(ctx context.Context, what string) (r declare.Request, err error) {
	if c.IfNoneMatch != "" && c.IfNoneMatch != "*" {
		return r, fleet.Errorf(fleet.CodeInvalid, "%s: If-None-Match of a PUT can only be *", what)
	}
	r, err = c.Match.request(ctx, what)
	r.New, r.DryRun = c.IfNoneMatch != "", c.DryRun
	return r, err
}

type (
	putAccountInput struct {
		IDPath
		Condition
		Body[fleet.Account]
	}
	putTemplateInput struct {
		NamePath
		Condition
		Body[fleet.HostTemplate]
	}
	putRegionInput struct {
		NamePath
		Condition
		Body[fleet.Region]
	}
	putCacheEndpointInput struct {
		EndpointPath
		Condition
		Body[fleet.CacheEndpoint]
	}
	deleteIDInput struct {
		IDPath
		Match
	}
	deleteNameInput struct {
		NamePath
		Match
	}
	deleteEndpointInput struct {
		EndpointPath
		Match
	}
)

type putOutput[T any] struct {
	Status int
	Body   api.Written[T]
}

// written answers with what was stored.
func written[T, W any](r declare.Result[T], dry bool, show func(T) W) *putOutput[W] {
	out := &putOutput[W]{Status: http.StatusOK, Body: api.Written[W]{Object: show(r.Object), Created: r.Created, Changed: r.Changed, Warnings: r.Warnings}}
	if r.Created && !dry {
		out.Status = http.StatusCreated
	}
	return out
}

// objects are those of one type T, shown as W.
type objects[T, W any] struct {
	declare.Kind[T]
	noun    string
	list    lister[T]
	account func(T) string // whose one is; nil: of all of them alike
	show    func(store.Versioned[T]) W
	same    func(v *fleet.Invalid, names []string, declared T) // that the body is about the object of the URL
}

func (o objects[T, W]) what(names []string) string {
	return fmt.Sprintf("%s %q", o.noun, strings.Join(names, "/"))
}

func (o objects[T, W]) read(ctx context.Context, names []string) (store.Versioned[T], error) {
	if err := plainName(o.what(names), names...); err != nil {
		return store.Versioned[T]{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	return o.Get(ctx, names...)
}

// getObject answers with one object.
func getObject[I interface{ names() []string }, T, W any](o objects[T, W]) func(context.Context, *I) (W, error) {
	return func(ctx context.Context, in *I) (W, error) {
		v, err := o.read(ctx, (*in).names())
		return o.show(v), err
	}
}

// listObjects answers with a page of those that the caller may see.
func listObjects[T, W any](s *Server, o objects[T, W]) func(context.Context, *PageInput) (api.List[W], error) {
	return func(ctx context.Context, in *PageInput) (api.List[W], error) {
		list := o.list
		if o.account != nil {
			list = seen(ctx, list, o.account)
		}
		return listAll(ctx, s, *in, list, o.show)
	}
}

// declaration is what a PUT sends: an object, and on which condition it is to be written.
type declaration[T any] interface {
	value() (T, error)
	request(ctx context.Context, what string) (declare.Request, error)
}

// put declares what, which the URL names and the body is to be about.
func put[T, R, W any](ctx context.Context, in declaration[T], what string, same func(*fleet.Invalid, T), write func(context.Context, declare.Request, T) (declare.Result[R], error), show func(R) W) (*putOutput[W], error) {
	declared, err := in.value()
	if err != nil {
		return nil, err
	}
	var v fleet.Invalid
	same(&v, declared)
	if err := v.Err(what); err != nil {
		return nil, err
	}
	req, err := in.request(ctx, what)
	if err != nil {
		return nil, err
	}
	r, err := write(ctx, req, declared)
	if err != nil {
		return nil, err
	}
	return written(r, req.DryRun, show), nil
}

// putObject declares an object.
func putObject[I interface {
	names() []string
	declaration[T]
}, T, W any](o objects[T, W]) func(context.Context, *I) (*putOutput[W], error) {
	return func(ctx context.Context, in *I) (*putOutput[W], error) {
		names := (*in).names()
		return put(ctx, *in, o.what(names), func(v *fleet.Invalid, declared T) { o.same(v, names, declared) }, o.Put, o.show)
	}
}

// deleteObject removes an object.
func deleteObject[I interface {
	names() []string
	request(context.Context, string) (declare.Request, error)
}, T, W any](o objects[T, W]) func(context.Context, *I) (*struct{}, error) {
	return func(ctx context.Context, in *I) (*struct{}, error) {
		names := (*in).names()
		req, err := (*in).request(ctx, o.what(names))
		if err != nil {
			return nil, err
		}
		if _, err := o.read(ctx, names); err != nil { // what is not there makes nobody wait
			return nil, err
		}
		return nil, o.Delete(ctx, req, names...)
	}
}

// sameName checks that the body is about the object of the URL.
func sameName(v *fleet.Invalid, pointer, inURL, inBody string) {
	if inURL != inBody {
		v.Add(pointer, "must be %q, as in the URL, and is %q", inURL, inBody)
	}
}

func (s *Server) accounts() objects[fleet.Account, api.Account] {
	return objects[fleet.Account, api.Account]{
		Kind: s.Declare.Accounts(), noun: "account", list: s.Records.Accounts, account: func(a fleet.Account) string { return a.ID },
		show: func(v store.Versioned[fleet.Account]) api.Account {
			return api.Account{Generation: v.Generation, Account: v.Value}
		},
		same: func(v *fleet.Invalid, names []string, a fleet.Account) { sameName(v, "/id", names[0], a.ID) },
	}
}

func (s *Server) templates() objects[fleet.HostTemplate, api.HostTemplate] {
	return objects[fleet.HostTemplate, api.HostTemplate]{
		Kind: s.Declare.Templates(), noun: "host template", list: s.Records.Templates,
		// What follows from a pattern here is shown with it. One that another environment has
		// made collide since it was stored has no example.
		show: func(v store.Versioned[fleet.HostTemplate]) api.HostTemplate {
			return api.HostTemplate{
				Generation: v.Generation, HostTemplate: v.Value, EnvSuffix: s.Environment.Suffix,
				Zone: fleet.Zone(v.Value.Pattern), Example: s.Environment.ExampleHost(v.Value.Pattern),
			}
		},
		same: func(v *fleet.Invalid, names []string, t fleet.HostTemplate) { sameName(v, "/name", names[0], t.Name) },
	}
}

func (s *Server) regions() objects[fleet.Region, api.Region] {
	return objects[fleet.Region, api.Region]{
		Kind: s.Declare.Regions(), noun: "region", list: s.Records.Regions,
		show: func(v store.Versioned[fleet.Region]) api.Region {
			return api.Region{Generation: v.Generation, Region: v.Value}
		},
		same: func(v *fleet.Invalid, names []string, r fleet.Region) { sameName(v, "/name", names[0], r.Name) },
	}
}

func (s *Server) cacheEndpoints() objects[fleet.CacheEndpoint, api.CacheEndpoint] {
	return objects[fleet.CacheEndpoint, api.CacheEndpoint]{
		Kind: s.Declare.CacheEndpoints(), noun: "cache endpoint", account: func(e fleet.CacheEndpoint) string { return e.Account },
		show: func(v store.Versioned[fleet.CacheEndpoint]) api.CacheEndpoint {
			return api.CacheEndpoint{Generation: v.Generation, Key: v.Value.Key(), CacheEndpoint: v.Value}
		},
		same: func(v *fleet.Invalid, names []string, e fleet.CacheEndpoint) {
			sameName(v, "/account", names[0], e.Account)
			if key := e.Key(); names[1] != key {
				v.Add("/url", "this technology and url have the key %s, and the URL of the request names %s; send it to /v1/cache-endpoints/%s/%s", key, names[1], e.Account, key)
			}
		},
	}
}

type listCacheEndpointsInput struct {
	PageInput
	Account    string `query:"account" maxLength:"63"`
	Technology string `query:"technology" maxLength:"63"`
}

func (s *Server) listCacheEndpoints(ctx context.Context, in *listCacheEndpointsInput) (out api.List[api.CacheEndpoint], err error) {
	if in.Account != "" {
		if err := plainName("account "+in.Account, in.Account); err != nil {
			return out, err
		}
		if !visible(ctx)(in.Account) {
			return api.List[api.CacheEndpoint]{Items: []api.CacheEndpoint{}}, nil
		}
	}
	o := s.cacheEndpoints()
	if in.Account != "" {
		o.account = nil // it is one that the caller sees
	}
	// A page may hold less than its limit, for the store does not know technologies.
	o.list = func(ctx context.Context, p store.PageOptions) (store.Listing[fleet.CacheEndpoint], error) {
		l, err := s.Records.CacheEndpoints(ctx, in.Account, p)
		l.Items = slices.DeleteFunc(l.Items, func(v store.Versioned[fleet.CacheEndpoint]) bool {
			return in.Technology != "" && v.Value.Technology != in.Technology
		})
		return l, err
	}
	return listObjects(s, o)(ctx, &in.PageInput)
}
