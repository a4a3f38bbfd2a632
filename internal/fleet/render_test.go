package fleet

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func render(t *testing.T, e Environment, a Account, r Region, in Intent, latest Deployment) Desired {
	t.Helper()
	d, err := Render(e, Gathered{Account: &a, Region: &r, Templates: sampleTemplates(), Intent: in, Latest: &latest})
	if err != nil {
		t.Fatalf("Render: %v", err)
	}
	return d
}

func staging(t testing.TB) Environment {
	t.Helper()
	e := mustEnvironment(t, "staging", "", nil)
	e.VariableSets = map[string][]string{"secrets": {"LICENSE"}, "tracing": {"OTEL_URL", "OTEL_TOKEN"}}
	return e
}

func TestP13_everyTokenIsRendered(t *testing.T) {
	d := render(t, staging(t), sampleAccount(), sampleRegion(), sampleIntent(), Deployment{ImageTag: "1.3.0", RestartMark: "m1"})
	if d.ImageTag != "1.3.0" {
		t.Errorf("image tag: got %q, want the latest deployment's", d.ImageTag)
	}
	wantHosts := Hosts{
		Public: "acme-eu-central-1-staging.kura.example.dev", GRPC: "grpc-acme-eu-central-1-staging.kura.example.dev",
		Global: "acme-staging.global.example.dev",
	}
	if diff := cmp.Diff(wantHosts, d.Hosts); diff != "" {
		t.Errorf("hosts (-want +got)\n%s", diff)
	}
	for _, c := range [][2]string{
		{d.Instance, "kura-acc-1-eu-central-1"},
		{d.URL, "https://acme-eu-central-1-staging.kura.example.dev:20001"},
		{d.GRPCURL, "https://grpc-acme-eu-central-1-staging.kura.example.dev:20002"},
		{d.GlobalURL, "https://acme-staging.global.example.dev:20001"},
	} {
		if c[0] != c[1] {
			t.Errorf("got %q, want %q", c[0], c[1])
		}
	}
	want := &ContainerDocument{Endpoint: "local", Pull: PullAlways, Services: []ServiceDocument{
		{
			Service: "cache", Name: "kura-acc-1-eu-central-1-cache-staging", Image: "registry.example.dev:5000/kura/cache:1.3.0", Carrier: true,
			Command: []string{"serve", "--name=kura-acc-1-eu-central-1", `--json={"a":1}`},
			Env: map[string]string{
				"HOST": wantHosts.Public, "GRPC": wantHosts.GRPC + ":20002", "GLOBAL": wantHosts.Global, "PORT": "20001",
				"WHO": "acc-1/acme eu-central-1 eu staging-staging 1.3.0",
			},
			EnvFrom: []string{"secrets", "common"},
			Volumes: []VolumeDocument{
				{Source: "/srv/kura/certs/acc-1", HostPath: true, Path: "/certs", ReadOnly: true},
				{Source: "kura-acc-1-eu-central-1-data-staging", Path: "/var/lib/kura", Retain: true},
			},
			Ports: []PortDocument{
				{Name: "grpc", Container: 9443, Host: 20002, Bind: "127.0.0.1", Protocol: "tcp"},
				{Name: "http", Container: 8443, Host: 20001, Protocol: "tcp"},
			},
			Labels: map[string]string{"traefik.rule": "Host(" + wantHosts.Public + ")"},
			User:   "1000:1000", MemoryBytes: 256 << 20, CPUs: 0.5, StopSignal: "SIGQUIT", GracePeriod: sampleRegion().Containers.Services["cache"].GracePeriod,
			RestartMark: "m1", Pull: PullAlways,
		},
		{
			Service: "metrics", Name: "kura-acc-1-eu-central-1-metrics-staging", Image: "metrics:1.0",
			Ports:      []PortDocument{{Name: "udp", Container: 8125, Host: 8125, Protocol: "udp"}},
			StopSignal: DefaultStopSignal, GracePeriod: DefaultGracePeriod, RestartMark: "m1", Pull: PullAlways,
		},
	}}
	for i := range want.Services {
		want.Services[i].Digest = DigestService(want.Services[i])
	}
	if diff := cmp.Diff(want, d.Containers); diff != "" {
		t.Errorf("document (-want +got)\n%s", diff)
	}
	if name := d.Containers.Services[0].TemporaryName(); name != "kura-acc-1-eu-central-1-cache-staging-next" {
		t.Errorf("temporary name: got %q", name)
	}
	if name := d.Containers.Services[0].RetiredName(); name != "kura-acc-1-eu-central-1-cache-staging-old" {
		t.Errorf("retired name: got %q", name)
	}
}

