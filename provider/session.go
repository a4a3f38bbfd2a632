package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const (
	// meetTimeout bounds the first call, which is allowed to find nobody there.
	meetTimeout = 3 * time.Second
	// unansweredFor is how long a daemon that did not answer is taken to be away: each
	// of a thousand resources trying for itself would take hours to say so.
	unansweredFor = 10 * time.Second
)

// session is what one Configure hands to every object. Core configures a provider
// once per walk of the graph, so what is kept here is fresh for each plan and apply.
type session struct {
	unknown     []string // attributes of the provider block that are not known yet
	client      *api.Client
	environment string
	waitFor     string
	watches     *watches

	meeting sync.Mutex // held while the daemon is asked who it is
	away    error      // it did not answer, at awayAt
	awayAt  time.Time

	modes  sync.Mutex      // held while regions are asked how they check hosts
	checks map[string]bool // by region

	mu      sync.Mutex
	version *api.VersionInfo
	said    map[string]bool
	looks   map[string]*look // by region
}

// look is the question whether a region's runtime can be read. It is asked by way of some
// server, and answered unless something is wrong with that one.
type look struct {
	mu       sync.Mutex
	answered bool
	tries    int
}

// mostLooks is how often a region is asked for.
const mostLooks = 3

// meet asks the daemon who it is. What it answers may be an error; that it does not
// answer is none before a call is needed.
func (s *session) meet(ctx context.Context, diags *diag.Diagnostics) {
	ctx, cancel := context.WithTimeout(ctx, meetTimeout)
	defer cancel()
	v, err := s.daemon(ctx)
	if e, ok := errors.AsType[*wrongDaemon](err); ok {
		diags.AddAttributeError(path.Root("environment"), e.summary(), e.detail())
		return
	}
	switch {
	case has(err, fleet.CodeUnauthorized):
		diags.AddAttributeError(path.Root("token"), "The daemon refused the token", sentence(err.Error())+" Nothing was read or written. "+nextStep(fleet.CodeUnauthorized))
	case err != nil:
		tflog.Debug(ctx, "kurad did not say its version", map[string]any{"error": err.Error()})
	case v.APIVersion != api.APIVersion:
		diags.AddWarning("Daemon and provider speak different versions of the API",
			fmt.Sprintf("kurad %s speaks %s and this provider %s. Bring both to versions that belong together.", v.Version, v.APIVersion, api.APIVersion))
	}
}

