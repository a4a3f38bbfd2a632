package fleet

import (
	"maps"
	"slices"
	"time"
)

// ServerStatus is the projected status of a server.
type ServerStatus string

// Server statuses.
const (
	StatusProvisioning ServerStatus = "provisioning"
	StatusActive       ServerStatus = "active"
	StatusFailed       ServerStatus = "failed"
	StatusDestroying   ServerStatus = "destroying"
	StatusDestroyed    ServerStatus = "destroyed"
)

// Verdict is the one word that the API and Terraform show of a server.
type Verdict string

// Verdicts, in order of precedence.
const (
	VerdictDestroying  Verdict = "destroying"
	VerdictUnobserved  Verdict = "unobserved"
	VerdictStalled     Verdict = "stalled"
	VerdictFailed      Verdict = "failed"
	VerdictConverged   Verdict = "converged"
	VerdictAbsent      Verdict = "absent"  // only in a region that observes
	VerdictDrifted     Verdict = "drifted" // only in a region that observes
	VerdictHeld        Verdict = "held"
	VerdictProgressing Verdict = "progressing"
)

// Status is what was projected of a server from its intent and from what was last
// observed. Only a turn writes it, with a comparison of the intent's revision (P17).
type Status struct {
	Status        ServerStatus `json:"status"`
	Reason        Reason       `json:"reason,omitempty"` // always set when failed (P20)
	Message       string       `json:"message,omitempty"`
	Verdict       Verdict      `json:"verdict"`
	VerdictReason Reason       `json:"verdict_reason,omitempty"`

	// Generation and Revision are the intent's generation and the manifest revision
	// that this status was projected from.
	Generation int64  `json:"generation"`
	Revision   string `json:"revision,omitempty"`

	// Served facts: set by P5, kept until the server is destroyed.
	ServingImageTag string `json:"serving_image_tag,omitempty"`
	PublishedURL    string `json:"published_url,omitempty"`
	// Withheld is why clients are not led to the published url: its host is somebody else's (D3).
	Withheld Reason `json:"withheld,omitempty"`
	// Aliases are the hosts that stay routed after a move (H8).
	Aliases []Alias `json:"aliases,omitempty"`

	// Adopted are the containers without labels that are the server's, by service. A
	// request to adopt writes it, in one transaction with the intent; a turn forgets those
	// that are gone.
	Adopted map[string]Adoption `json:"adopted,omitempty"`
	// AdoptedResource is the KuraInstance of somebody else that was taken over (K6).
	AdoptedResource *KubeAdoption `json:"adopted_resource,omitempty"`

	ObservedImageTag string      `json:"observed_image_tag,omitempty"`
	Containers       []Container `json:"containers,omitempty"`
	// Resource is the KuraInstance as last seen.
	Resource *KubeInstance `json:"resource,omitempty"`
	// RollOut is what was applied to it and is not known to be rolled out; nil: nothing.
	RollOut *KubeRollOut `json:"roll_out,omitempty"`
	// Altered is what the cluster's admission made of what was applied last (K10).
	Altered    []Alteration `json:"altered,omitempty"`
	Conditions []Condition  `json:"conditions"`
	Holds      []Hold       `json:"holds,omitempty"`

	// Runtime is the work of the track of that name, Tracks that of all others.
	Runtime Work            `json:"runtime,omitzero"`
	Tracks  map[Track]*Work `json:"tracks,omitempty"`

	// Settled is the last generation and revision at which P5 held.
	Settled Settled `json:"settled,omitzero"`
	// ConvergedAt is when the image and the document were first seen equal; only a
	// probe begun after it can make the server active.
	ConvergedAt *time.Time `json:"converged_at,omitempty"`
	// VolumesRemoved says that a destroy plan has removed the server's volumes.
	VolumesRemoved bool `json:"volumes_removed,omitempty"`

	// Outage is what is known of containers that served last and do not run.
	Outage Outage `json:"outage,omitzero"`

	Clock StallClock `json:"clock,omitzero"`
	// Admitted says that a place of the region's max_unsettled was given to this
	// server for its present cause (G4).
	Admitted bool `json:"admitted,omitempty"`
	// Crashes counts quick exits by service (C11).
	Crashes map[string]CrashCount `json:"crashes,omitempty"`
}

// Alias is an old host that stays routed until a time.
type Alias struct {
	Host  string     `json:"host"`
	Until *time.Time `json:"until,omitempty"` // nil: until the new host serves
	// Ended says that the time is over. The host is nobody else's until the instance was
	// seen not to route it any more.
	Ended bool `json:"ended,omitempty"`
}

