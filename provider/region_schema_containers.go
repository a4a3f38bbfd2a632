package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/mapvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const tokenNote = "Tokens such as `{image_tag}`, `{account}`, `{instance}`, `{public_host}` or `{port:<name>}` are filled in for each server; `{{` is a brace."

func containersAttribute() schema.SingleNestedAttribute {
	return optionalObject("Servers are containers on one endpoint (Podman or Docker). Exactly one of `kubernetes` and `containers` is set.", map[string]schema.Attribute{
		"endpoint": requiredText("Name of a container endpoint that the daemon was given (`--container-endpoint`), such as `edge-1`. Its address and credentials are the daemon's."),
		"pull": optionalText("When images are pulled: `missing` (the default), `always` or `never`.",
			string(fleet.PullMissing), string(fleet.PullAlways), string(fleet.PullNever)),
		"services": schema.MapNestedAttribute{
			Required: true,
			MarkdownDescription: "The containers of a server, by service name. At least one image holds `{image_tag}`, and exactly one port of all has `endpoint = \"public\"`. " +
				"A change replaces the containers of that service in every server, gracefully, the old one stopping only when the new one is prepared. " + tokenNote,
			Validators:   []validator.Map{mapvalidator.SizeAtLeast(1), mapvalidator.NoNullValues()},
			NestedObject: schema.NestedAttributeObject{Attributes: serviceAttributes()},
		},
	})
}

func serviceAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"image":        requiredText("Image, such as `registry.example.dev/kura/cache:{image_tag}`. " + tokenNote),
		"command":      textList("Arguments that the image's program gets, such as `[\"serve\", \"--port\", \"8080\"]`. " + tokenNote + " Default: the image's."),
		"env":          textMap("Variables, such as `{ LISTEN = \":8080\" }`. " + tokenNote + " Default: none. Secrets belong into `env_from`."),
		"env_from":     textList("Names of sets of variables that the daemon was given, such as `[\"tracing\"]`; a later one wins over an earlier one. Default: none."),
		"labels":       textMap("Labels of the container beside the daemon's own, such as rules for a proxy. " + tokenNote + " Default: none."),
		"user":         optionalText("User and group that it runs as, such as `1000:1000`. Default: the image's."),
		"memory":       optionalText("Memory limit with its unit, such as `256Mi`. Default: none."),
		"cpus":         processors("Limit of processor time, in processors, such as `0.5`. Default: none."),
		"stop_signal":  optionalText("Signal that asks it to stop, such as `SIGINT`. Default `SIGTERM`."),
		"grace_period": optionalDuration("How long it may take to stop before it is killed, such as `10s`. Default `30s`."),
		"volumes": optionalObjectList("What is mounted: each is a volume of the server (`name`) or a path of the host (`host_path`). Default: nothing.", map[string]schema.Attribute{
			"name":      optionalText("Name of a volume that the server has for itself, such as `data`. Conflicts with `host_path`."),
			"host_path": optionalText("Path of the host, such as `/srv/kura/certs`; the daemon must allow it for this endpoint, and no service of any region there may write a path above it. Conflicts with `name`."),
			"path":      requiredText("Where it is mounted, such as `/var/lib/kura`."),
			"read_only": off("Whether it can be read only."),
			"retain":    off("Whether a named volume stays when the server is destroyed."),
		}),
		"ports": optionalObjectMap("Published ports by name. Default: none.", map[string]schema.Attribute{
			"container": requiredPort("Port within the container, such as `8080`."),
			"host":      optionalNumber("Port of the host, such as `443`; one host port serves one server only. Default: assigned by the daemon and kept until the server is destroyed.", ports()),
			"bind":      optionalText("Address of the host to publish on, such as `127.0.0.1`. Default: the endpoint's."),
			"protocol":  optionalText("`tcp` (the default) or `udp`.", "tcp", "udp"),
			"endpoint":  optionalText("What it serves: `public` (the server's url) or `grpc`. Default: neither.", fleet.EndpointPublic, fleet.EndpointGRPC),
		}),
	}
}
