package kubernetes

import (
	"mime"
	"net/http"
	"slices"
	"strings"
)

// Call is one request to the API server.
type Call struct {
	// Verb is as in a Role: get, list, watch, create, update, patch, delete,
	// deletecollection; or "" for paths that are no resources (Path then says which).
	Verb string
	// Apply says that the patch is a server-side apply.
	Apply bool
	// Group, Resource, Namespace and Name are "" where the path has none.
	Group, Resource, Subresource, Namespace, Name string
	Path                                          string
	// Status is what was answered; 0: nothing.
	Status int
}

// Write says that the call would change something.
func (c Call) Write() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, c.Verb)
}

// Brings says that the call is to bring an object to its document: it makes or applies it.
func (c Call) Brings() bool { return c.Apply || c.Verb == "create" }

// Watch says that the call waits for changes.
func (c Call) Watch() bool { return c.Verb == "watch" }

// callOf reads what a request asks for out of its path, as the API server does.
func callOf(r *http.Request) Call {
	c := Call{Path: r.URL.Path}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		c.Group, parts = parts[1], parts[3:]
	default:
		return c
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		c.Namespace, parts = parts[1], parts[2:]
	}
	for i, field := range []*string{&c.Resource, &c.Name, &c.Subresource} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		watch := r.URL.Query().Get("watch")
		switch {
		case watch != "" && watch != "false" && watch != "0":
			c.Verb = "watch"
		case c.Name == "":
			c.Verb = "list"
		default:
			c.Verb = "get"
		}
	case http.MethodPost:
		c.Verb = "create"
	case http.MethodPut:
		c.Verb = "update"
	case http.MethodPatch:
		c.Verb = "patch"
		kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
		c.Apply = strings.HasPrefix(kind, "application/apply-patch")
	case http.MethodDelete:
		c.Verb = "delete"
		if c.Name == "" {
			c.Verb = "deletecollection"
		}
	}
	return c
}