// Settled names what a server last converged to.
type Settled struct {
	Generation int64  `json:"generation"`
	Revision   string `json:"revision"`
}

// Refusal is a runtime's refusal of a task.
type Refusal struct {
	Reason     Reason    `json:"reason"`
	Message    string    `json:"message"`
	Task       string    `json:"task"`
	Generation int64     `json:"generation"`
	Revision   string    `json:"revision"`
	At         time.Time `json:"at"`
}

// StallClock counts the time that a server has been unsettled for one cause (P10).
type StallClock struct {
	Cause Cause `json:"cause,omitempty"`
	// Accrued is what was counted before the clock last stopped.
	Accrued Duration `json:"accrued,omitempty"`
	// Since is when the clock last started; nil while it stands.
	Since *time.Time `json:"since,omitempty"`
	// Expired says that the clock has passed the region's stall_after.
	Expired bool `json:"expired,omitempty"`
}

// Outage is the course of what served last, where it does not run (C14).
type Outage struct {
	// Interrupted are the services that a plan stopped, and that it came to an end before
	// it had started anything in their place: they are put back whatever holds.
	Interrupted []string `json:"interrupted,omitempty"`
	Course
}

// CrashCount counts exits within 10 s of a start (C11).
type CrashCount struct {
	Quick        int       `json:"quick"`
	LastFinished time.Time `json:"last_finished"` // by the engine's clock: tells exits apart
	SeenAt       time.Time `json:"seen_at"`       // by ours: restarts back off from here
	// RunningSince is when the service was first seen running after the last exit.
	RunningSince *time.Time `json:"running_since,omitempty"`
}

// CrashLoopFrom is how many exits within 10 s of a start make a crash loop (C11).
const CrashLoopFrom = 3

// Loops reports whether the service is in a crash loop.
func (c CrashCount) Loops() bool { return c.Quick >= CrashLoopFrom }

// Restarts reports whether the plan does nothing but start again what is in a crash loop: that
// is no news, and will be done as long as it does not stay up (G12).
func (s *Status) Restarts(p *Plan) bool {
	return p != nil && p.Cause == CauseOutage && s.Outage.Failing == nil && !slices.ContainsFunc(p.Tasks, func(t Task) bool {
		return t.Kind != TaskStart || !s.Crashes[t.Service].Loops()
	})
}

// HoldKind is why nothing may be changed now.
type HoldKind string

// Holds.
const (
	HoldPaused    HoldKind = "paused"    // server, region or daemon
	HoldObserve   HoldKind = "observe"   // the region only observes (S10)
	HoldAdmission HoldKind = "admission" // max_unsettled is reached (G4)
	HoldOwnership HoldKind = "ownership" // the new url belongs to somebody else (D3)
	HoldAdoption  HoldKind = "adoption"  // what was taken over would be changed, and nobody has applied that yet (K6)
)

// Hold is a reason why nothing may be changed now.
type Hold struct {
	Kind    HoldKind `json:"kind"`
	Message string   `json:"message"`
}

// ConditionStatus is True, False or Unknown.
type ConditionStatus string

// Condition statuses.
const (
	True    ConditionStatus = "True"
	False   ConditionStatus = "False"
	Unknown ConditionStatus = "Unknown"
)

// Condition is one observed aspect of a server. LastTransitionTime moves only with
// the status.
type Condition struct {
	Type               ConditionType   `json:"type"`
	Status             ConditionStatus `json:"status"`
	Reason             Reason          `json:"reason"`
	Message            string          `json:"message,omitempty"`
	ObservedGeneration int64           `json:"observed_generation"`
	LastTransitionTime time.Time       `json:"last_transition_time"`
}

// Clone returns a copy that shares nothing which a turn changes in place: lists, maps
// and plans. What their elements point to is only ever replaced.
func (s Status) Clone() Status {
	s.Aliases = slices.Clone(s.Aliases)
	s.Containers = slices.Clone(s.Containers)
	s.Conditions = slices.Clone(s.Conditions)
	s.Holds = slices.Clone(s.Holds)
	s.Crashes = maps.Clone(s.Crashes)
	s.Adopted = maps.Clone(s.Adopted)
	s.Outage.Course = s.Outage.clone()
	s.Runtime, s.Tracks = s.Runtime.Clone(), maps.Clone(s.Tracks)
	for track, w := range s.Tracks {
		c := w.Clone()
		s.Tracks[track] = &c
	}
	return s
}
