package fleet

import "slices"

// ConditionType names an aspect of a server that is observed.
type ConditionType string

// Condition types, in the order in which they are shown.
const (
	ConditionReady               ConditionType = "Ready"
	ConditionInstanceObserved    ConditionType = "InstanceObserved"
	ConditionImageConverged      ConditionType = "ImageConverged"
	ConditionManifestConverged   ConditionType = "ManifestConverged"
	ConditionProgressing         ConditionType = "Progressing"
	ConditionEndpointReady       ConditionType = "EndpointReady"
	ConditionGlobalEndpointReady ConditionType = "GlobalEndpointReady"
	ConditionDNSOwned            ConditionType = "DNSOwned"
	ConditionSidecarReady        ConditionType = "SidecarReady"
	ConditionURLConverged        ConditionType = "URLConverged"
)

// Reason is one word of a closed set: why a condition, a status, a verdict or a
// task is as it is.
type Reason string

// Reasons of conditions, statuses and verdicts.
const (
	ReasonUnset         Reason = ""
	ReasonReady         Reason = "Ready"
	ReasonNotApplicable Reason = "NotApplicable" // the region declares none
	ReasonNotChecked    Reason = "NotChecked"    // nothing was read yet

	// InstanceObserved
	ReasonObserved            Reason = "Observed"
	ReasonNotObservedYet      Reason = "NotObservedYet"
	ReasonEndpointUnreachable Reason = "RuntimeUnreachable" // the runtime does not answer
	ReasonRuntimeRefused      Reason = "RuntimeRefused"     // 401, 403
	ReasonRuntimeError        Reason = "RuntimeError"       // 408, 429, 5xx, an answer that cannot be read
	ReasonClusterChanged      Reason = "ClusterChanged"     // the namespace is not the one that was observed so far (K9)
	ReasonTypeNotServed       Reason = "TypeNotServed"      // the cluster does not know the resource type
	ReasonUnknownRegion       Reason = "UnknownRegion"      // region, account or template is gone from the store
	ReasonNotRenderable       Reason = "NotRenderable"      // the declaration no longer renders

	// ImageConverged, ManifestConverged, URLConverged
	ReasonConverged        Reason = "Converged"
	ReasonAbsent           Reason = "Absent"
	ReasonDrifted          Reason = "Drifted"
	ReasonRollingOut       Reason = "RollingOut"
	ReasonUnparsableImage  Reason = "UnparsableImage"
	ReasonServiceMissing   Reason = "ServiceMissing"
	ReasonServiceStopped   Reason = "ServiceStopped"
	ReasonDocumentDiffers  Reason = "DocumentDiffers"
	ReasonSchemaTooOld     Reason = "SchemaTooOld"  // the live schema lacks fields of ours
	ReasonFieldConflict    Reason = "FieldConflict" // another manager applied fields of ours
	ReasonFieldsAltered    Reason = "FieldsAltered" // the cluster's admission changes fields of ours (K10)
	ReasonTerminating      Reason = "Terminating"   // somebody deletes the instance
	ReasonURLMove          Reason = "URLMove"
	ReasonNotPublished     Reason = "NotPublished"
	ReasonForeignOwner     Reason = "ForeignOwner"
	ReasonOwned            Reason = "Owned"
	ReasonOwnershipUnknown Reason = "OwnershipUnknown"

	// DNSOwned, GlobalEndpointReady: of zones and load balancers
	ReasonAmbiguousOwner  Reason = "AmbiguousOwner"  // several owners claim one host
	ReasonUnreadableOwner Reason = "UnreadableOwner" // an encrypted ownership record
	ReasonHostAbsent      Reason = "HostAbsent"      // nobody has published it
	ReasonRecordDiffers   Reason = "RecordDiffers"
	ReasonZoneUnreachable Reason = "ZoneUnreachable"
	ReasonZoneForbidden   Reason = "ZoneForbidden" // the zone's token may not, or is not valid
	ReasonRateLimited     Reason = "RateLimited"
	ReasonQuotaExceeded   Reason = "QuotaExceeded"
	ReasonNotSubscribed   Reason = "NotSubscribed"   // the zone or account has no load balancing
	ReasonForeignBalancer Reason = "ForeignBalancer" // a balancer or pool of that name is not ours
	ReasonPoolMissing     Reason = "PoolMissing"     // our pool is not in the balancer
	ReasonBalancerDiffers Reason = "BalancerDiffers"

	// Progressing
	ReasonSettled   Reason = "Settled"
	ReasonReplacing Reason = "Replacing"
	ReasonApplying  Reason = "Applying"
	ReasonRetrying  Reason = "Retrying"
	ReasonWaiting   Reason = "WaitingForEndpoint"
	ReasonStalled   Reason = "Stalled"
	ReasonSilent    Reason = "ControllerSilent" // the controller has not looked at what was applied (K8)
	ReasonHeld      Reason = "Held"

	// EndpointReady, GlobalEndpointReady (R1)
	ReasonNotResolvable    Reason = "NotResolvable"
	ReasonConnectFailed    Reason = "ConnectFailed"
	ReasonTLSNotReady      Reason = "TLSNotReady"
	ReasonHTTPNotReady     Reason = "HTTPNotReady"
	ReasonTimeout          Reason = "Timeout"
	ReasonEndpointNotReady Reason = "EndpointNotReady"
	ReasonGlobalNotReady   Reason = "GlobalNotReady"

	// statuses and tasks that a runtime refused
	ReasonForeignInstance Reason = "ForeignInstance"
	ReasonCrashLoop       Reason = "CrashLoop"
	ReasonImagePullFailed Reason = "ImagePullFailed"
	ReasonCreateFailed    Reason = "CreateFailed"
	ReasonStartFailed     Reason = "StartFailed"
	ReasonPortTaken       Reason = "PortTaken" // somebody else has the host port (C12)
	ReasonStopFailed      Reason = "StopFailed"
	ReasonRemoveFailed    Reason = "RemoveFailed"
	ReasonForbidden       Reason = "Forbidden"
	ReasonInvalid         Reason = "Invalid"
	ReasonNamespaceGone   Reason = "NamespaceNotFound"
	ReasonPlanTimedOut    Reason = "PlanTimedOut"

	// verdicts
	ReasonPaused      Reason = "Paused"
	ReasonObserveOnly Reason = "ObserveOnly"
	ReasonAdmission   Reason = "Admission"
	ReasonAdoption    Reason = "Adoption" // what was taken over waits for an apply
	ReasonAccepted    Reason = "Accepted" // written, not projected yet
	ReasonDeleting    Reason = "Deleting"
	ReasonGone        Reason = "Gone"
)

