package provider

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// sessionWith returns a session with a daemon that answers everything like this, and
// the count of its requests.
func sessionWith(t *testing.T, answer http.HandlerFunc) (*session, *atomic.Int32) {
	t.Helper()
	clearEnvironment(t)
	var asked atomic.Int32
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(w, r)
	}))
	t.Cleanup(web.Close)
	var diags diag.Diagnostics
	m := providerModel{Endpoint: types.StringValue(web.URL), Token: types.StringValue("t"), Environment: types.StringValue("staging")}
	s := m.session("test", &diags)
	if diags.HasError() {
		t.Fatal(diags)
	}
	return s, &asked
}

func version(v api.VersionInfo) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
}

func problem(code fleet.Code, detail string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", api.ContentTypeProblem)
		w.Header().Set("Retry-After", "3600") // longer than anybody waits
		w.WriteHeader(api.Status(code))
		_ = json.NewEncoder(w).Encode(api.Problem{Status: api.Status(code), Code: code, Detail: detail})
	}
}

func TestSession_asksTheDaemonOnceWhoItIs(t *testing.T) {
	s, asked := sessionWith(t, version(api.VersionInfo{Environment: "staging", Suffix: "-staging", Suffixes: fleet.DefaultSuffixes(), APIVersion: api.APIVersion}))
	if s.answering() != nil {
		t.Error("a plan would rely on a daemon that has not answered yet")
	}
	var diags diag.Diagnostics
	s.meet(t.Context(), &diags)
	for range 3 {
		if s.use(t.Context(), "Read", &diags) == nil || s.answering() == nil {
			t.Error("no client")
		}
	}
	if e, ok := s.serves(); !ok || e.Suffix != "-staging" {
		t.Errorf("environment %+v, %v", e, ok)
	}
	if len(diags) > 0 || asked.Load() != 1 {
		t.Errorf("%d requests, want one; %v", asked.Load(), diags)
	}
}

func TestSession_aDaemonOfAnotherEnvironmentIsRefused(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"the daemon says so":       problem(api.CodeWrongEnvironment, "this kurad serves environment \"production\""),
		"the daemon is too polite": version(api.VersionInfo{Environment: "production", APIVersion: api.APIVersion}),
	} {
		s, _ := sessionWith(t, answer)
		var diags diag.Diagnostics
		s.meet(t.Context(), &diags)
		if len(diags) != 1 || !strings.Contains(diags[0].Detail(), `"production"`) || !strings.Contains(diags[0].Detail(), "Nothing was read or written") {
			t.Errorf("%s: %v", name, diags)
			continue
		}
		if at, ok := diags[0].(diag.DiagnosticWithPath); !ok || !at.Path().Equal(path.Root("environment")) {
			t.Errorf("%s: not at environment: %v", name, diags[0])
		}
		if s.answering() != nil || s.use(t.Context(), "Read", &diags) != nil {
			t.Errorf("%s: it would be used", name)
		}
	}
}

func TestSession_aDaemonThatIsAwayIsNoErrorBeforeItIsNeededAndAskedOnceThen(t *testing.T) {
	s, asked := sessionWith(t, problem(fleet.CodeUnavailable, "starting"))
	var diags diag.Diagnostics
	s.meet(t.Context(), &diags)
	if len(diags) > 0 {
		t.Errorf("nobody needed it yet: %v", diags)
	}
	for range 5 {
		if s.use(t.Context(), "Read server acme/eu", &diags) != nil {
			t.Error("it would be used")
		}
	}
	if !diags.HasError() || asked.Load() != 1 {
		t.Errorf("%v after %d requests, want an error after one", diags, asked.Load())
	}
}

func TestSession_aRefusedTokenIsAnErrorAtTheToken(t *testing.T) {
	s, _ := sessionWith(t, problem(fleet.CodeUnauthorized, "the token was revoked"))
	var diags diag.Diagnostics
	s.meet(t.Context(), &diags)
	at, ok := diags[0].(diag.DiagnosticWithPath)
	if !ok || !at.Path().Equal(path.Root("token")) || !strings.Contains(diags[0].Detail(), "revoked") {
		t.Errorf("%v", diags)
	}
}

func TestSession_aDaemonOfAnotherAPIIsAWarning(t *testing.T) {
	s, _ := sessionWith(t, version(api.VersionInfo{Environment: "staging", Version: "0.9.0", APIVersion: "v0"}))
	var diags diag.Diagnostics
	s.meet(t.Context(), &diags)
	if diags.HasError() || len(diags) != 1 || !strings.Contains(diags[0].Detail(), "kurad 0.9.0 speaks v0") {
		t.Errorf("%v", diags)
	}
}

func TestSession_saysTheSameThingOnce(t *testing.T) {
	s := &session{}
	var diags diag.Diagnostics
	for range 3 {
		s.once("held/eu", &diags, "held", "because")
		s.once("held/us", &diags, "held", "because of something else")
	}
	if len(diags) != 2 {
		t.Errorf("%d warnings, want one for each key", len(diags))
	}
}
