package projection

import (
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// unborn reports whether the KuraInstance is there and has not completed a roll-out yet.
func (v reading) unborn() bool { return v.resource != nil && v.image == imageNone }

func (kuraInstance) document(t *turn) (fleet.ConditionStatus, fleet.Reason, string) {
	v := t.seen
	switch {
	case !v.running:
		return fleet.False, fleet.ReasonTerminating, describe(*v.resource) + " is being deleted; it is made again when it is gone"
	case !v.document:
		return fleet.False, fleet.ReasonDocumentDiffers, t.documentDiffers()
	case len(v.resource.Held) > 0:
		return fleet.True, fleet.ReasonFieldConflict, fieldsHeld(v.resource.Held)
	case len(v.resource.Dropped) > 0:
		return fleet.True, fleet.ReasonSchemaTooOld, fieldsDropped(v.resource.Dropped)
	case len(v.resource.Altered) > 0:
		return fleet.True, fleet.ReasonFieldsAltered, fieldsAltered(list(v.resource.Altered))
	default:
		return fleet.True, fleet.ReasonConverged, ""
	}
}

func (kuraInstance) missing(t *turn) string {
	v := t.seen
	switch {
	case v.converged && t.s.RollOut == nil:
		return ""
	case v.converged:
		return t.unproven()
	case !v.running:
		return describe(*v.resource) + " is being deleted, and is still there"
	case !v.document:
		return describe(*v.resource) + ": " + t.documentDiffers()
	case t.controllerSilent():
		return t.unproven()
	case v.image == imageNone:
		return "no roll-out is complete yet" + t.controllerSays()
	case v.illegible != "":
		return t.imageDiffers()
	default:
		return "the roll-out has not ended: " + t.imageDiffers()
	}
}

// leaving says what a server that is destroyed waits for.
func (t *turn) leaving() string {
	if r := t.seen.resource; r != nil && r.Deleting {
		return describe(*r) + " is deleted, and stays until its finalizers are done"
	}
	return t.doing()
}

func (t *turn) documentDiffers() string {
	if ds := t.seen.resource.Differs; len(ds) > 0 {
		return list(ds)
	}
	return "the desired document has not been applied yet"
}

// controllerSays is the controller's own message, where it has one.
func (t *turn) controllerSays() string {
	if r := t.seen.resource; r != nil && r.Message != "" {
		return " (the controller says: " + r.Message + ")"
	}
	return ""
}

// makeRoom is what a person does about a foreign instance.
func (t *turn) makeRoom() string {
	r := t.in.Seen.Instance.Resource
	switch {
	case r == nil:
		return "remove or rename it, and the server is made"
	case r.Foreign == fleet.NotByKurad:
		return "take it over with terraform import, or delete it, and the server is made"
	default:
		return "delete it, and the server is made"
	}
}

func fieldsHeld(ds []fleet.FieldDifference) string {
	return "fields that other managers applied stay as they are: " + list(ds) + "; force_conflicts = true takes them over"
}

func fieldsDropped(paths []string) string {
	return "the cluster's schema of KuraInstance lacks " + strings.Join(paths, ", ") + "; update the CRD to have them"
}

func fieldsAltered(what string) string {
	return "the cluster's admission changes what is applied, and that stays: " + what
}

// told reports whether a turn has said how the fields of the stored KuraInstance are; the
// one that stores an adoption has not.
func told(s fleet.Status) bool {
	switch condition(s, fleet.ConditionManifestConverged).Reason {
	case fleet.ReasonConverged, fleet.ReasonDocumentDiffers, fleet.ReasonSchemaTooOld, fleet.ReasonFieldConflict, fleet.ReasonFieldsAltered, fleet.ReasonTerminating:
		return true
	default:
		return false
	}
}

// fieldEvent tells something of an instance's fields.
type fieldEvent struct {
	reason fleet.Reason
	text   string
}

// fieldEvents are told once, when the schema is first seen to lack a field, another
// manager to hold one, or admission to change one (K1, K3, K10).
func fieldEvents(in Input, prev, s fleet.Status) (es []fieldEvent) {
	if in.Intent.Deleting != nil {
		return nil
	}
	var altered []string
	for _, a := range s.Altered {
		if !slices.ContainsFunc(prev.Altered, func(b fleet.Alteration) bool { return b.Path == a.Path }) {
			altered = append(altered, a.Path)
		}
	}
	if len(altered) > 0 {
		es = append(es, fieldEvent{fleet.ReasonFieldsAltered, fieldsAltered(strings.Join(altered, ", "))})
	}
	is := s.Resource
	if is == nil || is.Foreign != "" {
		return es
	}
	was := &fleet.KubeInstance{}
	if prev.Resource != nil && told(prev) && in.rule(RuleK3Once) {
		was = prev.Resource
	}
	if fresh := slices.DeleteFunc(slices.Clone(is.Dropped), func(path string) bool { return slices.Contains(was.Dropped, path) }); len(fresh) > 0 {
		es = append(es, fieldEvent{fleet.ReasonSchemaTooOld, fieldsDropped(fresh)})
	}
	known := func(d fleet.FieldDifference) bool {
		return slices.ContainsFunc(was.Held, func(o fleet.FieldDifference) bool { return o.Path == d.Path && o.Manager == d.Manager })
	}
	if fresh := slices.DeleteFunc(slices.Clone(is.Held), known); len(fresh) > 0 {
		es = append(es, fieldEvent{fleet.ReasonFieldConflict, fieldsHeld(fresh)})
	}
	return es
}
