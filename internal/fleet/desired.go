package fleet

// Desired is what a server should be: everything rendered from its intent, account,
// region, templates and latest deployment by Render, the one pure function that
// create, update, check and dry run share (P13).
type Desired struct {
	Instance  string // kura-<account id>-<cluster id> (H6)
	Hosts     Hosts
	URL       string // declared public url
	GRPCURL   string
	GlobalURL string
	ImageTag  string
	// Revision is the hash of the canonical document (P13).
	Revision string
	// Containers is the document of a container region.
	Containers *ContainerDocument
	// Kubernetes is the document of a Kubernetes region.
	Kubernetes *KubeDocument
}

// Hosts are the rendered host names; empty where the region declares none.
type Hosts struct {
	Public string `json:"public"`
	GRPC   string `json:"grpc,omitempty"`
	Global string `json:"global,omitempty"`
}

// ContainerDocument is the rendered document of a server of a container region.
type ContainerDocument struct {
	Endpoint string
	Pull     PullPolicy
	Services []ServiceDocument // sorted by service
}

// ServiceDocument is one rendered container. Everything but Digest and Pull is in
// the digest; order of unordered inputs is not.
type ServiceDocument struct {
	Service     string            `json:"service"`
	Name        string            `json:"name"` // <instance>-<service><env suffix> (H6)
	Image       string            `json:"image"`
	Carrier     bool              `json:"carrier"` // its image holds {image_tag}
	Command     []string          `json:"command,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
	EnvFrom     []string          `json:"env_from,omitempty"`
	Volumes     []VolumeDocument  `json:"volumes,omitempty"`
	Ports       []PortDocument    `json:"ports,omitempty"` // sorted by name
	Labels      map[string]string `json:"labels,omitempty"`
	User        string            `json:"user,omitempty"`
	MemoryBytes int64             `json:"memory_bytes,omitempty"`
	CPUs        float64           `json:"cpus,omitempty"`
	StopSignal  string            `json:"stop_signal"`
	GracePeriod Duration          `json:"grace_period"`
	RestartMark string            `json:"restart_mark,omitempty"`

	Digest string     `json:"-"`
	Pull   PullPolicy `json:"-"`
}

// TemporaryName is the container's name while it waits to replace another (C4).
func (d ServiceDocument) TemporaryName() string { return d.Name + suffixNext }

// RetiredName is the name of the container that is being replaced, once stopped.
func (d ServiceDocument) RetiredName() string { return d.Name + suffixOld }

// VolumeDocument is a rendered mount. Source is the volume's name on the endpoint or
// a path of the host.
type VolumeDocument struct {
	Source   string `json:"source"`
	HostPath bool   `json:"host_path,omitempty"`
	Path     string `json:"path"`
	ReadOnly bool   `json:"read_only,omitempty"`
	Retain   bool   `json:"-"`
}

// PortDocument is a rendered published port.
type PortDocument struct {
	Name      string `json:"name"`
	Container int    `json:"container"`
	Host      int    `json:"host"`
	Bind      string `json:"bind,omitempty"`
	Protocol  string `json:"protocol"`
}

// Labels that every container of ours carries (C7).
const (
	LabelEnvironment = "dev.kura/environment"
	LabelAccount     = "dev.kura/account"
	LabelRegion      = "dev.kura/region"
	LabelService     = "dev.kura/service"
	LabelDigest      = "dev.kura/digest"
	LabelRetain      = "dev.kura/retain" // on volumes: "true" keeps them (C13)
	// LabelRestartMark is the mark of a redeploy (P12), by which a server that is declared
	// again after its record was lost renders to the container that runs.
	LabelRestartMark = "dev.kura/restart-mark"
)