func TestP13_theIntentsImageIsRenderedBeforeThereIsADeployment(t *testing.T) {
	if d := render(t, staging(t), sampleAccount(), sampleRegion(), sampleIntent(), Deployment{}); d.ImageTag != "1.2.0" {
		t.Errorf("got %q", d.ImageTag)
	}
}

func TestP13_overridesAddVariablesAndReplaceLimits(t *testing.T) {
	in := sampleIntent()
	in.Overrides = &Overrides{Containers: &ContainerOverrides{Services: map[string]ServiceOverride{
		"cache": {Env: map[string]string{"HOST": "other", "NEW": "{instance}"}, Memory: "1Gi", CPUs: 2}, "gone": {Memory: "1Gi"},
	}}}
	r := sampleRegion()
	before := len(r.Containers.Services["cache"].Env)
	d := render(t, staging(t), sampleAccount(), r, in, Deployment{})
	s := d.Containers.Services[0]
	if s.Env["HOST"] != "other" || s.Env["NEW"] != "kura-acc-1-eu-central-1" || s.Env["PORT"] != "20001" || s.MemoryBytes != 1<<30 || s.CPUs != 2 {
		t.Errorf("got %+v", s)
	}
	if len(r.Containers.Services["cache"].Env) != before {
		t.Error("the region itself was changed")
	}
}

func TestDeclaredURLsNameThePortOnlyWhereTheSchemeDoesNot(t *testing.T) {
	for name, c := range map[string]struct {
		scheme string
		probe  int
		host   int
		want   string
	}{
		"assigned":              {"https", 0, 0, "https://h:20001"},
		"fixed":                 {"https", 0, 8443, "https://h:8443"},
		"the scheme's":          {"https", 0, 443, "https://h"},
		"http":                  {"http", 0, 80, "http://h"},
		"http on 443":           {"http", 0, 443, "http://h:443"},
		"a proxy in front":      {"https", 443, 0, "https://h"},
		"a proxy on its port":   {"https", 8443, 443, "https://h:8443"},
		"plain http, port 8080": {"http", 8080, 0, "http://h:8080"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sampleRegion()
			r.Readiness.Scheme, r.Readiness.Port = c.scheme, c.probe
			p := r.Containers.Services["cache"].Ports["http"]
			p.Host = c.host
			r.Containers.Services["cache"].Ports["http"] = p
			d := render(t, staging(t), sampleAccount(), r, sampleIntent(), Deployment{})
			if got := strings.Replace(d.URL, d.Hosts.Public, "h", 1); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if strings.Replace(d.GlobalURL, d.Hosts.Global, "h", 1) != c.want {
				t.Errorf("global url: got %q, want the port of %q", d.GlobalURL, c.want)
			}
		})
	}
	d := render(t, staging(t), sampleAccount(), kubernetesRegion(), sampleIntent(), Deployment{})
	if d.URL != "https://acme-us-staging.kura.example.dev" || d.GRPCURL != "" || d.Containers != nil {
		t.Errorf("kubernetes: got %q, grpc %q, containers %v", d.URL, d.GRPCURL, d.Containers)
	}
}

