package fleet

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// wantFields fails unless err says texts of the field at pointer, and of no other.
func wantField(t *testing.T, err error, pointer, text string) {
	t.Helper()
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != CodeInvalid {
		t.Fatalf("got %v, want an error of %s with %q", err, pointer, text)
	}
	for _, f := range e.Fields {
		if f.Pointer == pointer && strings.Contains(f.Detail, text) {
			return
		}
	}
	t.Errorf("got\n  %v\nwant an error of %s with %q", err, pointer, text)
}

func TestWholeRegionsAreValidWithAndWithoutDefaults(t *testing.T) {
	for _, r := range []Region{sampleRegion(), kubernetesRegion(), sampleRegion().WithDefaults(), kubernetesRegion().WithDefaults()} {
		if err := r.Validate(); err != nil {
			t.Errorf("region %s: %v", r.Name, err)
		}
	}
}

func TestRegionFaultsNameTheirField(t *testing.T) {
	const services = "/containers/services"
	const cache = services + "/cache"
	// edit changes the cache service of the region.
	edit := func(f func(s *Service)) func(*Region) {
		return func(r *Region) {
			s := r.Containers.Services["cache"]
			f(&s)
			r.Containers.Services["cache"] = s
		}
	}
	port := func(name string, p Port) func(*Region) { return edit(func(s *Service) { s.Ports[name] = p }) }
	rename := func(name string) func(*Region) {
		return func(r *Region) {
			r.Containers.Services[name] = r.Containers.Services["cache"]
			delete(r.Containers.Services, "cache")
		}
	}
	many := func(n int) map[string]string {
		m := map[string]string{}
		for i := range n {
			m["k"+strings.Repeat("x", i)] = ""
		}
		return m
	}
	for name, c := range map[string]struct {
		edit          func(*Region)
		pointer, text string
	}{
		"no name":                   {func(r *Region) { r.Name = "" }, "/name", "is empty"},
		"illegal name":              {func(r *Region) { r.Name = "EU" }, "/name", `"E" at character 1`},
		"display name of two lines": {func(r *Region) { r.DisplayName = "a\nb" }, "/display_name", "control character"},
		"display name too long":     {func(r *Region) { r.DisplayName = strings.Repeat("x", 300) }, "/display_name", "300 bytes"},
		"display name of no text":   {func(r *Region) { r.DisplayName = "\xff" }, "/display_name", "UTF-8"},
		"illegal cluster id":        {func(r *Region) { r.ClusterID = "eu.1" }, "/cluster_id", `"."`},
		"no public host":            {func(r *Region) { r.Hosts.Public = "" }, "/hosts/public", "is required"},
		"illegal public template":   {func(r *Region) { r.Hosts.Public = "a b" }, "/hosts/public", `" "`},
		"illegal grpc template":     {func(r *Region) { r.Hosts.GRPC = "a b" }, "/hosts/grpc", `" "`},
		"illegal global template":   {func(r *Region) { r.Hosts.Global = "a b" }, "/hosts/global", `" "`},
		"global is public":          {func(r *Region) { r.Hosts.Global = "main" }, "/hosts/global", "one host"},
		"grpc host without port":    {edit(func(s *Service) { delete(s.Ports, "grpc"); s.Env = nil }), "/hosts/grpc", `endpoint = "grpc"`},
		"no location":               {func(r *Region) { r.Location = nil }, "/location", "is required with a global host"},
		"latitude":                  {func(r *Region) { r.Location = &Location{Latitude: 90.1} }, "/location/latitude", "-90 to 90"},
		"longitude":                 {func(r *Region) { r.Location = &Location{Longitude: -180.1} }, "/location/longitude", "-180 to 180"},
		"no number":                 {func(r *Region) { r.Location = &Location{Latitude: math.NaN()} }, "/location/latitude", "NaN"},
		"relative path":             {func(r *Region) { r.Readiness.Path = "up" }, "/readiness/path", `start it with "/"`},
		"path with a space":         {func(r *Region) { r.Readiness.Path = "/u p" }, "/readiness/path", "%XX"},
		"path with a fragment":      {func(r *Region) { r.Readiness.Path = "/up#x" }, "/readiness/path", "%XX"},
		"long path":                 {func(r *Region) { r.Readiness.Path = "/" + strings.Repeat("x", 1024) }, "/readiness/path", "at most 1024"},
		"unknown scheme":            {func(r *Region) { r.Readiness.Scheme = "grpc" }, "/readiness/scheme", `use "https" or "http"`},
		"http on kubernetes":        {func(r *Region) { *r = kubernetesRegion(); r.Readiness.Scheme = "http" }, "/readiness/scheme", "only container regions"},
		"probe port":                {func(r *Region) { r.Readiness.Port = 65536 }, "/readiness/port", "from 0 to 65535"},
		"negative probe port":       {func(r *Region) { r.Readiness.Port = -1 }, "/readiness/port", "is -1"},
		"probe over 5 s":            {func(r *Region) { r.Readiness.Timeout = Duration(6 * time.Second) }, "/readiness/timeout", "to 5s"},
		"negative timeout":          {func(r *Region) { r.Readiness.Timeout = -1 }, "/readiness/timeout", "from 10ms"},
		"unknown gate":              {func(r *Region) { r.Readiness.Global = "maybe" }, "/readiness/global", `"required" or "advisory"`},
		"unknown dns mode":          {func(r *Region) { r.DNS.Mode = "route53" }, "/dns/mode", `"none" or "external-dns" or "managed"`},
		"no owner":                  {func(r *Region) { r.DNS = DNS{Mode: DNSExternalDNS} }, "/dns/owner_id", "is required"},
		"illegal owner":             {func(r *Region) { r.DNS = DNS{OwnerID: "a,b"} }, "/dns/owner_id", "no owner id"},
		"no target":                 {func(r *Region) { r.DNS = DNS{Mode: DNSManaged, OwnerID: "a"} }, "/dns/target", "is required"},
		"illegal target":            {func(r *Region) { r.DNS.Target = "http://x" }, "/dns/target", "neither"},
		"stall_after too short":     {func(r *Region) { r.StallAfter = 1 }, "/stall_after", "from 1s to 24h"},
		"stall_after too long":      {func(r *Region) { r.StallAfter = Duration(25 * time.Hour) }, "/stall_after", "is 25h"},
		"negative stall_after":      {func(r *Region) { r.StallAfter = -1 }, "/stall_after", "24h"},
		"max_unsettled":             {func(r *Region) { r.MaxUnsettled = -1 }, "/max_unsettled", "from 0 to 1000"},
		"remediation":               {func(r *Region) { r.Remediation = "auto" }, "/remediation", `"heal" or "observe"`},
		"label key":                 {func(r *Region) { r.Labels = map[string]string{"a b": ""} }, "/labels/a b", "no label key"},
		"label key with a slash":    {func(r *Region) { r.Labels = map[string]string{"a/b~c/d": ""} }, "/labels/a~1b~0c~1d", "no label key"},
		"reserved label":            {func(r *Region) { r.Labels = map[string]string{"dev.kura/x": ""} }, "/labels/dev.kura~1x", "daemon's own"},
		"label value":               {func(r *Region) { r.Labels = map[string]string{"a": strings.Repeat("x", 257)} }, "/labels/a", "at most 256"},
		"labels":                    {func(r *Region) { r.Labels = many(65) }, "/labels", "at most 64"},
		"sidecar port":              {func(r *Region) { r.Sidecar = &Sidecar{} }, "/sidecar/port", "from 1"},
		"sidecar ready path":        {func(r *Region) { r.Sidecar = &Sidecar{Port: 1, ReadyPath: "x"} }, "/sidecar/ready_path", "start it"},
		"sidecar mark path":         {func(r *Region) { r.Sidecar = &Sidecar{Port: 1, MarkReadyPath: "x"} }, "/sidecar/mark_ready_path", "start it"},
		"sidecar scheme":            {func(r *Region) { r.Sidecar = &Sidecar{Port: 1, Scheme: "x"} }, "/sidecar/scheme", `"http" or "https"`},
		"sidecar timeout":           {func(r *Region) { r.Sidecar = &Sidecar{Port: 1, Timeout: Duration(time.Minute)} }, "/sidecar/timeout", "to 5s"},
		"two runtimes":              {func(r *Region) { r.Kubernetes = kubernetesRegion().Kubernetes }, "/containers", "exactly one runtime"},
		"no runtime":                {func(r *Region) { r.Containers = nil }, "/containers", "exactly one runtime"},
		"no endpoint":               {func(r *Region) { r.Containers.Endpoint = "" }, "/containers/endpoint", "is required"},
		"illegal endpoint":          {func(r *Region) { r.Containers.Endpoint = "unix:///x" }, "/containers/endpoint", `":"`},
		"pull":                      {func(r *Region) { r.Containers.Pull = "sometimes" }, "/containers/pull", `"missing" or "always" or "never"`},
		"no services":               {func(r *Region) { r.Containers.Services = nil }, services, "at least one service"},
		"too many services": {func(r *Region) {
			for k := range many(17) {
				r.Containers.Services[k] = Service{}
			}
		}, services, "at most 16"},
		"service name with a dash":    {rename("my-cache"), services + "/my-cache", `no "-"`},
		"service named next":          {rename("next"), services + "/next", "reserved"},
		"service named old":           {rename("old"), services + "/old", "reserved"},
		"service named staging":       {rename("staging"), services + "/staging", `environment "staging"`},
		"no image":                    {edit(func(s *Service) { s.Image = "" }), cache + "/image", "is required"},
		"illegal image":               {edit(func(s *Service) { s.Image = "a b:{image_tag}" }), cache + "/image", "not an image"},
		"no image_tag":                {edit(func(s *Service) { s.Image = "kura:1" }), services, "{image_tag}"},
		"image_tag as a brace":        {edit(func(s *Service) { s.Image = "kura:{{image_tag}" }), cache + "/image", "no tag"},
		"image_tag within the tag":    {edit(func(s *Service) { s.Image = "kura:v{image_tag}" }), cache + "/image", "whole tag"},
		"image_tag in the repository": {edit(func(s *Service) { s.Image = "kura-{image_tag}:1" }), cache + "/image", "whole tag"},
		"image_tag with a digest":     {edit(func(s *Service) { s.Image = "kura:{image_tag}@" + someDigest }), cache + "/image", "whole tag"},
		"unknown token in image":      {edit(func(s *Service) { s.Image = "{registry}/x:{image_tag}" }), cache + "/image", `"{registry}" is no known token`},
		"unknown token in command":    {edit(func(s *Service) { s.Command = []string{"a", "{tag}"} }), cache + "/command/1", "{{ for a brace"},
		"NUL in command":              {edit(func(s *Service) { s.Command = []string{"a\x00"} }), cache + "/command/0", "NUL"},
		"long command":                {edit(func(s *Service) { s.Command = make([]string, 257) }), cache + "/command", "257 entries"},
		"unclosed token":              {edit(func(s *Service) { s.Env = map[string]string{"A": "x{image_tag"} }), cache + "/env/A", "never closed"},
		"unknown port token":          {edit(func(s *Service) { s.Env = map[string]string{"A": "{port:htp}"} }), cache + "/env/A", "it has grpc, http"},
		"port token without ports": {func(r *Region) {
			s := r.Containers.Services["metrics"]
			s.Ports = nil
			s.User = "{port:x}"
			r.Containers.Services["metrics"] = s
		}, services + "/metrics/user", "it has none"},
		"no such host":            {func(r *Region) { r.Hosts.Global = "" }, cache + "/env/GLOBAL", "declares no such host"},
		"env key":                 {edit(func(s *Service) { s.Env = map[string]string{"A=B": ""} }), cache + "/env/A=B", "no name of a variable"},
		"long env value":          {edit(func(s *Service) { s.Env = map[string]string{"A": strings.Repeat("x", 40000)} }), cache + "/env/A", "40000 bytes"},
		"set twice":               {edit(func(s *Service) { s.EnvFrom = []string{"a", "a"} }), cache + "/env_from/1", "again"},
		"illegal set":             {edit(func(s *Service) { s.EnvFrom = []string{"A"} }), cache + "/env_from/0", `"A"`},
		"volume without source":   {edit(func(s *Service) { s.Volumes = []Volume{{Path: "/a"}} }), cache + "/volumes/0", "exactly one"},
		"volume of two sources":   {edit(func(s *Service) { s.Volumes = []Volume{{Path: "/a", Name: "a", HostPath: "/b"}} }), cache + "/volumes/0", "exactly one"},
		"volume name":             {edit(func(s *Service) { s.Volumes = []Volume{{Path: "/a", Name: "a-b"}} }), cache + "/volumes/0/name", `no "-"`},
		"volume named canary":     {edit(func(s *Service) { s.Volumes = []Volume{{Path: "/a", Name: "canary"}} }), cache + "/volumes/0/name", `environment "canary"`},
		"volume without path":     {edit(func(s *Service) { s.Volumes = []Volume{{Name: "a"}} }), cache + "/volumes/0/path", "is required"},
		"relative path of volume": {edit(func(s *Service) { s.Volumes = []Volume{{Name: "a", Path: "a"}} }), cache + "/volumes/0/path", "absolute"},
		"root":                    {edit(func(s *Service) { s.Volumes = []Volume{{Name: "a", Path: "/"}} }), cache + "/volumes/0/path", "absolute"},
		"dots in a path":          {edit(func(s *Service) { s.Volumes = []Volume{{HostPath: "/srv/../etc", Path: "/a"}} }), cache + "/volumes/0/host_path", "shortest form"},
		"dots made by a token":    {edit(func(s *Service) { s.Volumes = []Volume{{HostPath: "/srv/.{env_suffix}./etc", Path: "/a"}} }), cache + "/volumes/0/host_path", "shortest form"},
		"final slash":             {edit(func(s *Service) { s.Volumes = []Volume{{HostPath: "/srv/", Path: "/a"}} }), cache + "/volumes/0/host_path", "shortest form"},
		"colon in a path":         {edit(func(s *Service) { s.Volumes = []Volume{{HostPath: "/srv:/etc", Path: "/a"}} }), cache + "/volumes/0/host_path", "cannot mount"},
		"token in a path":         {edit(func(s *Service) { s.Volumes = []Volume{{HostPath: "/srv/{acount}", Path: "/a"}} }), cache + "/volumes/0/host_path", "no known token"},
		"retained host path":      {edit(func(s *Service) { s.Volumes = []Volume{{HostPath: "/srv", Path: "/a", Retain: true}} }), cache + "/volumes/0/retain", "never removed"},
		"two volumes at one path": {edit(func(s *Service) { s.Volumes = []Volume{{Name: "a", Path: "/a"}, {Name: "b", Path: "/a"}} }), cache + "/volumes/1/path", "mounted already"},
		"port name":               {port("HTTP", Port{Container: 1}), cache + "/ports/HTTP", "no port name"},
		"no container port":       {port("x", Port{}), cache + "/ports/x/container", "from 1 to 65535"},
		"container port":          {port("x", Port{Container: 70000}), cache + "/ports/x/container", "is 70000"},
		"host port":               {port("x", Port{Container: 1, Host: 70000}), cache + "/ports/x/host", "is 70000"},
		"bind":                    {port("x", Port{Container: 1, Bind: "localhost"}), cache + "/ports/x/bind", "no IP address"},
		"bind with a zone":        {port("x", Port{Container: 1, Bind: "fe80::1%eth0"}), cache + "/ports/x/bind", "no IP address"},
		"protocol":                {port("x", Port{Container: 1, Protocol: "sctp"}), cache + "/ports/x/protocol", `"tcp" or "udp"`},
		"endpoint":                {port("x", Port{Container: 1, Endpoint: "private"}), cache + "/ports/x/endpoint", `"public" or "grpc"`},
		"public over udp":         {port("http", Port{Container: 1, Protocol: "udp", Endpoint: EndpointPublic}), cache + "/ports/http/protocol", "speaks tcp"},
		"container port twice":    {port("x", Port{Container: 8443}), cache + "/ports/x/container", `published already as port "http"`},
		"two public ports":        {port("x", Port{Container: 1, Endpoint: EndpointPublic}), services, "cache/http and cache/x have"},
		"no public port":          {port("http", Port{Container: 1}), services, "none has"},
		"two grpc ports":          {port("x", Port{Container: 1, Endpoint: EndpointGRPC}), services, "at most one port"},
		"host port twice":         {port("x", Port{Container: 1, Host: 8125, Protocol: "udp", Bind: "127.0.0.1"}), services + "/metrics/ports/udp/host", "8125/udp is taken by cache/x"},
		"service label":           {edit(func(s *Service) { s.Labels = map[string]string{"dev.kura/digest": ""} }), cache + "/labels/dev.kura~1digest", "daemon's own"},
		"token in a label":        {edit(func(s *Service) { s.Labels = map[string]string{"a": "{x}"} }), cache + "/labels/a", "no known token"},
		"user":                    {edit(func(s *Service) { s.User = "a b" }), cache + "/user", "no user"},
		"memory":                  {edit(func(s *Service) { s.Memory = "256MB" }), cache + "/memory", "256Mi"},
		"little memory":           {edit(func(s *Service) { s.Memory = "1Mi" }), cache + "/memory", "6Mi"},
		"cpus":                    {edit(func(s *Service) { s.CPUs = -1 }), cache + "/cpus", "from 0.01 to 1024"},
		"few cpus":                {edit(func(s *Service) { s.CPUs = 0.001 }), cache + "/cpus", "from 0.01"},
		"no number of cpus":       {edit(func(s *Service) { s.CPUs = math.Inf(1) }), cache + "/cpus", "+Inf"},
		"signal":                  {edit(func(s *Service) { s.StopSignal = "TERM" }), cache + "/stop_signal", "SIGTERM"},
		"long grace":              {edit(func(s *Service) { s.GracePeriod = Duration(11 * time.Minute) }), cache + "/grace_period", "to 10m"},
		"negative grace":          {edit(func(s *Service) { s.GracePeriod = -1 }), cache + "/grace_period", "from 0s to 10m"},
	} {
		t.Run(name, func(t *testing.T) {
			r := sampleRegion()
			c.edit(&r)
			wantField(t, r.Validate(), c.pointer, c.text)
		})
	}
}

