package fleet

import "time"

// Observation is what was seen of a server, each part with its own time.
type Observation struct {
	Instance  InstanceObservation
	Endpoint  ProbeObservation // of the declared public url
	Published ProbeObservation // of the published url, where it differs from the declared one
	Global    ProbeObservation // of the declared global url, where the region declares one
	// Hosts are the newest reads of the records of every host that the server leads clients to,
	// and of every other whose ownership record names it. None where dns.mode is "none".
	Hosts map[string]HostRead
	// Tracks are what the observers of tracks beside the runtime saw, each in its track's own
	// type.
	Tracks map[Track]any
}

// InstanceObservation is the newest read of a server's instance.
type InstanceObservation struct {
	// Begun is when the last read that answered began; zero: none has answered.
	Begun time.Time
	// Unreadable is set while the newest read did not answer (P2). What the last
	// good read saw stays.
	Unreadable *ReadFailure
	// Containers are all containers on the endpoint that bear one of the server's
	// names or its labels, sorted by name.
	Containers []Container
	// Resource is the KuraInstance of the server's name; nil: there is none.
	Resource *KubeInstance
	// Direct says that the runtime itself was asked, and not what a watch has made known.
	// Only such a read may say that a destroyed server is gone (P18).
	Direct bool
}

// ReadFailure says why a read did not answer about this object.
type ReadFailure struct {
	Reason  Reason
	Message string
	Since   time.Time
	Count   int // consecutive failures; kept in memory
}

// ContainerState is the state of a container as the engine tells it.
type ContainerState string

// Container states; what the engine calls otherwise is mapped to the nearest.
const (
	ContainerCreated ContainerState = "created"
	ContainerRunning ContainerState = "running"
	ContainerPaused  ContainerState = "paused" // it has processes, and none of them goes on
	ContainerExited  ContainerState = "exited"
)

// Alive reports whether the container has processes: it holds its ports, and has to be
// stopped before it is removed.
func (s ContainerState) Alive() bool { return s == ContainerRunning || s == ContainerPaused }

// Container is one observed container.
type Container struct {
	Service string         `json:"service"`           // from its label; "" when it is not ours
	Account string         `json:"account,omitempty"` // whose it is, from its labels
	Region  string         `json:"region,omitempty"`
	Name    string         `json:"name"`
	ID      string         `json:"id"`
	Image   string         `json:"image"`
	State   ContainerState `json:"state"`
	Digest  string         `json:"digest,omitempty"` // of the document it was made from (C3)
	Ports   map[string]int `json:"ports,omitempty"`  // published host ports by "<container port>/<protocol>"
	// Foreign is set where the container is not ours (C7): it names whose it is.
	Foreign string `json:"foreign,omitempty"`
	// Adopted says that the container carries no labels and is the server's by its
	// recorded id.
	Adopted bool `json:"adopted,omitempty"`
	// RestartMark is the label of that name: what a redeploy changed in the document.
	RestartMark string `json:"-"`
	// Exit facts of a container that is not running.
	ExitCode int        `json:"exit_code,omitempty"`
	Started  *time.Time `json:"started_at,omitempty"`
	Finished *time.Time `json:"finished_at,omitempty"`
}

// Ran reports whether the container was ever started.
func (c Container) Ran() bool { return c.State != ContainerCreated || c.Started != nil }

// ProbeTarget is one endpoint to probe.
type ProbeTarget struct {
	URL     string        // the declared url, for example https://acme-eu.kura.example.dev
	Path    string        // appended to URL, for example /up
	Timeout time.Duration // of the whole probe; 0 or more than five seconds: those (R1)
	// Foreign is an endpoint of which nothing is known but its url: a status below 500
	// shows that it answers, for what it says to a stranger may well be 401 or 404.
	Foreign bool
}

// Name tells a server's endpoints apart.
func (t ProbeTarget) Name() string { return t.URL }

// ProbeObservation is the newest answer of an endpoint (R1).
type ProbeObservation struct {
	URL     string
	Begun   time.Time // zero: never probed
	Ready   bool
	Reason  Reason // Ready, NotResolvable, ConnectFailed, TLSNotReady, HTTPNotReady, Timeout
	Message string
}

// State is what of the answer is news when it differs.
func (p ProbeObservation) State() (ready bool, reason Reason) { return p.Ready, p.Reason }
