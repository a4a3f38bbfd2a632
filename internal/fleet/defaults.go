package fleet

import (
	"maps"
	"time"
)

// Defaults of a region.
const (
	DefaultStallAfter   = Duration(15 * time.Minute)
	DefaultMaxUnsettled = 10

	DefaultReadinessPath = "/up"
	// MaxReadinessTimeout is the default too: 5 s for the whole probe (R1).
	MaxReadinessTimeout = Duration(5 * time.Second)

	DefaultNamespace = "kura"

	DefaultProtocol    = "tcp"
	DefaultStopSignal  = "SIGTERM"
	DefaultGracePeriod = Duration(30 * time.Second)

	DefaultSidecarReadyPath     = "/v0/healthz"
	DefaultSidecarMarkReadyPath = "/v0/mark-ready"
	DefaultSidecarTimeout       = Duration(2 * time.Second)
)

// WithDefaults returns the region with every default filled in; r itself is left
// as it is. What depends on something else stays empty: a display name, the port of
// the probe (Render takes the public port's) and an assigned host port.
func (r Region) WithDefaults() Region {
	r.ClusterID = r.Cluster()
	r.Readiness = r.Readiness.withDefaults()
	fill(&r.DNS.Mode, DNSNone)
	fill(&r.StallAfter, DefaultStallAfter)
	fill(&r.MaxUnsettled, DefaultMaxUnsettled)
	fill(&r.Remediation, RemediationHeal)
	if r.Sidecar != nil {
		s := *r.Sidecar
		fill(&s.ReadyPath, DefaultSidecarReadyPath)
		fill(&s.MarkReadyPath, DefaultSidecarMarkReadyPath)
		fill(&s.Scheme, SchemeHTTP)
		fill(&s.Timeout, DefaultSidecarTimeout)
		r.Sidecar = &s
	}
	if r.Kubernetes != nil {
		k := *r.Kubernetes
		fill(&k.Namespace, DefaultNamespace)
		r.Kubernetes = &k
	}
	if r.Containers != nil {
		c := *r.Containers
		fill(&c.Pull, PullMissing)
		c.Services = maps.Clone(c.Services)
		for name, s := range c.Services {
			c.Services[name] = s.withDefaults()
		}
		r.Containers = &c
	}
	return r
}

func (r Readiness) withDefaults() Readiness {
	fill(&r.Path, DefaultReadinessPath)
	fill(&r.Scheme, SchemeHTTPS)
	fill(&r.Timeout, MaxReadinessTimeout)
	fill(&r.Global, GlobalRequired)
	return r
}

func (s Service) withDefaults() Service {
	fill(&s.StopSignal, DefaultStopSignal)
	fill(&s.GracePeriod, DefaultGracePeriod)
	s.Ports = maps.Clone(s.Ports)
	for name, p := range s.Ports {
		fill(&p.Protocol, DefaultProtocol)
		s.Ports[name] = p
	}
	return s
}

func fill[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
