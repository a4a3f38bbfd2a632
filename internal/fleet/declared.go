package fleet

import "cmp"

// Account is a tenant. ID is permanent and names everything that must survive a
// rename; Handle is public and appears only in host names (H5, H8).
type Account struct {
	ID                 string            `json:"id"`
	Handle             string            `json:"handle,omitempty"` // empty: the id
	Labels             map[string]string `json:"labels,omitempty"`
	DeletionProtection bool              `json:"deletion_protection,omitempty"`
}

// PublicHandle returns the handle that appears in hosts: the declared one, or the id.
func (a Account) PublicHandle() string {
	if a.Handle != "" {
		return a.Handle
	}
	return a.ID
}

// Names are what no other account may have as its id or handle (H5).
func (a Account) Names() []string {
	if a.PublicHandle() == a.ID {
		return []string{a.ID}
	}
	return []string{a.ID, a.Handle}
}

// HostTemplate is a pattern such as
// {account_handle}-{cluster_id}{env_suffix}.kura.example.dev (H2).
type HostTemplate struct {
	Name    string `json:"name"`
	Pattern string `json:"pattern"`
}

// Remediation says whether the daemon may start work by itself (S10).
type Remediation string

// Remediations.
const (
	RemediationHeal    Remediation = "heal"    // the daemon corrects drift
	RemediationObserve Remediation = "observe" // the daemon shows what it would do; what a user declares still runs
)

// RuntimeKind is what runs servers in a region.
type RuntimeKind string

// Runtime kinds.
const (
	RuntimeKubernetes RuntimeKind = "kubernetes"
	RuntimeContainers RuntimeKind = "containers"
)

// Region is where servers run: cluster id, runtime, host templates, probe, DNS
// policy and workload document. Exactly one of Kubernetes and Containers is set.
type Region struct {
	Name               string            `json:"name"`
	DisplayName        string            `json:"display_name,omitempty"`
	ClusterID          string            `json:"cluster_id,omitempty"` // empty: the name
	Hosts              RegionHosts       `json:"hosts"`
	Location           *Location         `json:"location,omitempty"`
	Readiness          Readiness         `json:"readiness,omitzero"`
	DNS                DNS               `json:"dns,omitzero"`
	StallAfter         Duration          `json:"stall_after,omitempty"`   // 0: DefaultStallAfter
	MaxUnsettled       int               `json:"max_unsettled,omitempty"` // 0: DefaultMaxUnsettled
	Remediation        Remediation       `json:"remediation,omitempty"`   // empty: heal
	Paused             bool              `json:"paused,omitempty"`
	Cordoned           bool              `json:"cordoned,omitempty"` // no new servers
	Labels             map[string]string `json:"labels,omitempty"`
	DeletionProtection bool              `json:"deletion_protection,omitempty"`
	Sidecar            *Sidecar          `json:"sidecar,omitempty"`
	Kubernetes         *Kubernetes       `json:"kubernetes,omitempty"`
	Containers         *Containers       `json:"containers,omitempty"`
}

// Cluster returns the cluster id: the declared one, or the region's name.
func (r Region) Cluster() string {
	if r.ClusterID != "" {
		return r.ClusterID
	}
	return r.Name
}

// Runtime returns the kind of the region's runtime.
func (r Region) Runtime() RuntimeKind {
	if r.Kubernetes != nil {
		return RuntimeKubernetes
	}
	return RuntimeContainers
}

// Target names what holds the region's instances; instance names are unique
// within it (H4).
func (r Region) Target() string {
	if r.Kubernetes != nil {
		return "kubernetes/" + r.Kubernetes.Cluster + "/" + cmp.Or(r.Kubernetes.Namespace, DefaultNamespace)
	}
	if r.Containers != nil {
		return "containers/" + r.Containers.Endpoint
	}
	return ""
}

// RegionHosts names the host templates of a region. Public is required.
type RegionHosts struct {
	Public string `json:"public"`
	GRPC   string `json:"grpc,omitempty"`
	Global string `json:"global,omitempty"`
}

// Location is where a region is, in degrees; a load balancer steers by it.
type Location struct {
	Latitude  float64 `json:"latitude"`
	Longitude float64 `json:"longitude"`
}

// Schemes of a probe and of a declared url.
const (
	SchemeHTTPS = "https"
	SchemeHTTP  = "http"
)

// Gates of a region's global endpoint (R2).
const (
	GlobalRequired = "required"
	GlobalAdvisory = "advisory"
)

// Readiness is how a region's endpoints are probed (R1). Zero values take the
// defaults of WithDefaults.
type Readiness struct {
	Path    string   `json:"path,omitempty"`    // default /up
	Scheme  string   `json:"scheme,omitempty"`  // https (default) or http
	Port    int      `json:"port,omitempty"`    // default: the public port; 443 or 80 in a Kubernetes region
	Timeout Duration `json:"timeout,omitempty"` // the whole probe; default and maximum 5 s
	Global  string   `json:"global,omitempty"`  // required (default) or advisory
}

// DNSMode says who publishes records (D3, D4).
type DNSMode string

// DNS modes.
const (
	DNSNone        DNSMode = "none"         // the operator's business: ownership is not checked
	DNSExternalDNS DNSMode = "external-dns" // external-dns publishes, kurad verifies
	DNSManaged     DNSMode = "managed"      // kurad publishes
)

// DNS is a region's DNS policy.
type DNS struct {
	Mode    DNSMode `json:"mode,omitempty"` // empty: none
	OwnerID string  `json:"owner_id,omitempty"`
	Target  string  `json:"target,omitempty"`
}