// Of reports whether the reason is one of the closed set of a condition.
func (r Reason) Of(ct ConditionType) bool {
	return slices.ContainsFunc(ConditionRules(), func(rule ConditionRule) bool {
		return rule.Type == ct && slices.Contains(rule.Reasons, r)
	})
}

// Setter names who sets a condition.
type Setter string

// SetterProjection is the projection: what sets every condition so far.
const SetterProjection Setter = "projection"

// ConditionRule is a row of the one table of conditions.
type ConditionRule struct {
	Type    ConditionType
	Setter  Setter
	Meaning string
	Reasons []Reason // the closed set
}

// ConditionRules lists every condition type, in the order in which they are shown.
func ConditionRules() []ConditionRule {
	return []ConditionRule{
		{ConditionReady, SetterProjection, "summary: the server is active, answers, and nothing is open", []Reason{ReasonReady, ReasonAbsent, ReasonRollingOut, ReasonDrifted, ReasonUnparsableImage, ReasonEndpointNotReady, ReasonGlobalNotReady, ReasonStalled, ReasonSilent, ReasonURLMove, ReasonHeld, ReasonDeleting, ReasonNotObservedYet, ReasonForeignInstance, ReasonCrashLoop, ReasonImagePullFailed, ReasonCreateFailed, ReasonStartFailed, ReasonPortTaken, ReasonStopFailed, ReasonRemoveFailed, ReasonForbidden, ReasonInvalid, ReasonNamespaceGone, ReasonFieldConflict, ReasonPlanTimedOut, ReasonUnknownRegion, ReasonNotRenderable, ReasonForeignOwner, ReasonAmbiguousOwner, ReasonUnreadableOwner, ReasonHostAbsent, ReasonOwnershipUnknown, ReasonZoneUnreachable, ReasonZoneForbidden, ReasonRateLimited}},
		{ConditionInstanceObserved, SetterProjection, "the newest read of the runtime answered about this instance", []Reason{ReasonObserved, ReasonNotObservedYet, ReasonEndpointUnreachable, ReasonRuntimeRefused, ReasonRuntimeError, ReasonTypeNotServed, ReasonNamespaceGone, ReasonClusterChanged, ReasonUnknownRegion, ReasonNotRenderable}},
		{ConditionImageConverged, SetterProjection, "every carrier of the image runs the desired one", []Reason{ReasonConverged, ReasonAbsent, ReasonDrifted, ReasonRollingOut, ReasonUnparsableImage, ReasonForeignInstance, ReasonNotObservedYet, ReasonDeleting}},
		{ConditionManifestConverged, SetterProjection, "every service runs from the desired document", []Reason{ReasonConverged, ReasonAbsent, ReasonServiceMissing, ReasonServiceStopped, ReasonDocumentDiffers, ReasonSchemaTooOld, ReasonFieldConflict, ReasonFieldsAltered, ReasonTerminating, ReasonCrashLoop, ReasonForeignInstance, ReasonNotObservedYet, ReasonDeleting}},
		{ConditionProgressing, SetterProjection, "work is under way or due", []Reason{ReasonSettled, ReasonReplacing, ReasonApplying, ReasonRetrying, ReasonWaiting, ReasonStalled, ReasonSilent, ReasonHeld, ReasonDeleting, ReasonNotObservedYet}},
		{ConditionEndpointReady, SetterProjection, "the declared endpoint answers right now", []Reason{ReasonReady, ReasonNotChecked, ReasonNotResolvable, ReasonConnectFailed, ReasonTLSNotReady, ReasonHTTPNotReady, ReasonTimeout, ReasonDeleting}},
		{ConditionGlobalEndpointReady, SetterProjection, "the declared global endpoint answers right now, and leads here, too", []Reason{ReasonReady, ReasonNotApplicable, ReasonNotChecked, ReasonNotResolvable, ReasonConnectFailed, ReasonTLSNotReady, ReasonHTTPNotReady, ReasonTimeout, ReasonPoolMissing, ReasonBalancerDiffers, ReasonForeignBalancer, ReasonZoneUnreachable, ReasonZoneForbidden, ReasonRateLimited, ReasonQuotaExceeded, ReasonNotSubscribed, ReasonDeleting}},
		{ConditionDNSOwned, SetterProjection, "the ownership records of every host that the server leads clients to say ours", []Reason{ReasonOwned, ReasonNotApplicable, ReasonForeignOwner, ReasonAmbiguousOwner, ReasonUnreadableOwner, ReasonHostAbsent, ReasonRecordDiffers, ReasonOwnershipUnknown, ReasonZoneUnreachable, ReasonZoneForbidden, ReasonRateLimited, ReasonQuotaExceeded, ReasonDeleting}},
		{ConditionSidecarReady, SetterProjection, "every replica's sidecar says ready", []Reason{ReasonNotApplicable}},
		{ConditionURLConverged, SetterProjection, "the published url is the declared one", []Reason{ReasonConverged, ReasonNotPublished, ReasonURLMove, ReasonForeignOwner, ReasonAmbiguousOwner, ReasonDeleting}},
	}
}
