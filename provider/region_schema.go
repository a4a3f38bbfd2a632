package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func regionSchema() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A region: where servers run, on what, under which hosts, and when one counts as ready. " +
			"Changing it returns when the daemon has accepted it; its servers follow, at most `max_unsettled` at a time, and the plan says how many are replaced or re-applied.",
		Attributes: map[string]schema.Attribute{
			"name":         name("Name, such as `eu-central`. Another name is another region."),
			"display_name": optionalText("Name for people, such as `Frankfurt`. Default: none."),
			"cluster_id":   optionalText("Id that host and instance names carry, such as `eu-central-1`. It cannot change while the region has servers. Default: the `name`."),
			"hosts": schema.SingleNestedAttribute{
				Required:            true,
				MarkdownDescription: "Names of the host templates that the servers' hosts are rendered from. A change moves hosts; the plan says which, from what to what.",
				Attributes: map[string]schema.Attribute{
					"public": requiredText("Template of the public host, such as `kura_host_template.public.name`."),
					"grpc":   optionalText("Template of the gRPC host. Default: none, servers have no gRPC host."),
					"global": optionalText("Template of the host that leads to the nearest region of the account; needs `location`. Default: none."),
				},
			},
			"location": optionalObject("Where the region is; the global host is steered by it. Required with `hosts.global`. Default: none.", map[string]schema.Attribute{
				"latitude":  coordinate("Degrees north, such as `50.11`.", 90),
				"longitude": coordinate("Degrees east, such as `8.68`.", 180),
			}),
			"readiness": optionalObject("How the daemon finds out whether a server answers: it must before it becomes active. Default: the defaults below.", map[string]schema.Attribute{
				"path":    optionalText("Path that is asked with GET, on the public host; any 2xx is ready. Default `/up`."),
				"scheme":  optionalText("`https` (the default), or `http`, which only container regions may use. It is the scheme of the servers' urls too.", fleet.SchemeHTTPS, fleet.SchemeHTTP),
				"port":    optionalNumber("Port that is asked, and that urls name, such as `8443`. Default: the host port of the public port; in a Kubernetes region 443.", ports()),
				"timeout": optionalDuration("How long one probe may take in all, such as `2s`. Default and maximum `5s`."),
				"global":  optionalText("Whether the global host must answer too before a server is active: `required` (the default) or `advisory`.", fleet.GlobalRequired, fleet.GlobalAdvisory),
			}),
			"dns": optionalObject("Who publishes the servers' DNS records. Default: `mode = \"none\"`.", map[string]schema.Attribute{
				"mode": optionalText("`none` (the default): the operator, and ownership is not checked; `external-dns`: external-dns, and the daemon verifies ownership; `managed`: the daemon.",
					string(fleet.DNSNone), string(fleet.DNSExternalDNS), string(fleet.DNSManaged)),
				"owner_id": optionalText("Owner id that the ownership records must carry, such as `kura-eu-central`. Required unless `mode` is `none`."),
				"target":   optionalText("IP address or host name that records point to, such as `203.0.113.10`. Required with `mode = \"managed\"`."),
			}),
			"stall_after":   optionalDuration("How long a server may be unsettled before it counts as stalled and waiting for it ends; work on it goes on. Default `15m`."),
			"max_unsettled": optionalNumber("How many servers of the region may be created, replaced or moved at once, such as `3`. Default `10`.", int64validator.AtLeast(1)),
			"remediation": optionalText("`heal` (the default): the daemon corrects what drifts; `observe`: it shows what it would do, and only what an apply declares runs.",
				string(fleet.RemediationHeal), string(fleet.RemediationObserve)),
			"paused":              off("Whether nothing may be changed in the region: observation goes on, effects do not start, destroying waits."),
			"cordoned":            off("Whether new servers are refused; existing ones are served as before."),
			"labels":              labels("region"),
			"deletion_protection": deletionProtection("region"),
			"sidecar": optionalObject("Sidecar that is probed beside each replica and marked ready again after its pod was replaced. Default: none.", map[string]schema.Attribute{
				"port":            requiredPort("Port of the sidecar, such as `9100`."),
				"ready_path":      optionalText("Path that answers 200 when it is ready and 503 when it is not. Default `/v0/healthz`."),
				"mark_ready_path": optionalText("Path that marks it ready. Default `/v0/mark-ready`."),
				"scheme":          optionalText("`http` (the default) or `https`.", fleet.SchemeHTTP, fleet.SchemeHTTPS),
				"timeout":         optionalDuration("How long one probe may take, such as `1s`. Default `2s`."),
			}),
			"kubernetes": kubernetesAttribute(),
			"containers": containersAttribute(),
		},
	}
}