// daemon returns what the daemon says of itself, asked once; an error if it serves
// another environment.
func (s *session) daemon(ctx context.Context) (api.VersionInfo, error) {
	s.meeting.Lock()
	defer s.meeting.Unlock()
	if v := s.met(); v != nil {
		return *v, nil
	}
	if s.away != nil && time.Since(s.awayAt) < unansweredFor {
		return api.VersionInfo{}, s.away
	}
	v, err := s.client.Version(ctx)
	switch {
	case has(err, api.CodeWrongEnvironment):
		return v, &wrongDaemon{want: s.environment, err: err}
	case err != nil:
		if has(err, fleet.CodeUnavailable) && ctx.Err() == nil {
			s.away, s.awayAt = err, time.Now()
		}
		return v, err
	case v.Environment != s.environment:
		return v, &wrongDaemon{want: s.environment, got: v.Environment}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = &v
	return v, nil
}

// met returns what the daemon has said of itself; nil if it has not.
func (s *session) met() *api.VersionInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// use returns the client, or says why there is none. what is the attempt, such as
// `Read server acme/eu`.
func (s *session) use(ctx context.Context, what string, diags *diag.Diagnostics) *api.Client {
	switch {
	case s == nil:
		diags.AddError(what+": the provider is not configured", "Core called the provider before it configured it. This is a fault of the provider or of core; please report it.")
		return nil
	case len(s.unknown) > 0:
		diags.AddError(what+": the provider's "+strings.Join(s.unknown, ", ")+" is not known yet",
			"The provider block takes it from something that this apply only creates, and the daemon has to be asked now. Apply that first (with -target), or give the provider a value that is known while planning.")
		return nil
	}
	if _, err := s.daemon(ctx); err != nil {
		report(diags, nil, what, err)
		return nil
	}
	return s.client
}

// answering returns the client where a plan may ask the daemon something that it can do
// without; nil where the daemon has not answered before.
func (s *session) answering() *api.Client {
	if s == nil || len(s.unknown) > 0 || s.met() == nil {
		return nil
	}
	return s.client
}

// serves returns the environment that the daemon serves, with every suffix that
// shares its zone; false where the daemon has not answered.
func (s *session) serves() (fleet.Environment, bool) {
	if s.answering() == nil {
		return fleet.Environment{}, false
	}
	v := s.met()
	e, err := fleet.NewEnvironment(v.Environment, v.Suffix, v.Suffixes)
	return e, err == nil
}

// once adds a warning unless this session said it before under the same key: a
// runtime that does not answer is one thing to say, however many servers it has.
func (s *session) once(key string, diags *diag.Diagnostics, summary, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.said[key] {
		return
	}
	if s.said == nil {
		s.said = map[string]bool{}
	}
	s.said[key] = true
	diags.AddWarning(summary, detail)
}

// unseen adds the daemon's warning that a region's runtime cannot be read, unless this
// session said of the region that it cannot be seen.
func (s *session) unseen(diags *diag.Diagnostics, region string, w fleet.Warning) {
	summary := fmt.Sprintf("Region %q cannot be seen", region)
	if w.Reason != "" {
		summary += fmt.Sprintf(" (%s)", w.Reason)
	}
	s.once(unobservedKey(region, w.Reason), diags, summary, sentence(w.Detail))
}

func unobservedKey(region string, reason fleet.Reason) string {
	return "unobserved/" + region + "/" + string(reason)
}

// lookOnce asks whether a region's runtime can be read, unless that was answered before.
// Who comes meanwhile waits: a thousand servers of a region are one question.
func (s *session) lookOnce(region string, ask func() (answered bool)) {
	s.mu.Lock()
	l := s.looks[region]
	if l == nil {
		l = &look{}
		if s.looks == nil {
			s.looks = map[string]*look{}
		}
		s.looks[region] = l
	}
	s.mu.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.answered && l.tries < mostLooks {
		l.tries++
		l.answered = ask()
	}
}

// checksHosts reports whether the region, as it is stored, checks whose its hosts are; asked
// once, and again where the daemon did not say.
func (s *session) checksHosts(ctx context.Context, client *api.Client, region string) bool {
	s.modes.Lock()
	defer s.modes.Unlock()
	checks, known := s.checks[region]
	if known {
		return checks
	}
	r, err := client.GetRegion(ctx, region)
	if err != nil && !has(err, fleet.CodeNotFound) {
		return false
	}
	if s.checks == nil {
		s.checks = map[string]bool{}
	}
	s.checks[region] = err == nil && r.DNS.Mode != "" && r.DNS.Mode != fleet.DNSNone
	return s.checks[region]
}

// wrongDaemon is the error of a daemon that serves another environment.
type wrongDaemon struct {
	want, got string
	err       error
}

func (e *wrongDaemon) Error() string { return e.summary() + ". " + e.detail() }

func (e *wrongDaemon) Unwrap() error { return e.err }

func (e *wrongDaemon) summary() string { return "The daemon serves another environment" }

func (e *wrongDaemon) detail() string {
	is := fmt.Sprintf("The provider's `environment` is %q, and the daemon serves %q.", e.want, e.got)
	if e.got == "" {
		is = fmt.Sprintf("The provider's `environment` is %q. %s", e.want, sentence(e.err.Error()))
	}
	return is + " Nothing was read or written. Point `endpoint` (or " + envEndpoint + ") at the daemon of that environment, or correct `environment` (or " + envEnvironment + ")."
}

// ourResource is what every resource here is.
type ourResource interface {
	resource.ResourceWithConfigure
	resource.ResourceWithIdentity
	resource.ResourceWithImportState
	resource.ResourceWithModifyPlan
	resource.ResourceWithValidateConfig
}

// identitySchema is of texts, each by its description, without which nothing is imported.
func identitySchema(texts map[string]string) identityschema.Schema {
	all := map[string]identityschema.Attribute{}
	for name, description := range texts {
		all[name] = identityschema.StringAttribute{RequiredForImport: true, Description: description}
	}
	return identityschema.Schema{Attributes: all}
}

// configured is the part of every resource that receives the session.
type configured struct{ session *session }

func (c *configured) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	c.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

func sessionOf(data any, diags *diag.Diagnostics) *session {
	if data == nil {
		return nil // core validates before it configures
	}
	s, ok := data.(*session)
	if !ok {
		diags.AddError("The provider handed over the wrong thing", fmt.Sprintf("A session was expected, %T came. This is a fault of the provider; please report it.", data))
	}
	return s
}