func TestHostPortsMayBeSharedByAddressesAndProtocols(t *testing.T) {
	r := sampleRegion()
	s := r.Containers.Services["cache"]
	s.Ports["a"] = Port{Container: 1, Host: 53, Bind: "127.0.0.1"}
	s.Ports["b"] = Port{Container: 2, Host: 53, Bind: "127.0.0.2"}
	s.Ports["c"] = Port{Container: 1, Host: 53, Bind: "127.0.0.1", Protocol: "udp"}
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
	s.Ports["d"] = Port{Container: 3, Host: 53, Bind: "0.0.0.0"}
	wantField(t, r.Validate(), "/containers/services/cache/ports/d/host", "taken by cache/a")
}

func TestGRPCMayShareThePublicHost(t *testing.T) {
	r := sampleRegion()
	r.Hosts.GRPC = r.Hosts.Public
	if err := r.Validate(); err != nil {
		t.Error(err)
	}
}

func TestH2_regionsAreValidatedForEveryEnvironmentOfTheZone(t *testing.T) {
	r := sampleRegion()
	r.Containers.Services["preview"] = Service{Image: "x:1"}
	if err := r.Validate(); err != nil {
		t.Errorf("without the environment preview: %v", err)
	}
	e := mustEnvironment(t, "production", "", map[string]string{"preview": "-preview"})
	wantField(t, r.ValidateFor(e), "/containers/services/preview", `environment "preview"`)
}

