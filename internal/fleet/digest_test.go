package fleet

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// golden is a file of testdata/render: what an earlier daemon stored, and what it
// rendered from it.
type golden struct {
	Environment  string                  `json:"environment"`
	Suffixes     map[string]string       `json:"suffixes,omitempty"`
	VariableSets map[string][]string     `json:"variable_sets,omitempty"`
	Account      Account                 `json:"account"`
	Region       Region                  `json:"region"`
	Templates    map[string]HostTemplate `json:"templates"`
	Intent       Intent                  `json:"intent"`
	Latest       Deployment              `json:"latest"`
	Status       *Status                 `json:"status,omitempty"`
	Want         goldenWant              `json:"want"`
}

type goldenWant struct {
	Instance  string            `json:"instance"`
	Hosts     Hosts             `json:"hosts"`
	URL       string            `json:"url"`
	GRPCURL   string            `json:"grpc_url,omitempty"`
	GlobalURL string            `json:"global_url,omitempty"`
	Revision  string            `json:"revision"`
	Digests   map[string]string `json:"digests,omitempty"`
	Manifest  map[string]any    `json:"manifest,omitempty"`
}

// A digest that changes here would replace every container, or apply every KuraInstance, of
// every fleet when its daemon is upgraded: look for the cause before you reach for -update.
func TestP13_anUpgradedDaemonRendersOldInputsToTheSameRevision(t *testing.T) {
	files, err := filepath.Glob("testdata/render/*.json")
	if err != nil || len(files) < 3 {
		t.Fatalf("got %v, %v, want the golden files", files, err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var g golden
			if err := json.Unmarshal(b, &g); err != nil {
				t.Fatal(err)
			}
			e := mustEnvironment(t, g.Environment, g.Suffixes[g.Environment], g.Suffixes)
			e.VariableSets = g.VariableSets
			if err := g.Region.ValidateFor(e); err != nil {
				t.Fatal(err)
			}
			d, err := Render(e, Gathered{Account: &g.Account, Region: &g.Region, Templates: g.Templates, Intent: g.Intent, Latest: &g.Latest, Status: g.Status})
			if err != nil {
				t.Fatal(err)
			}
			got := goldenWant{Instance: d.Instance, Hosts: d.Hosts, URL: d.URL, GRPCURL: d.GRPCURL, GlobalURL: d.GlobalURL, Revision: d.Revision}
			if d.Containers != nil {
				got.Digests = map[string]string{}
				for _, s := range d.Containers.Services {
					got.Digests[s.Service] = s.Digest
				}
			}
			if d.Kubernetes != nil {
				got.Manifest, _ = throughJSON(t, d.Kubernetes.Manifest()).(map[string]any)
			}
			if *update {
				g.Want = got
				b, err := json.MarshalIndent(g, "", "  ")
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, append(b, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if g.Want.Manifest != nil { // its numbers as Kubernetes reads them
				g.Want.Manifest, _ = throughJSON(t, g.Want.Manifest).(map[string]any)
			}
			if diff := cmp.Diff(g.Want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// rendered returns the digest of the cache service of the sample region, edited.
func rendered(t *testing.T, edit func(s *Service, o *ServiceOverride)) string {
	t.Helper()
	r, in := sampleRegion(), sampleIntent()
	in.Ports = maps.Clone(in.Ports)
	in.Ports["cache/x"] = 20009
	s, o := r.Containers.Services["cache"], ServiceOverride{}
	edit(&s, &o)
	r.Containers.Services["cache"] = s
	in.Overrides = &Overrides{Containers: &ContainerOverrides{Services: map[string]ServiceOverride{"cache": o}}}
	d := render(t, staging(t), sampleAccount(), r, in, Deployment{})
	for _, s := range d.Containers.Services {
		if s.Service == "cache" {
			if s.Digest == "" || len(d.Revision) != 64 {
				t.Fatalf("digest %q, revision %q", s.Digest, d.Revision)
			}
			return s.Digest
		}
	}
	t.Fatal("the service was not rendered")
	return ""
}

// Every declared field has a row here: the test fails for one that has none.
func TestP13_L3_L50_everyRenderedFieldChangesTheDigest(t *testing.T) {
	type edit = func(s *Service, o *ServiceOverride)
	port := func(f func(p *Port)) edit {
		return func(s *Service, _ *ServiceOverride) {
			p := s.Ports["http"]
			f(&p)
			s.Ports["http"] = p
		}
	}
	service := func(f func(s *Service)) edit { return func(s *Service, _ *ServiceOverride) { f(s) } }
	over := func(f func(o *ServiceOverride)) edit { return func(_ *Service, o *ServiceOverride) { f(o) } }
	changes := map[string]edit{
		"Service.Image":       service(func(s *Service) { s.Image = "x:{image_tag}" }),
		"Service.Command":     service(func(s *Service) { s.Command = []string{"--name={instance}", "serve"} }),
		"Service.Env":         service(func(s *Service) { s.Env = map[string]string{} }),
		"Service.EnvFrom":     service(func(s *Service) { s.EnvFrom = []string{"common", "secrets"} }), // the later one wins
		"Service.Volumes":     service(func(s *Service) { s.Volumes = s.Volumes[:1] }),
		"Service.Ports":       service(func(s *Service) { s.Ports["x"] = Port{Container: 1} }),
		"Service.Labels":      service(func(s *Service) { s.Labels = nil }),
		"Service.User":        service(func(s *Service) { s.User = "" }),
		"Service.Memory":      service(func(s *Service) { s.Memory = "257Mi" }),
		"Service.CPUs":        service(func(s *Service) { s.CPUs = 0.6 }),
		"Service.StopSignal":  service(func(s *Service) { s.StopSignal = "" }),
		"Service.GracePeriod": service(func(s *Service) { s.GracePeriod++ }),

		"Volume.Name":     service(func(s *Service) { s.Volumes[0].Name = "other" }),
		"Volume.HostPath": service(func(s *Service) { s.Volumes[1].HostPath = "/other" }),
		"Volume.Path":     service(func(s *Service) { s.Volumes[0].Path = "/other" }),
		"Volume.ReadOnly": service(func(s *Service) { s.Volumes[0].ReadOnly = true }),

		"Port.Container": port(func(p *Port) { p.Container++ }),
		"Port.Host":      port(func(p *Port) { p.Host = 1 }),
		"Port.Bind":      port(func(p *Port) { p.Bind = "127.0.0.1" }),
		"Port.Protocol":  port(func(p *Port) { p.Protocol = "udp" }),

		"ServiceOverride.Env":    over(func(o *ServiceOverride) { o.Env = map[string]string{"A": ""} }),
		"ServiceOverride.Memory": over(func(o *ServiceOverride) { o.Memory = "1Gi" }),
		"ServiceOverride.CPUs":   over(func(o *ServiceOverride) { o.CPUs = 3 }),
	}
	same := map[string]edit{
		// Only what happens when the server is destroyed.
		"Volume.Retain": service(func(s *Service) { s.Volumes[0].Retain = false }),
		// Which port is the url: that is a url move (P15), the container stays.
		"Port.Endpoint": port(func(p *Port) { p.Endpoint = "" }),
	}
	base := rendered(t, func(*Service, *ServiceOverride) {})
	for _, typ := range []reflect.Type{reflect.TypeFor[Service](), reflect.TypeFor[Volume](), reflect.TypeFor[Port](), reflect.TypeFor[ServiceOverride]()} {
		for i := range typ.NumField() {
			field := typ.Name() + "." + typ.Field(i).Name
			switch {
			case changes[field] != nil:
				if rendered(t, changes[field]) == base {
					t.Errorf("%s does not change the digest", field)
				}
			case same[field] != nil:
				if rendered(t, same[field]) != base {
					t.Errorf("%s changes the digest", field)
				}
			default:
				t.Errorf("%s is not tested: does it change the digest?", field)
			}
		}
	}
}

func TestP13_everyFieldOfTheDocumentChangesItsDigest(t *testing.T) {
	base := ServiceDocument{Ports: []PortDocument{{Name: "a"}}, Volumes: []VolumeDocument{{Path: "/a"}}}
	mutate := func(t *testing.T, v reflect.Value) {
		t.Helper()
		switch v.Kind() {
		case reflect.String:
			v.SetString("changed")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(7)
		case reflect.Float64:
			v.SetFloat(7)
		case reflect.Slice:
			v.Set(reflect.Append(v, reflect.Zero(v.Type().Elem())))
		case reflect.Map:
			v.Set(reflect.ValueOf(map[string]string{"a": ""}))
		default:
			t.Fatalf("a field of kind %s is not tested", v.Kind())
		}
	}
	check := func(name string, of func(d *ServiceDocument) reflect.Value) {
		for i := range of(&ServiceDocument{Ports: make([]PortDocument, 1), Volumes: make([]VolumeDocument, 1)}).NumField() {
			d := base
			d.Ports, d.Volumes = slices.Clone(base.Ports), slices.Clone(base.Volumes)
			v := of(&d)
			field := v.Type().Field(i)
			mutate(t, v.Field(i))
			if changed := DigestService(d) != DigestService(base); changed == (field.Tag.Get("json") == "-") {
				t.Errorf("%s.%s: digest changed: %v", name, field.Name, changed)
			}
		}
	}
	check("ServiceDocument", func(d *ServiceDocument) reflect.Value { return reflect.ValueOf(d).Elem() })
	check("PortDocument", func(d *ServiceDocument) reflect.Value { return reflect.ValueOf(&d.Ports[0]).Elem() })
	check("VolumeDocument", func(d *ServiceDocument) reflect.Value { return reflect.ValueOf(&d.Volumes[0]).Elem() })
}

func TestP13_L4_orderOfUnorderedInputsDoesNotChangeTheDigest(t *testing.T) {
	word := rapid.StringMatching(`[a-z]{1,6}`)
	rapid.Check(t, func(t *rapid.T) {
		dict := func(label string) map[string]string { return rapid.MapOfN(word, word, 0, 6).Draw(t, label) }
		paths := rapid.SliceOfNDistinct(word, 0, 6, rapid.ID[string]).Draw(t, "paths")
		d := ServiceDocument{Service: "cache", Env: dict("env"), Labels: dict("labels")}
		for _, name := range paths {
			d.Ports = append(d.Ports, PortDocument{Name: name, Container: len(name)})
			d.Volumes = append(d.Volumes, VolumeDocument{Source: "v", Path: "/" + name})
		}
		shuffled := d
		shuffled.Ports, shuffled.Volumes = rapid.Permutation(d.Ports).Draw(t, "ports"), rapid.Permutation(d.Volumes).Draw(t, "volumes")
		// The same maps, filled in another order.
		shuffled.Env, shuffled.Labels = map[string]string{}, map[string]string{}
		for _, k := range slices.Backward(sortedKeys(d.Env)) {
			shuffled.Env[k] = d.Env[k]
		}
		for _, k := range slices.Backward(sortedKeys(d.Labels)) {
			shuffled.Labels[k] = d.Labels[k]
		}
		if a, b := DigestService(d), DigestService(shuffled); a != b {
			t.Fatalf("%+v and %+v differ: %s, %s", d, shuffled, a, b)
		}
	})
	base := rendered(t, func(*Service, *ServiceOverride) {})
	if got := rendered(t, func(s *Service, _ *ServiceOverride) { slices.Reverse(s.Volumes) }); got != base {
		t.Error("the order of volumes changed the digest")
	}
	if got := rendered(t, func(s *Service, _ *ServiceOverride) {
		s.Labels = maps.Clone(s.Labels)
		s.EnvFrom = slices.Clone(s.EnvFrom)
	}); got != base {
		t.Error("equal copies changed the digest")
	}
}

func TestP13_pullPolicyAndDefaultsWrittenOutAreNoChange(t *testing.T) {
	base := render(t, staging(t), sampleAccount(), sampleRegion(), sampleIntent(), Deployment{})
	r := sampleRegion().WithDefaults()
	r.Containers.Pull = PullNever
	r.DisplayName, r.StallAfter, r.Paused, r.Labels = "other", Duration(time.Hour), true, nil
	if got := render(t, staging(t), sampleAccount(), r, sampleIntent(), Deployment{}); got.Revision != base.Revision {
		t.Error("the revision changed")
	}
}

func TestP12_restartMarkChangesTheRevision(t *testing.T) {
	for _, r := range []Region{sampleRegion(), kubernetesRegion()} {
		a := render(t, staging(t), sampleAccount(), r, sampleIntent(), Deployment{})
		b := render(t, staging(t), sampleAccount(), r, sampleIntent(), Deployment{RestartMark: "m"})
		if a.Revision == b.Revision {
			t.Errorf("region %s: the revision stayed", r.Name)
		}
	}
}
