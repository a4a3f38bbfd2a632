package fleet

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
)

// Render renders what a server should be. It is the one renderer (P13): create,
// update, check and dry run all share it, and so agree. While there is no deployment the
// intent's image is rendered. A status says which old hosts are still to be routed (H8,
// K7). Account and region must be there.
//
// An error says that the declaration does not render: a template is missing, a host
// collides with another environment's, a port has not been assigned, or the daemon was
// not given a set of variables.
func Render(e Environment, g Gathered) (Desired, error) {
	a, r := *g.Account, g.Region.WithDefaults()
	latest := cmp.Or(g.Latest, new(Deployment))
	key := ServerKey{Account: a.ID, Region: r.Name}
	fault := func(err error) (Desired, error) {
		return Desired{}, &Error{Code: CodeInvalid, Message: fmt.Sprintf("server %s does not render", key), Err: err}
	}
	if err := e.usable(); err != nil {
		return fault(err)
	}
	d := Desired{ImageTag: cmp.Or(latest.ImageTag, g.Intent.ImageTag)}
	var err error
	if d.Instance, err = r.Instance(a.ID); err != nil {
		return fault(err)
	}
	if d.Hosts, err = renderHosts(e, a, r, g.Templates); err != nil {
		return fault(err)
	}
	doc := documents{env: e, account: a, region: r, intent: g.Intent, restartMark: latest.RestartMark, status: g.Status, desired: d}
	if r.Kubernetes != nil {
		d.urls(r, 0, 0)
		if d.Kubernetes, err = doc.kubernetes(); err != nil {
			return fault(err)
		}
		d.Revision = d.Kubernetes.Revision
		return d, nil
	}
	if r.Containers == nil {
		return fault(errors.New("the region has no runtime; declare kubernetes or containers"))
	}
	if d.Containers, err = doc.containers(); err != nil {
		return fault(err)
	}
	d.urls(r, doc.endpointHostPort(EndpointPublic), doc.endpointHostPort(EndpointGRPC))
	d.Revision, err = containersRevision(d.Containers)
	return d, err
}

// Remains is what is enough to find and to remove what is there of a server that is being
// destroyed and does not render any more (P18): names, how long a container may take to
// end, and which volumes stay.
func Remains(e Environment, account string, r Region) (Desired, error) {
	r = r.WithDefaults()
	instance, err := r.Instance(account)
	d := Desired{Instance: instance}
	switch {
	case err != nil:
		return Desired{}, err
	case r.Kubernetes != nil:
		d.Kubernetes = &KubeDocument{Cluster: r.Kubernetes.Cluster, Namespace: r.Kubernetes.Namespace, Name: instance}
	case r.Containers != nil:
		d.Containers = documents{env: e, region: r, desired: d}.remains()
	default:
		return Desired{}, errors.New("the region has no runtime")
	}
	return d, nil
}

func renderHosts(e Environment, a Account, r Region, templates map[string]HostTemplate) (Hosts, error) {
	input := HostInput{AccountHandle: a.PublicHandle(), ClusterID: r.ClusterID, Region: r.Name}
	var hosts Hosts
	for _, h := range []struct {
		field, template string
		host            *string
	}{
		{"public", r.Hosts.Public, &hosts.Public},
		{"grpc", r.Hosts.GRPC, &hosts.GRPC},
		{"global", r.Hosts.Global, &hosts.Global},
	} {
		if h.template == "" {
			continue
		}
		t, known := templates[h.template]
		if !known {
			return Hosts{}, fmt.Errorf("hosts.%s of region %q names host template %q, which does not exist; declare it or name another", h.field, r.Name, h.template)
		}
		var err error
		if *h.host, err = e.RenderHost(t.Pattern, input); err != nil {
			return Hosts{}, fmt.Errorf("host template %q: %w", t.Name, err)
		}
	}
	return hosts, nil
}

// urls fills in the declared urls. The port is the one of the probe where it is
// declared (a proxy in front), else the container's host port, else the scheme's.
// The global host leads straight to the servers of several regions, so its port is
// the public one.
func (d *Desired) urls(r Region, public, grpc int) {
	scheme := r.Readiness.Scheme
	public = cmp.Or(r.Readiness.Port, public)
	d.URL = endpointURL(scheme, d.Hosts.Public, public)
	d.GRPCURL = endpointURL(scheme, d.Hosts.GRPC, grpc)
	d.GlobalURL = endpointURL(scheme, d.Hosts.Global, public)
}

func endpointURL(scheme, host string, port int) string {
	if host == "" {
		return ""
	}
	if port == 0 || (scheme == SchemeHTTPS && port == 443) || (scheme == SchemeHTTP && port == 80) {
		return scheme + "://" + host
	}
	return scheme + "://" + net.JoinHostPort(host, strconv.Itoa(port))
}

// containersRevision hashes the digests of the services.
func containersRevision(doc *ContainerDocument) (string, error) {
	digests := map[string]string{}
	for _, s := range doc.Services {
		digests[s.Service] = s.Digest
	}
	return hash(digests)
}

// merge returns base with the entries of over.
func merge[V any](base, over map[string]V) map[string]V {
	if len(base) == 0 {
		return maps.Clone(over)
	}
	m := maps.Clone(base)
	maps.Copy(m, over)
	return m
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
