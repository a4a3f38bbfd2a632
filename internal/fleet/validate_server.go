package fleet

// Validate checks a server by itself; ValidateIn checks it against its region.
func (s Server) Validate() error {
	var v Invalid
	v.name("/account", s.Account)
	v.name("/region", s.Region)
	v.note("/image_tag", CheckImageTag(s.ImageTag))
	v.labels("/labels", s.Labels)
	v.remediation("/remediation", s.Remediation)
	if s.Overrides != nil {
		v.overrides(*s.Overrides)
		v.size("/overrides", s, maxServer)
	}
	return v.Err("server " + quote(s.Key().String()))
}

// ValidateIn checks what a server says against its region: its tag leaves the image short
// enough, and overrides are of its runtime, of services that it has, and hold tokens that
// it knows.
func (s Server) ValidateIn(r Region) error {
	var v Invalid
	if r.Kubernetes != nil {
		_, err := kubeImage(r.Kubernetes.Image, s.ImageTag)
		v.note("/image_tag", err)
	}
	const at = "/overrides"
	switch o := s.Overrides; {
	case o == nil:
	case o.Kubernetes != nil && r.Kubernetes == nil:
		v.Add(at+"/kubernetes", "region %q runs containers; use overrides.containers or leave it out", r.Name)
	case o.Containers != nil && r.Containers == nil:
		v.Add(at+"/containers", "region %q runs on kubernetes; use overrides.kubernetes or leave it out", r.Name)
	case o.Containers != nil:
		v.overridden(at+"/containers/services", r, o.Containers.Services)
	}
	return v.Err("server " + quote(s.Key().String()))
}

// overridden checks overrides of services against those of a container region.
func (v *Invalid) overridden(at string, r Region, services map[string]ServiceOverride) {
	for _, name := range sortedKeys(services) {
		service, known := r.Containers.Services[name]
		if !known {
			v.Add(join(at, name), "region %q has no service %q (%s); correct the name", r.Name, name, either(sortedKeys(r.Containers.Services), "it has none"))
			continue
		}
		t, env := sampleTokens(r, service), services[name].Env
		for _, key := range sortedKeys(env) {
			v.expanded(join(at, name, "env", key), t, env[key])
		}
	}
}

// overrides checks what can be checked without the region.
func (v *Invalid) overrides(o Overrides) {
	const at = "/overrides"
	if o.Containers != nil && o.Kubernetes != nil {
		v.Add(at+"/kubernetes", "is set beside containers; a region has one runtime, so remove one of the two")
	}
	if o.Containers != nil {
		for _, name := range sortedKeys(o.Containers.Services) {
			p := join(at, "containers", "services", name)
			s := o.Containers.Services[name]
			v.note(p, checkServiceName(name))
			v.env(p+"/env", s.Env, nil)
			v.limits(p, s.Memory, s.CPUs)
		}
	}
	if k := o.Kubernetes; k != nil {
		v.number(at+"/kubernetes/replicas", k.Replicas, 0, maxReplicas)
		v.quantity(at+"/kubernetes/storage_size", k.StorageSize)
		v.kubernetesEnv(at+"/kubernetes/env", k.Env)
	}
}
