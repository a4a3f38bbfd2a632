package fleet

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestP13_theDocumentSaysWhereTheInstanceIsAndHowToApplyIt(t *testing.T) {
	in := sampleKube(t)
	in.region.Kubernetes.ForceConflicts, in.latest.RestartMark = true, "m1"
	got := in.render(t)
	got.Spec, got.Revision = nil, ""
	want := KubeDocument{
		Cluster: "us-east", Namespace: "kura", Name: "kura-acc-1-us-east-1", Force: true,
		Labels: map[string]string{
			"app.kubernetes.io/name": "kura", "app.kubernetes.io/instance": "kura-acc-1-us-east-1",
			"tuist.dev/account": "acc-1", "tuist.dev/region": "us", "dev.kura/environment": "staging",
		},
		Annotations: map[string]string{"dev.kura/restart-mark": "m1"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A client that reads what was written compares numbers by their type too.
func TestP13_manifestsSurviveJSONAndShareNothing(t *testing.T) {
	in := sampleKube(t)
	in.region.Location = &Location{Latitude: 40, Longitude: -74.25}
	in.region.Kubernetes.ExtraSpec = `{"a":[1,2.0,2.5,-0,-0.0,1e3,1e30,9223372036854775807,9223372036854775808,[[{"b":1}]],true,"x"]}`
	doc := in.render(t)
	if diff := cmp.Diff(doc.Manifest(), throughJSON(t, doc.Manifest())); diff != "" {
		t.Errorf("written and read again (-was +is)\n%s", diff)
	}
	if diff := cmp.Diff(doc.Spec, throughJSON(t, doc.Spec)); diff != "" {
		t.Errorf("the spec, written and read again (-was +is)\n%s", diff)
	}
	if doc.Spec["cloudflarePoolLatitude"] != int64(40) || doc.Spec["cloudflarePoolLongitude"] != -74.25 {
		t.Errorf("location: got %v", doc.Spec)
	}
	before := throughJSON(t, doc.Spec)
	spoil(doc.Manifest())
	if diff := cmp.Diff(before, throughJSON(t, doc.Spec)); diff != "" {
		t.Errorf("the manifest shares with the document\n%s", diff)
	}
	if doc.Labels["tuist.dev/region"] != "us" {
		t.Error("the manifest shares its labels with the document")
	}
}

// spoil changes every value of JSON data in place.
func spoil(value any) {
	switch x := value.(type) {
	case map[string]any:
		for key := range x {
			spoil(x[key])
			x[key] = "spoilt"
		}
	case []any:
		for i := range x {
			spoil(x[i])
			x[i] = "spoilt"
		}
	}
}

func TestP13_theRevisionIsAmongTheAnnotationsOfTheManifestOnly(t *testing.T) {
	doc := sampleKube(t).render(t)
	metadata, _ := doc.Manifest()["metadata"].(map[string]any)
	if diff := cmp.Diff(map[string]any{KubeAnnotationRevision: doc.Revision}, metadata["annotations"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if doc.Annotations != nil {
		t.Errorf("the document's own annotations: %v", doc.Annotations)
	}
}

// Whatever is empty is no field at all: a default of the server's, or what another manager
// sets there, stays.
func TestP13_emptyFieldsAreLeftOut(t *testing.T) {
	in := sampleKube(t)
	in.region.Hosts, in.region.Location = RegionHosts{Public: "main"}, nil
	in.region.Kubernetes = &Kubernetes{
		Cluster: "c", Image: "kura", Storage: &Storage{}, NodeSelector: map[string]string{}, Tolerations: []Toleration{},
		Env: map[string]string{}, EnvFrom: []string{}, ExtraSpec: "{}",
	}
	in.intent.Overrides = &Overrides{Kubernetes: &KubernetesOverrides{Env: map[string]string{}}}
	in.status = &Status{}
	want := map[string]any{
		"accountHandle": "acme", "tenantID": "acc-1", "region": "us", "image": "kura:1.2.0", "publicHost": "acme-us-east-1-staging.kura.example.dev",
	}
	if diff := cmp.Diff(want, in.render(t).Spec); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	// A place on the equator is no empty field.
	in.region.Location = &Location{}
	if got := in.render(t).Spec; got["cloudflarePoolLatitude"] != int64(0) || got["cloudflarePoolLongitude"] != int64(0) {
		t.Errorf("got %v", got)
	}
}

// What extra_spec may not hold is exactly what is rendered.
func TestP13_kubeFieldsAreTheRenderedOnes(t *testing.T) {
	in := sampleKube(t)
	in.region.Kubernetes.ExtraSpec = ""
	if diff := cmp.Diff(sortedKeys(kubeFields()), sortedKeys(in.render(t).Spec)); diff != "" {
		t.Errorf("(-listed +rendered)\n%s", diff)
	}
}

func TestP13_theImageIsTheRegionsAtTheTagOfTheLatestDeployment(t *testing.T) {
	for image, want := range map[string]string{
		"kura":                            "kura:2",
		"ghcr.io/kura/kura":               "ghcr.io/kura/kura:2",
		"localhost:5001/kura":             "localhost:5001/kura:2",
		"localhost:5001/kura:{image_tag}": "localhost:5001/kura:2",
		"ghcr.io/kura/kura-x:{image_tag}": "ghcr.io/kura/kura-x:2",
	} {
		in := sampleKube(t)
		in.region.Kubernetes.Image, in.latest.ImageTag = image, "2"
		d, err := in.unchecked(nil)
		if err != nil || d.Kubernetes.Spec["image"] != want {
			t.Errorf("%s: got %v, %v, want %s", image, d.Kubernetes, err, want)
		}
	}
}

func TestK7_H8_hostsThatStayRoutedAreAliases(t *testing.T) {
	const now = "acme-us-east-1-staging.kura.example.dev"
	published := func(url string, aliases ...string) *Status {
		s := &Status{PublishedURL: url}
		for _, host := range aliases {
			s.Aliases = append(s.Aliases, Alias{Host: host})
		}
		return s
	}
	for name, c := range map[string]struct {
		status *Status
		want   []any
	}{
		"before the first turn":            {nil, nil},
		"nothing published yet":            {published(""), nil},
		"published as declared":            {published("https://" + now), nil},
		"published on another port":        {published("https://" + now + ":8443"), nil},
		"the old host until it switched":   {published("https://old.x:8443"), []any{"old.x"}},
		"the old host once it switched":    {published("https://"+now, "old.x"), []any{"old.x"}},
		"a second move before the first":   {published("https://old.x", "older.x"), []any{"old.x", "older.x"}},
		"sorted":                           {published("https://b.x", "c.x", "a.x"), []any{"a.x", "b.x", "c.x"}},
		"each once":                        {published("https://a.x", "a.x", "a.x"), []any{"a.x"}},
		"back to a host that is an alias":  {published("https://old.x", now), []any{"old.x"}},
		"a host that serves gRPC now":      {published("https://"+now, "grpc-"+now), nil},
		"a host that is the global one":    {published("https://acme-staging.global.example.dev"), nil},
		"an alias that names nothing":      {published("", ""), nil},
		"a url that names no host":         {published("https:///up"), nil},
		"a url that cannot be read at all": {published(":", "old.x"), []any{"old.x"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := sampleKube(t)
			in.status = c.status
			got, _ := in.render(t).Spec["clientHostAliases"].([]any)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The published url switches in a write of the status, and the object is not applied for it.
func TestH8_P15_theRevisionIsTheSameBeforeAndAfterTheSwitch(t *testing.T) {
	revision := func(s Status) string {
		in := sampleKube(t)
		in.status = &s
		return in.render(t).Revision
	}
	const moved = "https://acme-us-east-1-staging.kura.example.dev"
	before := revision(Status{PublishedURL: "https://old.x"})
	after := revision(Status{PublishedURL: moved, Aliases: []Alias{{Host: "old.x"}}})
	ended := revision(Status{PublishedURL: moved})
	if before != after || after == ended {
		t.Errorf("before %s, after %s, when the alias has ended %s", before, after, ended)
	}
}

// A new handle changes hosts and nothing of the identity, the labels or the storage.
func TestH8_L33_aNewHandleMovesHostsOfAKuraInstanceOnly(t *testing.T) {
	in := sampleKube(t)
	in.status = nil
	before := in.render(t)
	in.account.Handle = "umbrella"
	in.status = &Status{PublishedURL: "https://acme-us-east-1-staging.kura.example.dev"}
	after := in.render(t)
	want := []string{"spec/accountHandle", "spec/clientHostAliases", "spec/globalPublicHost", "spec/grpcPublicHost", "spec/publicHost"}
	if got := changedPaths(before, after); !slices.Equal(got, want) {
		t.Errorf("changed %q, want %q", got, want)
	}
	if diff := cmp.Diff([]any{"acme-us-east-1-staging.kura.example.dev"}, after.Spec["clientHostAliases"]); diff != "" {
		t.Errorf("the old host (-want +got)\n%s", diff)
	}
}

func TestP13_variablesComeFromSetsAndFromEnv(t *testing.T) {
	plain := func(name, value string) any { return map[string]any{"name": name, "value": value} }
	secret := func(name, set string) any {
		return map[string]any{"name": name, "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": set, "key": name}}}
	}
	sets := map[string][]string{"one": {"B", "A"}, "two": {"C", "B"}, "none": {}}
	for name, c := range map[string]struct {
		env, over map[string]string
		from      []string
		mark      string
		want      []any
	}{
		"none":                      {},
		"sorted":                    {env: map[string]string{"B": "2", "A": "1"}, want: []any{plain("A", "1"), plain("B", "2")}},
		"an empty value":            {env: map[string]string{"A": ""}, want: []any{map[string]any{"name": "A"}}},
		"no token":                  {env: map[string]string{"A": "{x} $(B)"}, want: []any{plain("A", "{x} $(B)")}},
		"an override wins":          {env: map[string]string{"A": "1", "B": "2"}, over: map[string]string{"A": "3"}, want: []any{plain("A", "3"), plain("B", "2")}},
		"an override empties":       {env: map[string]string{"A": "1"}, over: map[string]string{"A": ""}, want: []any{map[string]any{"name": "A"}}},
		"a set":                     {from: []string{"one"}, want: []any{secret("A", "one"), secret("B", "one")}},
		"a later set wins":          {from: []string{"one", "two"}, want: []any{secret("A", "one"), secret("B", "two"), secret("C", "two")}},
		"in the other order":        {from: []string{"two", "one"}, want: []any{secret("A", "one"), secret("B", "one"), secret("C", "two")}},
		"a set without variables":   {from: []string{"none"}},
		"env wins over a set":       {env: map[string]string{"A": "1"}, from: []string{"one"}, want: []any{plain("A", "1"), secret("B", "one")}},
		"overrides win over a set":  {over: map[string]string{"A": "1"}, from: []string{"one"}, want: []any{plain("A", "1"), secret("B", "one")}},
		"a restart mark is another": {env: map[string]string{"L": "1"}, mark: "m", want: []any{plain("KURA_RESTART_MARK", "m"), plain("L", "1")}},
	} {
		t.Run(name, func(t *testing.T) {
			in := sampleKube(t)
			in.env.VariableSets, in.latest.RestartMark = sets, c.mark
			in.region.Kubernetes.Env, in.region.Kubernetes.EnvFrom = c.env, c.from
			in.intent.Overrides = &Overrides{Kubernetes: &KubernetesOverrides{Env: c.over}}
			got, _ := in.render(t).Spec["extraEnv"].([]any)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestP13_tolerationsAreSortedAndWithoutEmptyFields(t *testing.T) {
	in := sampleKube(t)
	in.region.Kubernetes.Tolerations = []Toleration{{Key: "b"}, {Key: "a", Value: "2"}, {Operator: "Exists"}, {Key: "a", Value: "1", Effect: "NoExecute"}, {Key: "b"}}
	want := []any{
		map[string]any{"operator": "Exists"}, map[string]any{"key": "a", "value": "1", "effect": "NoExecute"}, map[string]any{"key": "a", "value": "2"}, map[string]any{"key": "b"},
	}
	if diff := cmp.Diff(want, in.render(t).Spec["tolerations"]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if in.region.Kubernetes.Tolerations[0].Key != "b" {
		t.Error("the region itself was changed")
	}
}

// What an earlier daemon accepted in extra_spec renders as it did, until the field is
// declared where it belongs now.
func TestP13_aFieldOfOursInAnOldExtraSpecStaysUntilItIsDeclared(t *testing.T) {
	in := sampleKube(t)
	in.region.Kubernetes.Replicas, in.region.Kubernetes.ExtraSpec = 0, `{"replicas":7}`
	for _, want := range []int64{7, 3} {
		d, err := in.unchecked(nil)
		if err != nil || !reflect.DeepEqual(d.Kubernetes.Spec["replicas"], want) {
			t.Errorf("got %v, %v, want %d", d.Kubernetes, err, want)
		}
		in.region.Kubernetes.Replicas = 3
	}
}

func TestP13_whatDoesNotRenderForKubernetesSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(in *kubeInput)
		want []string
	}{
		"unknown set":      {func(in *kubeInput) { in.region.Kubernetes.EnvFrom = []string{"s3"} }, []string{"env_from", `no variable set named "s3"`, "known: secrets, tracing", "--env-set"}},
		"no sets at all":   {func(in *kubeInput) { in.env.VariableSets = nil }, []string{`"secrets"`, "known: none"}},
		"image":            {func(in *kubeInput) { in.region.Kubernetes.Image = "{x}" }, []string{`"{x}" is no known token`, "{image_tag}"}},
		"long image":       {func(in *kubeInput) { in.intent.ImageTag = strings.Repeat("1", 250) }, []string{"image tag", "268 characters", "at most 256"}},
		"extra_spec":       {func(in *kubeInput) { in.region.Kubernetes.ExtraSpec = "[]" }, []string{"extra_spec", "no JSON object"}},
		"null":             {func(in *kubeInput) { in.region.Kubernetes.ExtraSpec = `{"a":null}` }, []string{"extra_spec", `null as "a"`}},
		"instance":         {func(in *kubeInput) { in.account.ID = strings.Repeat("a", 60) }, []string{"at most 53"}},
		"location is none": {func(in *kubeInput) { in.region.Location.Longitude = nan() }, []string{"NaN"}},
	} {
		t.Run(name, func(t *testing.T) {
			in := sampleKube(t)
			c.edit(&in)
			_, err := in.unchecked(in.status)
			wantError(t, err, append(c.want, "does not render")...)
		})
	}
}
