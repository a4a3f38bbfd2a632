package fleet

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func mustEnvironment(t testing.TB, name, suffix string, others map[string]string) Environment {
	t.Helper()
	e, err := NewEnvironment(name, suffix, others)
	if err != nil {
		t.Fatalf("NewEnvironment(%q, %q, %v): %v", name, suffix, others, err)
	}
	return e
}

// wantError fails unless err is a fleet.Error that callers may fix and whose text holds all of texts.
func wantError(t *testing.T, err error, texts ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("got no error, want one with %q", texts)
	}
	if CodeOf(err) != CodeInvalid {
		t.Errorf("got code %q of %v, want %q", CodeOf(err), err, CodeInvalid)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got error\n  %v\nwithout %q", err, text)
		}
	}
}

func TestH1_environmentsHaveTheirSuffix(t *testing.T) {
	for _, c := range []struct {
		name, suffix string
		others       map[string]string
		want         string
	}{
		{name: "production", want: ""},
		{name: "staging", want: "-staging"},
		{name: "canary", want: "-canary"},
		{name: "staging", suffix: "-staging", want: "-staging"},
		{name: "preview", suffix: "-preview", want: "-preview"},
		{name: "preview", suffix: "-pre-view", others: map[string]string{"preview": "-pre-view"}, want: "-pre-view"},
		{name: "production", others: map[string]string{"preview": "-preview", "canary": "-canary"}, want: ""},
	} {
		e := mustEnvironment(t, c.name, c.suffix, c.others)
		if e.Name != c.name || e.Suffix != c.want {
			t.Errorf("NewEnvironment(%q, %q): got %q with suffix %q, want suffix %q", c.name, c.suffix, e.Name, e.Suffix, c.want)
		}
		want := DefaultSuffixes()
		want[c.name] = c.want
		for name, suffix := range c.others {
			want[name] = suffix
		}
		if d := cmp.Diff(want, e.Suffixes); d != "" {
			t.Errorf("NewEnvironment(%q, %q): suffixes (-want +got)\n%s", c.name, c.suffix, d)
		}
	}
}

func TestH1_environmentsThatCouldRenderHostsOfOthersAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		name, suffix string
		others       map[string]string
		want         []string
	}{
		"no name":                       {name: "", want: []string{"environment", "empty"}},
		"illegal name":                  {name: "Pre View", want: []string{`"P"`}},
		"staging with another suffix":   {name: "staging", suffix: "-stg", want: []string{`environment "staging"`, `always "-staging"`, "leave the suffix out"}},
		"production with a suffix":      {name: "production", suffix: "-live", want: []string{`environment "production"`, `"-live"`}},
		"no dash":                       {name: "preview", suffix: "preview", want: []string{`environment "preview"`, "does not start with", `write "-preview"`}},
		"illegal character":             {name: "preview", suffix: "-pre_view", want: []string{`"-pre_view"`, "a-z, 0-9"}},
		"upper case":                    {name: "preview", suffix: "-Preview", want: []string{`"-Preview"`}},
		"only a dash":                   {name: "preview", suffix: "-", want: []string{`"-"`}},
		"ends in a dash":                {name: "preview", suffix: "-pre-", want: []string{`"-pre-"`}},
		"a dot":                         {name: "preview", suffix: "-pre.x", want: []string{`"-pre.x"`}},
		"too long":                      {name: "preview", suffix: "-" + strings.Repeat("x", 62), want: []string{"63 characters", "shorten"}},
		"equal to a built-in":           {name: "preview", suffix: "-staging", want: []string{`environment "preview"`, `environment "staging"`, "choose another suffix"}},
		"ends in a built-in":            {name: "preview", suffix: "-eu-staging", want: []string{`environment "staging"`}},
		"a built-in ends in it":         {name: "preview", suffix: "-next", want: []string{"while they are replaced"}},
		"ends as a retired container":   {name: "preview", suffix: "-very-old", want: []string{"while they are replaced"}},
		"another without suffix":        {name: "production", others: map[string]string{"preview": ""}, want: []string{`environment "preview"`, "needs a suffix"}},
		"another ends in ours":          {name: "preview", suffix: "-view", others: map[string]string{"demo": "-pre-view"}, want: []string{`environment "demo"`, `environment "preview"`}},
		"ours ends in another":          {name: "preview", suffix: "-pre-view", others: map[string]string{"demo": "-view"}, want: []string{`environment "demo"`, `environment "preview"`}},
		"another is named illegally":    {name: "production", others: map[string]string{"de mo": "-demo"}, want: []string{`"de mo"`, "shares the zone"}},
		"another has two suffixes":      {name: "production", others: map[string]string{"staging": "-stg"}, want: []string{`environment "staging"`, "two suffixes", `"-stg"`}},
		"ours is declared with another": {name: "preview", suffix: "-preview", others: map[string]string{"preview": "-pre"}, want: []string{`environment "preview"`, "two suffixes"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := NewEnvironment(c.name, c.suffix, c.others)
			wantError(t, err, c.want...)
		})
	}
}

func TestL25_unknownEnvironmentNeverFallsThroughToProduction(t *testing.T) {
	_, err := NewEnvironment("preview", "", nil)
	wantError(t, err, `environment "preview"`, "needs a suffix of its own", "-preview", "would be production's")

	for _, e := range []Environment{{}, {Name: "preview"}} {
		_, err := e.RenderHost("{account_handle}{env_suffix}.kura.dev", HostInput{AccountHandle: "acme"})
		wantError(t, err, "production's")
		err = HostTemplate{Name: "main", Pattern: "{account_handle}{env_suffix}.kura.dev"}.Validate(e)
		wantError(t, err, "production's")
		_, err = Render(e, Gathered{Account: &Account{ID: "acme"}, Region: &Region{Name: "eu"}})
		wantError(t, err, "acme/eu", "production's")
	}
}

func TestH2_environmentWithoutADeclaredSetKnowsTheBuiltInOnes(t *testing.T) {
	e := Environment{Name: "production"}
	if name, suffix, found := e.Collision("acme-canary"); !found || name != "canary" || suffix != "-canary" {
		t.Errorf("Collision(acme-canary): got %q %q %v, want canary", name, suffix, found)
	}
	if name, _, found := e.Collision("acme-canaryx"); found {
		t.Errorf("Collision(acme-canaryx): got %q, want none", name)
	}
}