// Sidecar is probed beside each replica (S1).
type Sidecar struct {
	Port          int      `json:"port"`
	ReadyPath     string   `json:"ready_path,omitempty"`      // default /v0/healthz
	MarkReadyPath string   `json:"mark_ready_path,omitempty"` // default /v0/mark-ready
	Scheme        string   `json:"scheme,omitempty"`          // default http
	Timeout       Duration `json:"timeout,omitempty"`         // default 2 s
}

// Kubernetes describes a region whose servers are KuraInstance resources.
type Kubernetes struct {
	Cluster        string            `json:"cluster"`
	Namespace      string            `json:"namespace,omitempty"` // default kura
	Image          string            `json:"image"`
	Replicas       int               `json:"replicas,omitempty"`
	Storage        *Storage          `json:"storage,omitempty"`
	IngressClass   string            `json:"ingress_class,omitempty"`
	NodeSelector   map[string]string `json:"node_selector,omitempty"`
	Tolerations    []Toleration      `json:"tolerations,omitempty"`
	Env            map[string]string `json:"env,omitempty"`
	EnvFrom        []string          `json:"env_from,omitempty"`
	ExtraSpec      string            `json:"extra_spec,omitempty"`
	ForceConflicts bool              `json:"force_conflicts,omitempty"`
	DeleteOrphans  bool              `json:"delete_orphans,omitempty"`
}

// Storage is the volume of a Kubernetes server.
type Storage struct {
	Class string `json:"class,omitempty"`
	Size  string `json:"size,omitempty"`
}

// Toleration is a Kubernetes toleration.
type Toleration struct {
	Key      string `json:"key,omitempty"`
	Operator string `json:"operator,omitempty"`
	Value    string `json:"value,omitempty"`
	Effect   string `json:"effect,omitempty"`
}

// PullPolicy says when an image is pulled.
type PullPolicy string

// Pull policies.
const (
	PullMissing PullPolicy = "missing" // default
	PullAlways  PullPolicy = "always"
	PullNever   PullPolicy = "never"
)

// Containers describes a region whose servers are containers on one endpoint.
type Containers struct {
	Endpoint string             `json:"endpoint"` // a --container-endpoint of the daemon
	Pull     PullPolicy         `json:"pull,omitempty"`
	Services map[string]Service `json:"services"`
}

// Service is one container of a server. Strings may hold host tokens and
// {image_tag} {account} {environment} {instance} {public_host} {port:<name>};
// {{ is a brace.
type Service struct {
	Image       string            `json:"image"`
	Command     []string          `json:"command,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	EnvFrom     []string          `json:"env_from,omitempty"` // names of variable sets the daemon was given
	Volumes     []Volume          `json:"volumes,omitempty"`
	Ports       map[string]Port   `json:"ports,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	User        string            `json:"user,omitempty"`
	Memory      string            `json:"memory,omitempty"` // such as 256Mi
	CPUs        float64           `json:"cpus,omitempty"`
	StopSignal  string            `json:"stop_signal,omitempty"`  // default SIGTERM
	GracePeriod Duration          `json:"grace_period,omitempty"` // default 30 s
}

// Volume is a named volume (Name) or a path of the host (HostPath).
type Volume struct {
	Name     string `json:"name,omitempty"`
	HostPath string `json:"host_path,omitempty"`
	Path     string `json:"path"`
	ReadOnly bool   `json:"read_only,omitempty"`
	Retain   bool   `json:"retain,omitempty"` // keep the named volume when the server is destroyed
}

// What a port serves.
const (
	EndpointPublic = "public"
	EndpointGRPC   = "grpc"
)

// Port publishes a port of a container. Host 0 is assigned by the daemon (C12).
type Port struct {
	Container int    `json:"container"`
	Host      int    `json:"host,omitempty"`
	Bind      string `json:"bind,omitempty"`     // default: the endpoint's address
	Protocol  string `json:"protocol,omitempty"` // tcp (default) or udp
	Endpoint  string `json:"endpoint,omitempty"` // public, grpc or none
}

// Server is what a user declares of one account in one region.
type Server struct {
	Account            string            `json:"account"`
	Region             string            `json:"region"`
	ImageTag           string            `json:"image_tag"`
	Overrides          *Overrides        `json:"overrides,omitempty"`
	Labels             map[string]string `json:"labels,omitempty"`
	Remediation        Remediation       `json:"remediation,omitempty"` // empty: the region's
	Paused             bool              `json:"paused,omitempty"`
	DeletionProtection bool              `json:"deletion_protection,omitempty"`
}

// Key returns the identity of the server.
func (s Server) Key() ServerKey { return ServerKey{Account: s.Account, Region: s.Region} }

// Overrides change a region's document for one server.
type Overrides struct {
	Containers *ContainerOverrides  `json:"containers,omitempty"`
	Kubernetes *KubernetesOverrides `json:"kubernetes,omitempty"`
}

// ContainerOverrides change services of a container region.
type ContainerOverrides struct {
	Services map[string]ServiceOverride `json:"services,omitempty"`
}

// ServiceOverride adds variables (by key) and replaces limits.
type ServiceOverride struct {
	Env    map[string]string `json:"env,omitempty"`
	Memory string            `json:"memory,omitempty"`
	CPUs   float64           `json:"cpus,omitempty"`
}

// KubernetesOverrides change a Kubernetes region's document.
type KubernetesOverrides struct {
	Replicas    int               `json:"replicas,omitempty"`
	StorageSize string            `json:"storage_size,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
}

// ServerKey is the identity of a server.
type ServerKey struct {
	Account string `json:"account"`
	Region  string `json:"region"`
}

// String returns account/region.
func (k ServerKey) String() string { return k.Account + "/" + k.Region }
