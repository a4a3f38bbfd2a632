package fleet

import "time"

// sampleRegion declares one of everything that a container region can declare.
func sampleRegion() Region {
	return Region{
		Name: "eu", DisplayName: "Europe (Frankfurt)", ClusterID: "eu-central-1",
		Hosts:     RegionHosts{Public: "main", GRPC: "grpc", Global: "global"},
		Location:  &Location{Latitude: 50.1, Longitude: 8.6},
		Readiness: Readiness{Path: "/up", Scheme: SchemeHTTPS, Timeout: Duration(2 * time.Second), Global: GlobalAdvisory},
		DNS:       DNS{Mode: DNSNone},
		Labels:    map[string]string{"team": "cache", "example.com/tier": "1"},
		Containers: &Containers{
			Endpoint: "local", Pull: PullAlways,
			Services: map[string]Service{
				"cache": {
					Image:   "registry.example.dev:5000/kura/cache:{image_tag}",
					Command: []string{"serve", "--name={instance}", "--json={{\"a\":1}"},
					Env: map[string]string{"HOST": "{public_host}", "GRPC": "{grpc_host}:{port:grpc}", "GLOBAL": "{global_host}",
						"WHO": "{account}/{account_handle} {cluster_id} {region} {environment}{env_suffix} {image_tag}", "PORT": "{port:http}"},
					EnvFrom:     []string{"secrets", "common"},
					Volumes:     []Volume{{Name: "data", Path: "/var/lib/kura", Retain: true}, {HostPath: "/srv/kura/certs/{account}", Path: "/certs", ReadOnly: true}},
					Ports:       map[string]Port{"http": {Container: 8443, Endpoint: EndpointPublic}, "grpc": {Container: 9443, Endpoint: EndpointGRPC, Bind: "127.0.0.1"}},
					Labels:      map[string]string{"traefik.rule": "Host({public_host})"},
					User:        "1000:1000",
					Memory:      "256Mi",
					CPUs:        0.5,
					StopSignal:  "SIGQUIT",
					GracePeriod: Duration(10 * time.Second),
				},
				"metrics": {Image: "metrics:1.0", Ports: map[string]Port{"udp": {Container: 8125, Host: 8125, Protocol: "udp"}}},
			},
		},
	}
}

func kubernetesRegion() Region {
	return Region{
		Name: "us", Hosts: RegionHosts{Public: "main", Global: "global"}, Location: &Location{Latitude: 40, Longitude: -74},
		DNS:     DNS{Mode: DNSManaged, OwnerID: "kura-prod", Target: "198.51.100.7"},
		Sidecar: &Sidecar{Port: 8081},
		Kubernetes: &Kubernetes{
			Cluster: "us-east", Image: "ghcr.io/kura/kura:{image_tag}", Replicas: 2, Storage: &Storage{Class: "fast.ssd", Size: "50Gi"},
			IngressClass: "nginx", NodeSelector: map[string]string{"kubernetes.io/arch": "arm64"},
			Tolerations: []Toleration{{Key: "dedicated", Operator: "Equal", Value: "kura", Effect: "NoSchedule"}, {Operator: "Exists"}},
			Env:         map[string]string{"A": "1"}, EnvFrom: []string{"secrets"}, ExtraSpec: `{"private":true}`,
		},
	}
}

func sampleTemplates() map[string]HostTemplate {
	return map[string]HostTemplate{
		"main":   {Name: "main", Pattern: mainPattern},
		"grpc":   {Name: "grpc", Pattern: "grpc-{account_handle}-{cluster_id}{env_suffix}.kura.example.dev"},
		"global": {Name: "global", Pattern: "{account_handle}{env_suffix}.global.example.dev"},
	}
}

func sampleAccount() Account { return Account{ID: "acc-1", Handle: "Acme"} }

func sampleIntent() Intent {
	return Intent{
		Server:     Server{Account: "acc-1", Region: "eu", ImageTag: "1.2.0"},
		Generation: 3, Deployment: 1, Ports: map[string]int{"cache/http": 20001, "cache/grpc": 20002},
	}
}