func TestP13_whatDoesNotRenderSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(e *Environment, a *Account, r *Region, in *Intent, templates map[string]HostTemplate)
		want []string
	}{
		"no account": {func(_ *Environment, a *Account, _ *Region, _ *Intent, _ map[string]HostTemplate) { *a = Account{} }, []string{"account", "empty"}},
		"no template": {func(_ *Environment, _ *Account, _ *Region, _ *Intent, ts map[string]HostTemplate) { delete(ts, "grpc") },
			[]string{`hosts.grpc of region "eu"`, `"grpc", which does not exist`, "declare it"}},
		"collision": {func(_ *Environment, a *Account, _ *Region, _ *Intent, ts map[string]HostTemplate) {
			a.Handle = "acme-canary"
		},
			[]string{"server acc-1/eu", `host template "global"`, `collides with environment "canary"`}},
		"port not assigned": {func(_ *Environment, _ *Account, _ *Region, in *Intent, _ map[string]HostTemplate) { in.Ports = nil },
			[]string{`service "cache"`, `port "grpc"`, "assigns"}},
		"no runtime": {func(_ *Environment, _ *Account, r *Region, _ *Intent, _ map[string]HostTemplate) { r.Containers = nil }, []string{"no runtime"}},
		"service named like an environment": {func(e *Environment, _ *Account, _ *Region, _ *Intent, _ map[string]HostTemplate) {
			*e = mustEnvironment(t, "production", "", map[string]string{"x": "-cache"})
		}, []string{`service "cache"`, `environment "x"`}},
		"volume named like an environment": {func(e *Environment, _ *Account, _ *Region, _ *Intent, _ map[string]HostTemplate) {
			*e = mustEnvironment(t, "production", "", map[string]string{"x": "-data"})
		}, []string{`service "cache": volumes[0]`, `environment "x"`}},
		"unknown token": {func(_ *Environment, _ *Account, r *Region, in *Intent, _ map[string]HostTemplate) {
			in.Overrides = &Overrides{Containers: &ContainerOverrides{Services: map[string]ServiceOverride{"cache": {Env: map[string]string{"A": "{x}"}}}}}
		}, []string{"env.A", `"{x}" is no known token`}},
		"memory": {func(_ *Environment, _ *Account, r *Region, in *Intent, _ map[string]HostTemplate) {
			in.Overrides = &Overrides{Containers: &ContainerOverrides{Services: map[string]ServiceOverride{"cache": {Memory: "x"}}}}
		}, []string{"memory", "no amount"}},
		"cpus": {func(_ *Environment, _ *Account, r *Region, in *Intent, _ map[string]HostTemplate) {
			in.Overrides = &Overrides{Containers: &ContainerOverrides{Services: map[string]ServiceOverride{"cache": {CPUs: -1}}}}
		}, []string{"cpus", "is -1"}},
		"two volumes at one path": {func(_ *Environment, a *Account, r *Region, _ *Intent, _ map[string]HostTemplate) {
			a.ID, a.Handle = "acme", ""
			s := r.Containers.Services["cache"]
			s.Volumes = []Volume{{Name: "a", Path: "/x/{account}"}, {Name: "b", Path: "/x/{account_handle}"}}
			r.Containers.Services["cache"] = s
		}, []string{`mounted at "/x/acme"`}},
	} {
		t.Run(name, func(t *testing.T) {
			e, a, r, in, templates := staging(t), sampleAccount(), sampleRegion(), sampleIntent(), sampleTemplates()
			c.edit(&e, &a, &r, &in, templates)
			_, err := Render(e, Gathered{Account: &a, Region: &r, Templates: templates, Intent: in})
			wantError(t, err, append(c.want, "does not render")...)
		})
	}
}

