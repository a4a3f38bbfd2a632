package fleet

import "time"

// TaskKind is what a task does: one of a closed set, of which effect says all there is to know.
type TaskKind string

// Task kinds of the container runtime (C4). Each is idempotent.
const (
	// TaskPull makes the image Image of the document whose digest is Digest present.
	TaskPull TaskKind = "pull"
	// TaskCreate creates the container Name with the document whose digest is Digest,
	// together with the volumes it names, and takes nothing away. Like the pull before it, it
	// is what may fail, and costs nobody anything. Its result is the container's id.
	TaskCreate TaskKind = "create"
	// TaskStop stops ContainerID: its signal, its grace period, then SIGKILL (C6).
	TaskStop TaskKind = "stop"
	// TaskRename gives ContainerID the name Name.
	TaskRename TaskKind = "rename"
	// TaskStart starts ContainerID, or lets it go on where it is paused.
	TaskStart TaskKind = "start"
	// TaskRemove removes ContainerID, which does not run.
	TaskRemove TaskKind = "remove"
	// TaskRemoveVolumes removes the server's named volumes that are not retained (C13).
	TaskRemoveVolumes TaskKind = "remove-volumes"
)

// Task kinds of the Kubernetes runtime. Each is idempotent.
const (
	// TaskApply applies the desired document to the KuraInstance Name (K1). Where UID is
	// set, only to the object that has it.
	TaskApply TaskKind = "apply"
	// TaskDelete deletes the KuraInstance Name that has UID.
	TaskDelete TaskKind = "delete"
)

// Task kinds of DNS. Each is idempotent, and looks at what there is before it changes anything:
// nothing that is not ours is touched (D4).
const (
	// TaskPublish makes the host Name lead where DNS says, with its ownership record.
	TaskPublish TaskKind = "publish"
	// TaskWithdraw removes the records of the host Name, where they are of that owner and resource.
	TaskWithdraw TaskKind = "withdraw"
	// TaskJoin makes the pool of DNS, and it a pool of the load balancer of the host Name, which
	// it makes where there is none (D1).
	TaskJoin TaskKind = "join"
	// TaskLeave takes the pool out of the balancer, which goes with its last one, and removes it.
	TaskLeave TaskKind = "leave"
)

// Executor is who runs a kind of effects: each has slots of its own (P19).
type Executor string

// Executors.
const (
	ExecutorImages    Executor = "images"    // what brings images to an engine: a registry that hangs is none of its containers'
	ExecutorEngine    Executor = "engine"    // of containers
	ExecutorCluster   Executor = "cluster"   // of KuraInstances
	ExecutorRecords   Executor = "records"   // of DNS records
	ExecutorBalancers Executor = "balancers" // of load balancers and their pools
)

// Effect is what a task does to the world, with what it does it to.
type Effect struct {
	Kind    TaskKind `json:"kind"`
	Service string   `json:"service,omitempty"`
	Image   string   `json:"image,omitempty"`
	// Name is the container name that the task creates or gives.
	Name string `json:"name,omitempty"`
	// ContainerID is what the task acts on. Where an earlier task of the plan
	// creates the container, it is filled in from that task's outcome.
	ContainerID string `json:"container_id,omitempty"`
	// Adopted says that what ContainerID or UID names carries no labels of ours and is the
	// server's by its record.
	Adopted bool `json:"adopted,omitempty"`
	// CreatedBy is the id of the task whose outcome fills ContainerID.
	CreatedBy string    `json:"created_by,omitempty"`
	Digest    string    `json:"digest,omitempty"` // of the document to pull or create for; of TaskApply: the revision
	Grace     Duration  `json:"grace,omitempty"`  // of a stop
	UID       string    `json:"uid,omitempty"`    // of the object to apply to or to delete
	DNS       DNSChange `json:"dns,omitzero"`
}

// nature is what is known of a kind of effects.
type nature struct {
	executor Executor
	timeout  time.Duration
	words    string
}

// nature is the table of effects: who runs it, within what time, and what it does in words.
func (e Effect) nature() nature {
	on := e.Service + " container " + e.ContainerID[:min(len(e.ContainerID), 12)]
	switch e.Kind {
	case TaskPull:
		return nature{ExecutorImages, 10 * time.Minute, "pull image " + e.Image}
	case TaskCreate: // an engine may copy the whole image for it
		return nature{ExecutorEngine, 2 * time.Minute, "create container " + e.Name}
	case TaskStop:
		return nature{ExecutorEngine, e.Grace.Std() + 30*time.Second, "stop " + on}
	case TaskRename:
		return nature{ExecutorEngine, time.Minute, "rename" + on[len(e.Service):] + " to " + e.Name}
	case TaskStart:
		return nature{ExecutorEngine, time.Minute, "start " + on}
	case TaskRemove:
		return nature{ExecutorEngine, time.Minute, "remove " + on}
	case TaskRemoveVolumes:
		return nature{ExecutorEngine, time.Minute, "remove the server's volumes"}
	case TaskApply:
		return nature{ExecutorCluster, 30 * time.Second, "apply KuraInstance " + e.Name}
	case TaskDelete:
		return nature{ExecutorCluster, 30 * time.Second, "delete KuraInstance " + e.Name}
	case TaskPublish:
		return nature{ExecutorRecords, time.Minute, "publish " + e.Name + " as " + e.DNS.Type + " " + e.DNS.Content}
	case TaskWithdraw:
		return nature{ExecutorRecords, time.Minute, "withdraw the records of " + e.Name}
	case TaskJoin:
		return nature{ExecutorBalancers, time.Minute, "add pool " + e.DNS.Pool + " to the load balancer of " + e.Name}
	case TaskLeave:
		return nature{ExecutorBalancers, time.Minute, "take pool " + e.DNS.Pool + " out of the load balancer of " + e.Name}
	default: // of a kind that has an executor to itself
		return nature{Executor(e.Kind), time.Minute, string(e.Kind)}
	}
}

// Executor is who runs it.
func (e Effect) Executor() Executor { return e.nature().executor }

// Timeout is how long it may take: what its consequences are bounded by.
func (e Effect) Timeout() time.Duration { return e.nature().timeout }

// Describe says in a few words what it does.
func (e Effect) Describe() string { return e.nature().words }

// Cancellable reports whether it may be given up at any moment, and nobody waits for its end
// (S6): whatever an engine goes on doing for it afterwards, it does nothing to the server. An
// image that arrives late is one that lies there; no container is made of it.
func (e Effect) Cancellable() bool { return e.Executor() == ExecutorImages }
