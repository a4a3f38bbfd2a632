package fleet

import "time"

// The KuraInstance custom resource.
const (
	KubeGroup    = "kura.tuist.dev"
	KubeVersion  = "v1alpha1"
	KubeKind     = "KuraInstance"
	KubeResource = "kurainstances"
)

// Labels and annotations of a KuraInstance of ours, besides LabelEnvironment (K4).
const (
	KubeLabelName          = "app.kubernetes.io/name"
	KubeLabelInstance      = "app.kubernetes.io/instance"
	KubeLabelAccount       = "tuist.dev/account"
	KubeLabelRegion        = "tuist.dev/region"
	KubeAnnotationRevision = "tuist.dev/kura-manifest-revision"
)

// kubeName is the value of KubeLabelName.
const kubeName = "kura"

// KubeFieldManager is the name under which kurad applies (K1).
const KubeFieldManager = "kurad"

// KubeDocument is the rendered KuraInstance of a server of a Kubernetes region: what is
// applied, and what is compared with what is there (P13).
type KubeDocument struct {
	Cluster     string
	Namespace   string
	Name        string // the instance's (H6)
	Labels      map[string]string
	Annotations map[string]string // without the revision
	// Spec is canonical JSON data: strings, float64 and int64 numbers, booleans, lists
	// and objects.
	Spec map[string]any
	// Revision is the hash of all above but the cluster.
	Revision string
	// Force takes fields over that another manager applied (K1). It is no part of the
	// revision.
	Force bool
}

// Manifest returns the object to apply, with the revision among its annotations, as JSON
// data that shares nothing with the document.
func (d KubeDocument) Manifest() map[string]any {
	return d.manifest(merge(d.Annotations, map[string]string{KubeAnnotationRevision: d.Revision}))
}

// manifest returns the object with these annotations. Its JSON is what the revision is the
// hash of: a part that is added later must be left out while it is empty (P13).
func (d KubeDocument) manifest(annotations map[string]string) map[string]any {
	metadata := map[string]any{"name": d.Name, "namespace": d.Namespace, "labels": textObject(d.Labels)}
	if len(annotations) > 0 {
		metadata["annotations"] = textObject(annotations)
	}
	return map[string]any{
		"apiVersion": KubeGroup + "/" + KubeVersion,
		"kind":       KubeKind,
		"metadata":   metadata,
		"spec":       cloneJSON(d.Spec),
	}
}

// KubeInstance is one observed KuraInstance that bears a server's name, compared with
// the server's desired document.
type KubeInstance struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Account   string `json:"-"` // whose it is, from its labels
	Region    string `json:"-"`
	// Foreign is set where the object is not ours (K4): it names whose it is.
	Foreign string `json:"foreign,omitempty"`
	// Adopted says that the object does not carry our labels yet and is the server's by
	// its recorded UID (K6).
	Adopted bool `json:"adopted,omitempty"`
	// Deleting says that somebody deletes it, and that it is still there.
	Deleting bool `json:"deleting,omitempty"`

	SpecImage     string `json:"spec_image,omitempty"`     // what is asked for
	ObservedImage string `json:"observed_image,omitempty"` // the controller's latch: the last complete roll-out
	Phase         string `json:"phase,omitempty"`
	PublicURL     string `json:"public_url,omitempty"`
	ReadyReplicas int    `json:"ready_replicas,omitempty"`
	Message       string `json:"message,omitempty"`
	// Generation is metadata.generation: each change of the spec makes another (K8).
	Generation int64 `json:"-"`
	// Written tells one write of the status from another, those that change nothing else than
	// lastReconciledAt included; "": nobody has written any (K8).
	Written string `json:"-"`
	// Revision is the annotation: of the document that was applied last.
	Revision string `json:"revision,omitempty"`
	// RestartMark is the annotation LabelRestartMark: what a redeploy changed last (P12).
	RestartMark string `json:"-"`
	// Aliases are the hosts of its spec that stay routed beside the declared ones (K7).
	Aliases []string `json:"-"`

	// Differs are the fields that we own and that differ from the desired document (P14),
	// sorted by path. The revision is not among them.
	Differs []FieldDifference `json:"differs,omitempty"`
	// Held are the desired fields that another manager applied with another value (K1).
	Held []FieldDifference `json:"held,omitempty"`
	// Dropped are the desired fields that the live schema does not have (K3), sorted.
	Dropped []string `json:"dropped,omitempty"`
	// Altered are the desired fields that are as the cluster's admission made them when they
	// were applied (K10).
	Altered []FieldDifference `json:"altered,omitempty"`
}

