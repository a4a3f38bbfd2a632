package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Registry serves images over plain HTTP on a loopback address: as much of the
// distribution API as a pull needs. Engines that pull from it are told so by
// Options.PlainRegistries.
type Registry struct {
	dir      string
	listener net.Listener
	server   *http.Server

	mu     sync.Mutex
	images map[string]descriptor // by "name:tag"
}

// descriptor names a stored manifest.
type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
}

// NewRegistry serves an empty registry that keeps its images in dir.
func NewRegistry(dir string) (*Registry, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("start a registry: %w", err)
	}
	r := &Registry{dir: dir, listener: l, images: map[string]descriptor{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v2/", r.serve)
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(l) }() // ends with Close
	return r, nil
}

// Addr returns host and port, the first part of the names of its images.
func (r *Registry) Addr() string { return r.listener.Addr().String() }

// Close ends the registry.
func (r *Registry) Close() error { return r.server.Close() }

// Add offers an image of engine e as name, such as "kura/cache:v1", and replaces what
// was offered under it.
func (r *Registry) Add(ctx context.Context, e *Engine, image, name string) error {
	saved, err := os.MkdirTemp(r.dir, "image")
	if err != nil {
		return err
	}
	if _, err := e.Podman(ctx, "save", "--format", "oci-dir", "--output", saved, image); err != nil {
		return err
	}
	var index struct {
		Manifests []descriptor `json:"manifests"`
	}
	b, err := os.ReadFile(filepath.Join(saved, "index.json"))
	if err == nil {
		err = json.Unmarshal(b, &index)
	}
	if err == nil && len(index.Manifests) != 1 {
		err = errors.New("its index does not hold one manifest")
	}
	if err != nil {
		return fmt.Errorf("offer image %s as %s: %w", image, name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.images[name] = index.Manifests[0]
	return nil
}

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	path := strings.TrimPrefix(req.URL.Path, "/v2/")
	if name, ref, ok := strings.Cut(path, "/manifests/"); ok {
		r.mu.Lock()
		d, known := r.images[name+":"+ref]
		r.mu.Unlock()
		switch {
		case known:
			w.Header().Set("Content-Type", d.MediaType)
			w.Header().Set("Docker-Content-Digest", d.Digest)
			r.blob(w, req, d.Digest)
		case strings.HasPrefix(ref, "sha256:"):
			w.Header().Set("Content-Type", "application/vnd.oci.image.manifest.v1+json")
			r.blob(w, req, ref)
		default:
			unknown(w, "MANIFEST_UNKNOWN", "manifest unknown")
		}
		return
	}
	if _, digest, ok := strings.Cut(path, "/blobs/"); ok {
		r.blob(w, req, digest)
		return
	}
	if path != "" {
		unknown(w, "UNSUPPORTED", "this registry only serves pulls")
	}
}

func (r *Registry) blob(w http.ResponseWriter, req *http.Request, digest string) {
	hex, ok := strings.CutPrefix(digest, "sha256:")
	if ok && !strings.ContainsAny(hex, "/.*?[\\") {
		found, err := filepath.Glob(filepath.Join(r.dir, "*", "blobs", "sha256", hex))
		if err == nil && len(found) > 0 {
			http.ServeFile(w, req, found[0])
			return
		}
	}
	unknown(w, "BLOB_UNKNOWN", "blob unknown")
}

func unknown(w http.ResponseWriter, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprintf(w, `{"errors":[{"code":%q,"message":%q}]}`, code, message)
}
