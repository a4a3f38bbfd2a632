package fleet

// Validate checks a server by itself; ValidateIn checks it against its region.
func (s Server) Validate() error {
	var v Invalid
	v.note("/account", checkLabel(s.Account))
	v.note("/region", checkLabel(s.Region))
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
	if o := s.Overrides; o != nil {
		const at = "/overrides"
		if o.Containers != nil && r.Containers == nil {
			v.Add(at+"/containers", "region %q runs on kubernetes; use overrides.kubernetes or leave it out", r.Name)
		}
		if o.Kubernetes != nil && r.Kubernetes == nil {
			v.Add(at+"/kubernetes", "region %q runs containers; use overrides.containers or leave it out", r.Name)
		}
		if o.Containers != nil && r.Containers != nil {
			for _, name := range sortedKeys(o.Containers.Services) {
				p := join(at, "containers", "services", name)
				service, known := r.Containers.Services[name]
				if !known {
					v.Add(p, "region %q has no service %q (%s); correct the name", r.Name, name, either(sortedKeys(r.Containers.Services), "it has none"))
					continue
				}
				t := sampleTokens(r, service)
				env := o.Containers.Services[name].Env
				for _, key := range sortedKeys(env) {
					v.expanded(join(p, "env", key), t, env[key])
				}
			}
		}
	}
	return v.Err("server " + quote(s.Key().String()))
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
