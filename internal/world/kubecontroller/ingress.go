package kubecontroller

import (
	"crypto/tls"
	"encoding/json"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

// ingress answers for the hosts of all instances, at one address.
type ingress struct {
	address string
	ca      *world.CA
	dns     *world.DNS
	web     *http.Server
	self    tls.Certificate // signed by an authority that nobody trusts

	mu           sync.Mutex
	routes       map[key]route
	hosts        map[string]key // whose a host is: of the one that named it first
	certificates map[string]tls.Certificate
}

// route is what an instance's hosts lead to; zero: it has none.
type route struct {
	hosts                             []string
	account, version                  string
	up                                bool
	selfSigned, unrouted, unpublished bool
}

func startIngress(ca *world.CA, dns *world.DNS) (*ingress, error) {
	strange, err := world.NewCA()
	if err != nil {
		return nil, err
	}
	certificate, err := strange.Issue("ingress.invalid")
	if err != nil {
		return nil, err
	}
	listeners, err := listen()
	if err != nil {
		return nil, err
	}
	i := &ingress{
		address: listeners[0].Addr().String(), ca: ca, dns: dns,
		routes: map[key]route{}, hosts: map[string]key{}, certificates: map[string]tls.Certificate{},
	}
	if i.self, err = certificate.TLS(); err != nil {
		return nil, err
	}
	i.web = &http.Server{
		Handler: http.HandlerFunc(i.answer), ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute,
		ErrorLog:  log.New(io.Discard, "", 0), // clients that refuse a certificate are part of the play
		TLSConfig: &tls.Config{GetCertificate: i.certificate, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}},
	}
	for _, l := range listeners {
		go func() { _ = i.web.ServeTLS(l, "", "") }() // ends by close
	}
	return i, nil
}

// listen takes one port at two addresses, so that two regions can lead to different ones.
func listen() (both [2]net.Listener, err error) {
	for range 20 {
		if both[0], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			return both, err
		}
		_, port, _ := net.SplitHostPort(both[0].Addr().String())
		if both[1], err = net.Listen("tcp", net.JoinHostPort("127.0.0.2", port)); err == nil {
			return both, nil
		}
		_ = both[0].Close()
	}
	return both, err
}

func (i *ingress) close() error {
	i.mu.Lock()
	all := make([]key, 0, len(i.routes))
	for of := range i.routes {
		all = append(all, of)
	}
	i.mu.Unlock()
	for _, of := range all {
		i.route(of, route{})
	}
	return i.web.Close()
}

var loopback = netip.MustParseAddr("127.0.0.1")

// route makes an instance's hosts lead to r and nowhere else.
func (i *ingress) route(of key, r route) {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.routes[of]
	for _, host := range before.hosts {
		if i.hosts[host] == of && !slices.Contains(r.hosts, host) {
			delete(i.hosts, host)
			i.publish(host, false)
		}
	}
	for _, host := range r.hosts {
		if owner, taken := i.hosts[host]; taken && owner != of {
			continue
		}
		i.hosts[host] = of
		if !slices.Contains(before.hosts, host) || before.unpublished != r.unpublished {
			i.publish(host, !r.unpublished)
		}
	}
	i.routes[of] = r
	if len(r.hosts) == 0 {
		delete(i.routes, of)
	}
}

// publish puts a host into DNS, or makes it not exist there.
func (i *ingress) publish(host string, there bool) {
	switch {
	case i.dns == nil:
	case there:
		i.dns.Remove(host) // it may be hidden
		i.dns.Set(host, loopback)
	default:
		i.dns.Remove(host)
		i.dns.Hide(host)
	}
}

// find returns what a host leads to.
func (i *ingress) find(host string) (route, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	of, known := i.hosts[strings.ToLower(host)]
	return i.routes[of], known
}

// certificate is that of the host, made when it is asked for first.
func (i *ingress) certificate(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	host := strings.ToLower(hello.ServerName)
	r, known := i.find(host)
	if !known || r.selfSigned {
		return &i.self, nil
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	c, made := i.certificates[host]
	if !made {
		issued, err := i.ca.Issue(host)
		if err != nil {
			return nil, err
		}
		if c, err = issued.TLS(); err != nil {
			return nil, err
		}
		i.certificates[host] = c
	}
	return &c, nil
}

// up is what /up answers.
type up struct {
	Status  string `json:"status"`
	Version string `json:"version,omitempty"`
	Account string `json:"account,omitempty"`
}

func (i *ingress) answer(w http.ResponseWriter, r *http.Request) {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	to, known := i.find(host)
	switch {
	case !known || to.unrouted:
		say(w, http.StatusNotFound, up{Status: "default backend"})
	case !to.up:
		say(w, http.StatusServiceUnavailable, up{Status: "no pod is ready"})
	case r.URL.Path == "/up" || r.URL.Path == "/ready":
		say(w, http.StatusOK, up{Status: "ok", Version: to.version, Account: to.account})
	default:
		say(w, http.StatusNotFound, up{Status: "not found"})
	}
}

func say(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // the client may be gone
}