// Numbers that JSON cannot write never come from a record; they are an error, not a panic.
func TestP13_aLocationThatIsNoNumberDoesNotRender(t *testing.T) {
	a, r := sampleAccount(), kubernetesRegion()
	r.Location.Latitude = nan()
	_, err := Render(staging(t), Gathered{Account: &a, Region: &r, Templates: sampleTemplates(), Intent: sampleIntent()})
	wantError(t, err, "NaN")
	defer func() {
		if recover() == nil {
			t.Error("a digest of no number is a fault of the program, and was not")
		}
	}()
	DigestService(ServiceDocument{CPUs: nan()})
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestH8_L33_aNewHandleMovesHostsOnly(t *testing.T) {
	before := render(t, staging(t), Account{ID: "acc-1", Handle: "acme"}, sampleRegion(), sampleIntent(), Deployment{})
	after := render(t, staging(t), Account{ID: "acc-1", Handle: "umbrella"}, sampleRegion(), sampleIntent(), Deployment{})
	if before.Instance != after.Instance {
		t.Errorf("the instance moved from %q to %q", before.Instance, after.Instance)
	}
	for i, s := range before.Containers.Services {
		o := after.Containers.Services[i]
		if s.Name != o.Name {
			t.Errorf("the container moved from %q to %q", s.Name, o.Name)
		}
		for j := range s.Volumes {
			if s.Volumes[j].Source != o.Volumes[j].Source {
				t.Errorf("storage moved from %q to %q", s.Volumes[j].Source, o.Volumes[j].Source)
			}
		}
	}
	if before.Hosts.Public == after.Hosts.Public || !strings.HasPrefix(after.Hosts.Public, "umbrella-") {
		t.Errorf("the host stayed %q", after.Hosts.Public)
	}
	// A service that names no host in its document is not replaced.
	if before.Containers.Services[1].Digest != after.Containers.Services[1].Digest {
		t.Error("a service without hosts in its document changed")
	}
}

func TestC12_portNeeds(t *testing.T) {
	want := []PortNeed{
		{Service: "cache", Port: "grpc", Protocol: "tcp"}, {Service: "cache", Port: "http", Protocol: "tcp"},
		{Service: "metrics", Port: "udp", Protocol: "udp", Fixed: 8125},
	}
	got := PortNeeds(sampleRegion())
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if got[0].Key() != "cache/grpc" {
		t.Errorf("key: got %q", got[0].Key())
	}
	if got := PortNeeds(kubernetesRegion()); got != nil {
		t.Errorf("kubernetes: got %v", got)
	}
}

func TestDefaultsAreFilledInACopy(t *testing.T) {
	r := Region{Name: "eu", Sidecar: &Sidecar{Port: 1}, Containers: &Containers{Endpoint: "local", Services: map[string]Service{
		"cache": {Ports: map[string]Port{"http": {Container: 1}}},
	}}}
	want := Region{
		Name: "eu", ClusterID: "eu",
		Readiness:  Readiness{Path: "/up", Scheme: "https", Timeout: MaxReadinessTimeout, Global: GlobalRequired},
		DNS:        DNS{Mode: DNSNone},
		StallAfter: DefaultStallAfter, MaxUnsettled: DefaultMaxUnsettled, Remediation: RemediationHeal,
		Sidecar: &Sidecar{Port: 1, ReadyPath: "/v0/healthz", MarkReadyPath: "/v0/mark-ready", Scheme: "http", Timeout: DefaultSidecarTimeout},
		Containers: &Containers{Endpoint: "local", Pull: PullMissing, Services: map[string]Service{
			"cache": {Ports: map[string]Port{"http": {Container: 1, Protocol: "tcp"}}, StopSignal: "SIGTERM", GracePeriod: DefaultGracePeriod},
		}},
	}
	got := r.WithDefaults()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(want, got.WithDefaults()); diff != "" {
		t.Errorf("twice (-want +got)\n%s", diff)
	}
	if r.Sidecar.Scheme != "" || r.Containers.Pull != "" || r.Containers.Services["cache"].StopSignal != "" || r.Containers.Services["cache"].Ports["http"].Protocol != "" {
		t.Errorf("the region itself was changed: %+v", r)
	}
	if got := (Region{Kubernetes: &Kubernetes{}}).WithDefaults().Kubernetes.Namespace; got != "kura" {
		t.Errorf("namespace: got %q", got)
	}
	if diff := cmp.Diff(sampleRegion().Containers.Services["cache"].Env, sampleRegion().WithDefaults().Containers.Services["cache"].Env); diff != "" {
		t.Errorf("what is declared was changed\n%s", diff)
	}
}

func TestH4_targetsAreEqualWithAndWithoutDefaults(t *testing.T) {
	for _, c := range []struct {
		region Region
		want   string
		kind   RuntimeKind
	}{
		{sampleRegion(), "containers/local", RuntimeContainers},
		{kubernetesRegion(), "kubernetes/us-east/kura", RuntimeKubernetes},
		{Region{Kubernetes: &Kubernetes{Cluster: "a", Namespace: "b"}}, "kubernetes/a/b", RuntimeKubernetes},
		{Region{}, "", RuntimeContainers},
	} {
		if got := c.region.Target(); got != c.want {
			t.Errorf("Target(): got %q, want %q", got, c.want)
		}
		if got := c.region.WithDefaults().Target(); got != c.want {
			t.Errorf("WithDefaults().Target(): got %q, want %q", got, c.want)
		}
		if got := c.region.Runtime(); got != c.kind {
			t.Errorf("Runtime(): got %q, want %q", got, c.kind)
		}
	}
}

func TestC12_assignedPortsAreKeptAndFixedOnesWin(t *testing.T) {
	r, in := sampleRegion(), sampleIntent()
	in.Ports = maps.Clone(in.Ports)
	in.Ports["metrics/udp"] = 9
	d := render(t, staging(t), sampleAccount(), r, in, Deployment{})
	if got := d.Containers.Services[1].Ports[0].Host; got != 8125 {
		t.Errorf("fixed port: got %d", got)
	}
	again := render(t, staging(t), sampleAccount(), r, in, Deployment{ImageTag: "2"})
	if d.URL != again.URL {
		t.Errorf("a roll moved the url from %q to %q", d.URL, again.URL)
	}
}
