package provider

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// untouched reports whether a KuraInstance that was taken over differs from what is
// declared and stays as it is until an apply changes the server (K6). Right after an
// import that is known before a turn has said so.
func untouched(v fleet.ServerView, was before) bool {
	switch {
	case v.Verdict == fleet.VerdictHeld, v.Verdict == fleet.VerdictDrifted:
		return slices.ContainsFunc(v.Holds, func(h fleet.Hold) bool { return h.Kind == fleet.HoldAdoption })
	case was.declared == "" && (v.Verdict == fleet.VerdictUnobserved || v.Reason == fleet.ReasonAccepted):
		return v.Resource != nil && v.Resource.Adopted && len(ofSpec(v.Resource.Differs)) > 0
	}
	return false
}

// drifted reports whether the server's own instance was seen with fields that are not as
// declared.
func drifted(v fleet.ServerView) bool {
	return v.Resource != nil && !v.Resource.Adopted && len(v.Resource.Differs) > 0
}

// seenRunning is the version that a drifted server runs; null where it is the declared one
// and other fields are not as declared, for only a change shows in a plan.
func seenRunning(v fleet.ServerView) types.String {
	if drifted(v) && v.ObservedImageTag == v.Intent.ImageTag {
		return types.StringNull()
	}
	return text(v.ObservedImageTag)
}

// drift says how the instance of a server of a region that only observes differs.
func drift(v fleet.ServerView) *warning {
	if !drifted(v) {
		return nil
	}
	return &warning{
		key:     "drift/" + v.Key().String(),
		summary: fmt.Sprintf("Server %s: its KuraInstance is not as declared", v.Key()),
		detail: fmt.Sprintf("Somebody changed KuraInstance %s/%s, and with `remediation = \"observe\"` kurad leaves it so. What is there -> what is declared:\n%s\n\n"+
			"The plan shows that as a change of `image_tag`, from null where the version is the declared one. Applying it makes the instance as declared; where it is to stay, declare what is there.",
			v.Resource.Namespace, v.Resource.Name, listed(v.Resource.Differs)),
	}
}

// ofSpec are the differences that are more than metadata.
func ofSpec(all []fleet.FieldDifference) []fleet.FieldDifference {
	return slices.DeleteFunc(slices.Clone(all), func(d fleet.FieldDifference) bool { return strings.HasPrefix(d.Path, "metadata.") })
}

// takenOver says how an instance that was taken over differs.
func takenOver(v fleet.ServerView) *warning {
	w := &warning{
		key:     "adoption/" + v.Key().String(),
		summary: fmt.Sprintf("Server %s: its KuraInstance is not as declared", v.Key()),
	}
	runs := "It was made by somebody else"
	if r := v.Resource; r != nil {
		runs = fmt.Sprintf("KuraInstance %s/%s was made by somebody else and runs %s. What kurad would change, for %s as declared:\n%s\n\nIt",
			r.Namespace, r.Name, r.SpecImage, v.Intent.ImageTag, listed(ofSpec(r.Differs)))
	}
	w.detail = runs + " stays as it is until an apply changes the server: the plan shows that as a change of `image_tag` from null, and applying it changes all of the above. " +
		"To keep the instance as it is, let the region or the server's `overrides` say what runs, apply that first, and plan again: where nothing differs, nothing is changed. " +
		"An import knows nothing of `overrides` yet, so what they say is listed above as well until they are applied."
	return w
}

// listed writes differences one a line.
func listed(all []fleet.FieldDifference) string {
	var b strings.Builder
	for _, d := range all {
		fmt.Fprintf(&b, "\n  %s: %s -> %s", d.Path, orNothing(d.Have), orNothing(d.Want))
		if d.Manager != "" {
			fmt.Fprintf(&b, " (set by %s)", d.Manager)
		}
	}
	return b.String()
}

func orNothing(value string) string { return cmp.Or(value, "nothing") }

// notices are what a plan says of a region's servers that are as declared as their cluster
// allows: fields that its custom resource lacks (K3), those that somebody else holds (K1), and
// those that its admission changes (K10).
func notices(v fleet.ServerView) []warning {
	r := v.Resource
	if r == nil {
		return nil
	}
	var list []warning
	say := func(kind, cause, what, detail string) {
		list = append(list, warning{kind + "/" + v.Region + "/" + cause, fmt.Sprintf("Region %q: %s", v.Region, what), detail})
	}
	if len(r.Dropped) > 0 {
		fields := strings.Join(r.Dropped, ", ")
		say("schema", fields, "the cluster's KuraInstance is too old for what is declared",
			fmt.Sprintf("Its custom resource definition does not have %s, so server %s, and perhaps others of the region, run without. Upgrade the definition, and kurad applies them by itself; or leave them out.",
				fields, v.Key()))
	}
	if len(r.Held) > 0 {
		var held []string // values differ from server to server, and the cause does not
		for _, d := range r.Held {
			held = append(held, fmt.Sprintf("%s (by %s)", d.Path, orNothing(d.Manager)))
		}
		slices.Sort(held)
		fields := strings.Join(slices.Compact(held), ", ")
		say("conflict", fields, "another manager holds fields that are declared here",
			fmt.Sprintf("Applied with other values: %s. kurad leaves them alone. On server %s:\n%s\n\nLet the other manager give them up, or take them over with `force_conflicts = true` in the region's `kubernetes` block.",
				fields, v.Key(), listed(r.Held)))
	}
	if len(r.Altered) > 0 {
		var paths []string
		for _, d := range r.Altered {
			paths = append(paths, d.Path)
		}
		fields := strings.Join(paths, ", ")
		say("altered", fields, "the cluster changes what is declared",
			fmt.Sprintf("Its admission (a webhook or a policy) writes %s otherwise when kurad applies them, and kurad leaves that so. On server %s:\n%s\n\nDeclare what it makes of them, or change the webhook or policy.",
				fields, v.Key(), listed(r.Altered)))
	}
	return list
}
