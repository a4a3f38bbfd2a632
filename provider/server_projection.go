package provider

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// before is what was known of a server's version before a Read.
type before struct {
	imageTag types.String // in state
	// declared is the version that this resource last wrote; "" after an import.
	declared string
}

// reading is what a Read makes of a server's version.
type reading struct {
	imageTag types.String
	pending  types.String // what the daemon wants, where image_tag does not say it
	warning  *warning
	shadow   *warning // whose its hosts are
}

func (r reading) warnings() (all []warning) {
	for _, w := range []*warning{r.warning, r.shadow} {
		if w != nil {
			all = append(all, *w)
		}
	}
	return all
}

// warning is something to say in a plan, once per key.
type warning struct{ key, summary, detail string }

// project says what image_tag and pending_image_tag are in state, given what the daemon
// says; real_verdict_test.go has the table.
func project(v fleet.ServerView, was before, now time.Time) reading {
	tag, warning := shownTag(v, was, now)
	return reading{tag, pending(v, tag), warning, shadowed(v)}
}

// shadowed is what a plan says of a server whose hosts are somebody else's, or whose they are
// kurad may not read (D3).
func shadowed(v fleet.ServerView) *warning {
	for _, of := range []fleet.ConditionType{fleet.ConditionDNSOwned, fleet.ConditionGlobalEndpointReady} {
		c := condition(v, of)
		what := "hosts are not this environment's"
		switch c.Reason {
		case fleet.ReasonForeignOwner, fleet.ReasonAmbiguousOwner, fleet.ReasonForeignBalancer:
		case fleet.ReasonUnreadableOwner, fleet.ReasonZoneForbidden:
			what = "whose its hosts are cannot be read"
		default:
			continue
		}
		return &warning{
			key:     "shadowed/" + v.Region + "/" + string(c.Reason),
			summary: fmt.Sprintf("Region %q: %s (%s)", v.Region, what, c.Reason),
			detail:  fmt.Sprintf("Server %s, and perhaps others of the region: %s kurad leads no clients to a host until it is this environment's. `kurad dns audit` shows them all.", v.Key(), sentence(c.Message)),
		}
	}
	return nil
}

// pending is the version that the daemon still wants, where image_tag shows another one or
// none; null where it wants none any more.
func pending(v fleet.ServerView, imageTag types.String) types.String {
	if imageTag.ValueString() == v.Intent.ImageTag || v.Verdict == fleet.VerdictDestroying {
		return types.StringNull()
	}
	return text(v.Intent.ImageTag)
}

// shownTag is the table's column of image_tag, row by row.
func shownTag(v fleet.ServerView, was before, now time.Time) (types.String, *warning) {
	intent := text(v.Intent.ImageTag)
	kept := was.imageTag
	if was.declared == "" {
		kept = intent // just imported: nothing else is known
	}
	switch elsewhere := was.declared != "" && was.declared != v.Intent.ImageTag; {
	case v.Verdict == fleet.VerdictDestroying:
		return kept, leaving(v)
	case elsewhere:
		return intent, trouble(v, now)
	case untouched(v, was):
		return types.StringNull(), takenOver(v)
	case illegible(v):
		return intent, unreadVersion(v)
	}
	switch v.Verdict {
	case fleet.VerdictConverged, fleet.VerdictProgressing:
		return intent, triedAgain(v)
	case fleet.VerdictHeld:
		return intent, trouble(v, now)
	case fleet.VerdictFailed, fleet.VerdictStalled:
		if underWay(v) {
			return intent, trouble(v, now)
		}
		return serving(v), trouble(v, now)
	case fleet.VerdictDrifted:
		return seenRunning(v), drift(v)
	case fleet.VerdictAbsent:
		return types.StringNull(), nil
	case fleet.VerdictUnobserved:
		return kept, trouble(v, now)
	case fleet.VerdictDestroying:
	}
	return intent, nil
}

// illegible reports whether nobody can tell which version runs, and all else is as declared:
// a plan of that would change nothing (P23).
func illegible(v fleet.ServerView) bool {
	document := condition(v, fleet.ConditionManifestConverged)
	return v.Reason == fleet.ReasonUnparsableImage && document.Status == fleet.True && !underWay(v)
}

func unreadVersion(v fleet.ServerView) *warning {
	return &warning{
		key:     "illegible/" + v.Key().String(),
		summary: fmt.Sprintf("Server %s: which version runs cannot be read", v.Key()),
		detail: sentence("it "+condition(v, fleet.ConditionImageConverged).Message) +
			" The plan takes it to run what is declared, for it was made as declared, and an apply would change nothing. See to it that what runs it names its images by tag.",
	}
}

func condition(v fleet.ServerView, of fleet.ConditionType) (found fleet.Condition) {
	for _, c := range v.Conditions {
		if c.Type == of {
			found = c
		}
	}
	return found
}

// underWay reports whether the daemon has a deployment open that is not past its time.
func underWay(v fleet.ServerView) bool {
	return v.Verdict != fleet.VerdictStalled && v.Reason != fleet.ReasonStalled && v.Deployment != nil && v.Deployment.Status.Open()
}

// serving is the version that passed the readiness gate last, where it is another one
// than declared; null says that the declared version does not serve.
func serving(v fleet.ServerView) types.String {
	if v.ServingImageTag == v.Intent.ImageTag {
		return types.StringNull()
	}
	return text(v.ServingImageTag)
}

