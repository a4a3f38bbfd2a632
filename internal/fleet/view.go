package fleet

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// ServerView is how a server reads through the API.
type ServerView struct {
	Account          string         `json:"account"`
	Region           string         `json:"region"`
	Generation       int64          `json:"generation"`
	Intent           Intent         `json:"intent"`
	Status           ServerStatus   `json:"status"`
	Verdict          Verdict        `json:"verdict"`
	Reason           Reason         `json:"reason,omitempty"`
	Message          string         `json:"message,omitempty"`
	Served           bool           `json:"served"`
	ServingImageTag  string         `json:"serving_image_tag,omitempty"`
	ObservedImageTag string         `json:"observed_image_tag,omitempty"`
	Instance         string         `json:"instance"`
	Hosts            Hosts          `json:"hosts"`
	DeclaredURL      string         `json:"declared_url"`
	DeclaredGRPCURL  string         `json:"declared_grpc_url,omitempty"`
	DeclaredGlobal   string         `json:"declared_global_url,omitempty"`
	PublishedURL     string         `json:"published_url,omitempty"`
	Aliases          []Alias        `json:"aliases,omitempty"`
	Ports            map[string]int `json:"ports,omitempty"`
	Containers       []Container    `json:"containers,omitempty"` // with their ids (C8)
	Resource         *KubeInstance  `json:"resource,omitempty"`
	Conditions       []Condition    `json:"conditions"`
	Deployment       *Deployment    `json:"deployment,omitempty"` // the latest one
	Plan             *Plan          `json:"plan,omitempty"`
	IntendedPlan     *Plan          `json:"intended_plan,omitempty"`
	Holds            []Hold         `json:"holds,omitempty"`
	Failing          *Failing       `json:"failing,omitempty"` // what is tried again, and how often (P21)
	NextAttempt      *time.Time     `json:"next_attempt,omitempty"`
	LastObservedAt   *time.Time     `json:"last_observed_at,omitempty"` // kept in memory only
	FailedReads      int            `json:"failed_reads,omitempty"`     // consecutive, kept in memory only
	// Stale is set on an answer to ?observe=now whose turn did not end in time.
	Stale bool `json:"stale,omitempty"`
}

// Key returns the identity of the server.
func (v ServerView) Key() ServerKey { return ServerKey{Account: v.Account, Region: v.Region} }

// NewServerView composes the representation of a server. status is nil before the
// first turn; a status that was projected from an older generation shows as
// progressing, for nothing is known of the new one yet, unless nothing could be seen
// then: that is no better now. The same goes for a converged one whose document has
// changed since, with its region, its account or a template.
func NewServerView(intent Intent, desired Desired, status *Status, latest *Deployment) ServerView {
	v := ServerView{
		Account: intent.Account, Region: intent.Region, Generation: intent.Generation, Intent: intent,
		Status: StatusProvisioning, Verdict: VerdictProgressing, Reason: ReasonAccepted,
		Instance: desired.Instance, Hosts: desired.Hosts,
		DeclaredURL: desired.URL, DeclaredGRPCURL: desired.GRPCURL, DeclaredGlobal: desired.GlobalURL,
		Ports: intent.Ports, Deployment: latest, Conditions: []Condition{},
	}
	if status != nil {
		v.Status, v.Verdict, v.Reason, v.Message = status.Status, status.Verdict, status.VerdictReason, status.Message
		v.Served, v.ServingImageTag, v.ObservedImageTag = status.ServingImageTag != "", status.ServingImageTag, status.ObservedImageTag
		v.PublishedURL, v.Aliases, v.Containers, v.Resource = status.PublishedURL, status.Aliases, status.Containers, status.Resource
		v.Plan, v.IntendedPlan, v.Holds = status.Runtime.Plan, status.Runtime.Intended, status.Holds
		v.NextAttempt, v.Failing = cmp.Or(status.Runtime.NextAttempt, status.Outage.NextAttempt), cmp.Or(status.Runtime.Failing, status.Outage.Failing)
		if len(status.Conditions) > 0 {
			v.Conditions = status.counted()
		}
		for _, c := range v.Conditions {
			if c.Type == ConditionReady && c.Message != "" {
				v.Message = c.Message // the verdict's
			}
		}
		if status.Generation != intent.Generation && status.Verdict != VerdictUnobserved || status.outdated(desired) {
			v.Verdict, v.Reason, v.Message = VerdictProgressing, ReasonAccepted, ""
		}
	}
	if intent.Deleting != nil {
		if v.Verdict != VerdictDestroying {
			v.Message = ""
		}
		v.Verdict, v.Reason = VerdictDestroying, ReasonDeleting
		if v.Status != StatusDestroyed {
			v.Status = StatusDestroying
		}
		v.PublishedURL = ""
	}
	return v
}

// Waits adds to Progressing what the next try waits for; "" is nothing.
func (v *ServerView) Waits(text string) {
	for i, c := range v.Conditions {
		if c.Type == ConditionProgressing && c.Status == True && text != "" {
			v.Conditions = slices.Clone(v.Conditions)
			v.Conditions[i].Message = strings.TrimPrefix(c.Message+"; "+text, "; ")
		}
	}
}

// counted are the conditions, in which what is tried again says how often and since when: a
// count that is stored with them would be a write of all of them at every try (P21, G12).
func (s *Status) counted() []Condition {
	cs := slices.Clone(s.Conditions)
	for i := range cs {
		for _, c := range s.courses() {
			cs[i].Message = c.Failing.counted(cs[i].Message)
		}
	}
	return cs
}

// outdated reports whether the status says that a document is converged which is not the
// desired one any more.
func (s *Status) outdated(desired Desired) bool {
	return s.Verdict == VerdictConverged && s.Revision != "" && desired.Revision != "" && s.Revision != desired.Revision
}