func TestAccountFaultsNameTheirField(t *testing.T) {
	for name, c := range map[string]struct {
		account       Account
		pointer, text string
	}{
		"no id":          {Account{}, "/id", "is empty"},
		"upper-case id":  {Account{ID: "Acme"}, "/id", `"A" at character 1`},
		"illegal handle": {Account{ID: "a", Handle: "a_b"}, "/handle", `"_"`},
		"label":          {Account{ID: "a", Labels: map[string]string{"": ""}}, "/labels/", "no label key"},
	} {
		t.Run(name, func(t *testing.T) { wantField(t, c.account.Validate(), c.pointer, c.text) })
	}
	for _, a := range []Account{{ID: "acme"}, {ID: "7", Handle: "AcMe", Labels: map[string]string{"a.b/c": "d"}}} {
		if err := a.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestH2_hostTemplateFaultsNameTheirField(t *testing.T) {
	staging := mustEnvironment(t, "staging", "", map[string]string{"preview": "-preview"})
	for name, c := range map[string]struct {
		template      HostTemplate
		pointer, text string
	}{
		"no name":             {HostTemplate{Pattern: mainPattern}, "/name", "is empty"},
		"no pattern":          {HostTemplate{Name: "a"}, "/pattern", "is required"},
		"no suffix":           {HostTemplate{Name: "a", Pattern: "{region}.x.dev"}, "/pattern", "{env_suffix}"},
		"always collides":     {HostTemplate{Name: "a", Pattern: "{region}-preview{env_suffix}.x.dev"}, "/pattern", `collides with environment "preview"`},
		"a literal collides":  {HostTemplate{Name: "a", Pattern: "x-canary{env_suffix}.x.dev"}, "/pattern", `collides with environment "canary"`},
		"always too long":     {HostTemplate{Name: "a", Pattern: strings.Repeat("x", 60) + "{env_suffix}.x.dev"}, "/pattern", "68 characters"},
		"too long all in all": {HostTemplate{Name: "a", Pattern: "x{env_suffix}." + longHost(250)}, "/pattern", "at most 253"},
	} {
		t.Run(name, func(t *testing.T) { wantField(t, c.template.Validate(staging), c.pointer, c.text) })
	}
	for _, pattern := range []string{mainPattern, "{region}-previews{env_suffix}.x.dev"} {
		if err := (HostTemplate{Name: "main", Pattern: pattern}).Validate(staging); err != nil {
			t.Error(err)
		}
	}
}

func TestServerFaultsNameTheirField(t *testing.T) {
	overridden := func(s ServiceOverride) *Overrides {
		return &Overrides{Containers: &ContainerOverrides{Services: map[string]ServiceOverride{"cache": s}}}
	}
	const cache = "/overrides/containers/services/cache"
	for name, c := range map[string]struct {
		edit          func(*Server)
		pointer, text string
	}{
		"account":          {func(s *Server) { s.Account = "" }, "/account", "is empty"},
		"region":           {func(s *Server) { s.Region = "a/b" }, "/region", `"/"`},
		"no tag":           {func(s *Server) { s.ImageTag = "" }, "/image_tag", "required"},
		"tag with a space": {func(s *Server) { s.ImageTag = "1 2" }, "/image_tag", `"1 2" is not a tag`},
		"digest":           {func(s *Server) { s.ImageTag = someDigest }, "/image_tag", "tag alone"},
		"label":            {func(s *Server) { s.Labels = map[string]string{"a b": ""} }, "/labels/a b", "no label key"},
		"remediation":      {func(s *Server) { s.Remediation = "x" }, "/remediation", `"heal" or "observe"`},
		"two runtimes": {func(s *Server) {
			s.Overrides = &Overrides{Containers: &ContainerOverrides{}, Kubernetes: &KubernetesOverrides{}}
		}, "/overrides/kubernetes", "one runtime"},
		"service name": {func(s *Server) {
			s.Overrides = &Overrides{Containers: &ContainerOverrides{Services: map[string]ServiceOverride{"a-b": {}}}}
		}, "/overrides/containers/services/a-b", `no "-"`},
		"env":          {func(s *Server) { s.Overrides = overridden(ServiceOverride{Env: map[string]string{"a b": ""}}) }, cache + "/env/a b", "no name"},
		"memory":       {func(s *Server) { s.Overrides = overridden(ServiceOverride{Memory: "1"}) }, cache + "/memory", "6Mi"},
		"cpus":         {func(s *Server) { s.Overrides = overridden(ServiceOverride{CPUs: 2000}) }, cache + "/cpus", "1024"},
		"replicas":     {func(s *Server) { s.Overrides = &Overrides{Kubernetes: &KubernetesOverrides{Replicas: 101}} }, "/overrides/kubernetes/replicas", "100"},
		"storage size": {func(s *Server) { s.Overrides = &Overrides{Kubernetes: &KubernetesOverrides{StorageSize: "x"}} }, "/overrides/kubernetes/storage_size", "50Gi"},
		"kubernetes env": {func(s *Server) {
			s.Overrides = &Overrides{Kubernetes: &KubernetesOverrides{Env: map[string]string{"": ""}}}
		}, "/overrides/kubernetes/env/", "no name"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sampleIntent().Server
			c.edit(&s)
			wantField(t, s.Validate(), c.pointer, c.text)
		})
	}
	s := sampleIntent().Server
	s.Overrides = overridden(ServiceOverride{Env: map[string]string{"A": "{anything}"}, Memory: "1Gi", CPUs: 2})
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
}

func TestServerIsValidatedInItsRegion(t *testing.T) {
	containers := func(service, env string) *Overrides {
		return &Overrides{Containers: &ContainerOverrides{Services: map[string]ServiceOverride{service: {Env: map[string]string{"A": env}}}}}
	}
	for name, c := range map[string]struct {
		region        Region
		overrides     *Overrides
		pointer, text string // no pointer: valid
	}{
		"none":               {region: sampleRegion()},
		"containers":         {region: sampleRegion(), overrides: containers("cache", "{image_tag} {port:http}")},
		"kubernetes":         {region: kubernetesRegion(), overrides: &Overrides{Kubernetes: &KubernetesOverrides{Replicas: 3}}},
		"wrong runtime":      {kubernetesRegion(), containers("cache", ""), "/overrides/containers", `region "us" runs on kubernetes`},
		"other wrong":        {sampleRegion(), &Overrides{Kubernetes: &KubernetesOverrides{}}, "/overrides/kubernetes", `region "eu" runs containers`},
		"unknown service":    {sampleRegion(), containers("cash", ""), "/overrides/containers/services/cash", "it has cache, metrics"},
		"unknown token":      {sampleRegion(), containers("cache", "{x}"), "/overrides/containers/services/cache/env/A", "no known token"},
		"port of another":    {sampleRegion(), containers("metrics", "{port:http}"), "/overrides/containers/services/metrics/env/A", "it has udp"},
		"brace, not a token": {region: sampleRegion(), overrides: containers("cache", "{{x}")},
	} {
		t.Run(name, func(t *testing.T) {
			s := sampleIntent().Server
			s.Overrides = c.overrides
			err := s.ValidateIn(c.region)
			if c.pointer == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			wantField(t, err, c.pointer, c.text)
		})
	}
}

func TestMemoryIsParsed(t *testing.T) {
	for in, want := range map[string]int64{"256Mi": 256 << 20, "1Gi": 1 << 30, "8192Ki": 8 << 20, "1Ti": 1 << 40, "7000k": 7e6, "7M": 7e6, "1G": 1e9, "1T": 1e12, "6291456": 6 << 20} {
		if got, err := ParseMemory(in); err != nil || got != want {
			t.Errorf("ParseMemory(%q): got %d, %v, want %d", in, got, err, want)
		}
	}
	for in, want := range map[string]string{
		"": "no amount", "Mi": "no amount", "256m": "no amount", "256 Mi": "no amount", "1.5Gi": "no amount", "-1Gi": "no amount", "0": "6Mi",
		"9223372036854775807Ki": "can be counted", "92233720368547758070": "can be counted", "5Mi": "write more",
	} {
		_, err := ParseMemory(in)
		wantError(t, err, want)
	}
}