// trouble returns the warning about a server that is not simply fine.
func trouble(v fleet.ServerView, now time.Time) *warning {
	switch v.Verdict {
	case fleet.VerdictFailed, fleet.VerdictStalled:
		return &warning{
			key:     "trouble/" + v.Key().String(),
			summary: fmt.Sprintf("Server %s: %s", v.Key(), fate(v)),
			detail:  why(v) + " " + stillServes(v) + " kurad goes on trying, until another version is declared: apply to try this one at once" + goBack(v) + ".",
		}
	case fleet.VerdictHeld:
		kinds, texts := make([]string, len(v.Holds)), make([]string, len(v.Holds))
		for i, h := range v.Holds {
			kinds[i], texts[i] = string(h.Kind), h.Message
		}
		return &warning{
			key:     "held/" + v.Region + "/" + strings.Join(kinds, ","),
			summary: fmt.Sprintf("Region %q: changes are held (%s)", v.Region, v.Reason),
			detail: fmt.Sprintf("kurad changes nothing on server %s, and perhaps on others of the region, because: %s. The plan shows what is declared; it happens when the hold ends.",
				v.Key(), cmp.Or(strings.Join(texts, "; "), string(v.Reason))),
		}
	case fleet.VerdictUnobserved:
		return &warning{
			key:     unobservedKey(v.Region, v.Reason),
			summary: fmt.Sprintf("Region %q cannot be seen (%s)", v.Region, v.Reason),
			detail:  why(v) + " " + age(v, now) + " The plan takes its servers to be as they were; kurad changes nothing there until it can see them.",
		}
	case fleet.VerdictConverged, fleet.VerdictProgressing, fleet.VerdictDrifted, fleet.VerdictAbsent, fleet.VerdictDestroying:
	}
	return nil
}

// fate says in a few words what became of the declared version.
func fate(v fleet.ServerView) string {
	verb := "failed"
	if v.Verdict == fleet.VerdictStalled || v.Reason == fleet.ReasonStalled {
		verb = "does not get ready"
	}
	return fmt.Sprintf("version %s %s (%s)", v.Intent.ImageTag, verb, v.Reason)
}

// triedAgain is what a plan says of a server that it changes nothing on: what kurad tries
// for it fails again and again (P21), or its instance is there only until somebody has
// deleted it. That is mostly its region's trouble.
func triedAgain(v fleet.ServerView) *warning {
	doing, document := condition(v, fleet.ConditionProgressing), condition(v, fleet.ConditionManifestConverged)
	said, cause := doing.Message, document.Reason
	switch {
	case v.Reason == fleet.ReasonAccepted: // written since
		return nil
	case v.Failing != nil:
		cause = v.Failing.Reason
	case document.Reason == fleet.ReasonTerminating:
		said = document.Message
	default:
		return nil
	}
	stands := string(v.Verdict)
	if v.Reason != "" {
		stands += fmt.Sprintf(" (%s)", v.Reason)
	}
	return &warning{
		key:     "again/" + v.Region + "/" + string(cause),
		summary: fmt.Sprintf("Region %q: what kurad does there comes to nothing (%s)", v.Region, cause),
		detail: fmt.Sprintf("Server %s, and perhaps others of the region: it is %s. %s kurad goes on trying, and the plan shows what is declared.",
			v.Key(), stands, sentence(said)),
	}
}

func leaving(v fleet.ServerView) *warning {
	said := "Somebody else asked for it. "
	if v.Message != "" {
		said += sentence(v.Message) + " "
	}
	return &warning{
		key:     "leaving/" + v.Key().String(),
		summary: fmt.Sprintf("Server %s is being destroyed", v.Key()),
		detail:  said + "Once it is gone, a plan will create it again; until then an apply that changes it is refused.",
	}
}

// why returns the daemon's own words on the verdict, the most precise ones it has.
func why(v fleet.ServerView) string {
	s := v.Message
	if d := v.Deployment; s == "" && d != nil && d.Status == fleet.DeploymentFailed {
		s = d.Message
	}
	if s == "" {
		for _, c := range v.Conditions {
			if c.Reason == v.Reason && c.Message != "" {
				s = c.Message
				break
			}
		}
	}
	if s == "" {
		s = fmt.Sprintf("the reason is %s", v.Reason)
	}
	s = sentence(s)
	// What waits for an endpoint is understood from what that said last.
	for _, c := range v.Conditions {
		if c.Type == fleet.ConditionEndpointReady && c.Status == fleet.False && v.Reason == fleet.ReasonEndpointNotReady && c.Message != "" && !strings.Contains(s, c.Message) {
			s += fmt.Sprintf(" The last probe (%s): %s", c.Reason, sentence(c.Message))
		}
	}
	return s
}

func stillServes(v fleet.ServerView) string {
	switch {
	case v.ServingImageTag == "":
		return "No version of it has served yet."
	case v.ServingImageTag == v.Intent.ImageTag:
		return "It served this version before."
	case v.PublishedURL == "":
		return fmt.Sprintf("Version %s served last.", v.ServingImageTag)
	default:
		return fmt.Sprintf("Version %s is still published at %s.", v.ServingImageTag, v.PublishedURL)
	}
}

// goBack says how to stay with what serves, where that is another version.
func goBack(v fleet.ServerView) string {
	if serving(v).IsNull() {
		return ""
	}
	return fmt.Sprintf(", or set image_tag back to %q to stay with what serves", v.ServingImageTag)
}

func age(v fleet.ServerView, now time.Time) string {
	if v.LastObservedAt == nil || v.LastObservedAt.IsZero() {
		if v.FailedReads > 0 {
			return fmt.Sprintf("It has not been seen since kurad started; %s failed.", reads(v.FailedReads))
		}
		return "It has not been seen since kurad started."
	}
	return fmt.Sprintf("What is known is %s old (from %s).", now.Sub(*v.LastObservedAt).Round(time.Second), v.LastObservedAt.UTC().Format(time.RFC3339))
}

func reads(n int) string {
	if n == 1 {
		return "1 read"
	}
	return fmt.Sprintf("%d reads", n)
}