// Alteration is what the cluster's admission made of a field when it was applied (K10). Values
// are digests.
type Alteration struct {
	Path   string `json:"path"`
	Sent   string `json:"sent"`
	Became string `json:"became,omitempty"` // "": it was not there
}

// KubeState tells the states of one KuraInstance apart.
type KubeState struct {
	UID           string `json:"uid,omitempty"`
	Generation    int64  `json:"generation,omitempty"`
	ObservedImage string `json:"observed_image,omitempty"`
	Written       string `json:"written,omitempty"`
}

// State is the instance's.
func (i KubeInstance) State() KubeState {
	return KubeState{UID: i.UID, Generation: i.Generation, ObservedImage: i.ObservedImage, Written: i.Written}
}

// KubeRollOut is a change of a KuraInstance of which its controller has not shown yet that
// it has rolled it out (K8).
type KubeRollOut struct {
	// Before is the state that the change was planned for; zero: there was no instance.
	Before KubeState `json:"before,omitzero"`
	// Latches says that the change is one to another image, and that no other was under way:
	// the controller's latch tells its end.
	Latches bool `json:"latches,omitempty"`
	// Applied is the state that the change has made, and At when; nil until that is known.
	Applied *KubeState `json:"applied,omitempty"`
	At      time.Time  `json:"at,omitzero"`
	// Writes counts what the controller has written since, up to two, and Written is the last of
	// them.
	Writes  int    `json:"writes,omitempty"`
	Written string `json:"written,omitempty"`
}

// KubeKnown is what is stored of a server's KuraInstance and the cluster does not tell.
type KubeKnown struct {
	Adopted    *KubeAdoption // one without our labels that was taken over (K6)
	RollingOut bool          // each sign of life of its controller is news (K8)
	Altered    []Alteration  // what the last apply told (K10)
}

// KubeKnown is what the status knows of the server's KuraInstance.
func (s *Status) KubeKnown() KubeKnown {
	if s == nil {
		return KubeKnown{}
	}
	return KubeKnown{Adopted: s.AdoptedResource, RollingOut: s.RollOut != nil, Altered: s.Altered}
}

// FieldDifference is one field of an object that is not as desired. Values are JSON; ""
// stands for none.
type FieldDifference struct {
	Path    string `json:"path"` // such as spec.storageSize or metadata.labels[tuist.dev/account]
	Have    string `json:"have,omitempty"`
	Want    string `json:"want,omitempty"`
	Manager string `json:"manager,omitempty"` // who set what is there, where it was not us
}

// KubeIdentity says which namespace of which cluster a name stands for: that with the UID,
// which no other has, in the same cluster or in another (K9).
type KubeIdentity struct {
	Cluster   string    `json:"cluster"`
	Namespace string    `json:"namespace"`
	UID       string    `json:"uid"`
	Since     time.Time `json:"since"` // first observed, or accepted
}

// KubeListing is what is known of the KuraInstances of one namespace of a cluster.
type KubeListing struct {
	Cluster, Namespace string
	// Begun is when the newest read that answered began; zero: none has.
	Begun time.Time
	// Unreadable is set while the watch does not answer; what it last showed stays.
	Unreadable *ReadFailure
	// Instances are all of the namespace's, foreign ones included, sorted by name and not
	// compared with anything.
	Instances []KubeInstance
	// Since is by uid when an instance was first seen by this process.
	Since map[string]time.Time
}
