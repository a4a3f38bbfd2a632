package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// What creating or changing a server waits for.
const (
	waitActive   = "active"
	waitAccepted = "accepted"
)

func serverSchema(ctx context.Context) schema.Schema {
	return schema.Schema{
		MarkdownDescription: "A cache server: one account in one region. The daemon creates it, keeps it running as declared and replaces it gracefully when its version changes. " +
			"`image_tag` tells the truth: where the declared version failed and the daemon has nothing under way, it reads as the version that serves, so that the plan shows a change. " +
			"To go back to what serves is a change too, which `pending_image_tag` shows. " +
			"What moves by itself (status, conditions, containers) is in the data source `kura_server`.",
		Attributes: map[string]schema.Attribute{
			"account": name("Id of the account, such as `kura_account.acme.id`. Another account is another server."),
			"region":  name("Name of the region, such as `kura_region.eu_central.name`. Another region is another server."),
			"image_tag": requiredText("Version to run, a tag such as `1.4.2`; no digest. It replaces `{image_tag}` in the region's images. " +
				"A version that fails leaves the old one serving where it can, and the apply fails with the reason."),
			"overrides": optionalObject("What differs for this server from its region's document. Default: nothing.", map[string]schema.Attribute{
				"containers": optionalObject("Overrides in a container region. Default: none.", map[string]schema.Attribute{
					"services": optionalObjectMap("Overrides by service name; the region must have the service. Default: none.", map[string]schema.Attribute{
						"env":    textMap("Variables, such as `{ CACHE_GB = \"200\" }`: added to the region's, each winning over the region's of the same name. Default: none."),
						"memory": optionalText("Memory limit with its unit, such as `512Mi`. Default: the region's."),
						"cpus":   processors("Limit of processor time, in processors, such as `1.5`. Default: the region's."),
					}),
				}),
				"kubernetes": optionalObject("Overrides in a Kubernetes region. Default: none.", map[string]schema.Attribute{
					"replicas":     optionalNumber("Replicas, such as `5`. Default: the region's.", int64validator.AtLeast(1)),
					"storage_size": optionalText("Size of each replica's volume with its unit, such as `400Gi`. Default: the region's."),
					"env":          textMap("Variables, such as `{ CACHE_GB = \"400\" }`: added to the region's, each winning over the region's of the same name. Default: none."),
				}),
			}),
			"labels": labels("server"),
			"remediation": optionalText("`heal`: the daemon corrects what drifts; `observe`: it shows what it would do, and only what an apply declares runs. Default: the region's.",
				string(fleet.RemediationHeal), string(fleet.RemediationObserve)),
			"paused": off("Whether nothing may be changed on the server: observation goes on, effects do not start, destroying waits."),
			"wait_for": optionalText("What an apply waits for: `active` until the server runs the declared version and answers, `accepted` until the daemon has stored the declaration. Default: the provider's `wait_for`.",
				waitActive, waitAccepted),
			"deletion_protection": off("Whether a plan that destroys the server is refused. The daemon stores it, so it binds everybody; it does not bind a server that was never active. Set it to `false` and apply before destroying."),
			"timeouts":            serverTimeouts(ctx),
			"pending_image_tag": schema.StringAttribute{
				Computed: true, PlanModifiers: []planmodifier.String{ended()},
				MarkdownDescription: "Version that the daemon still wants where `image_tag` shows another one, or none, because that came to nothing; else null. " +
					"Every apply ends it: one that declares this version tries it again, and one that declares what serves takes it back, so that it does not come when its cause is gone.",
			},
			"instance":    stableText("Name of what the runtime holds, such as `kura-acme-eu-central`. It never changes while the server exists."),
			"host":        stableText("Declared public host, such as `acme-eu-central.kura.example.dev`. Unknown while the server is created; the function `provider::kura::host` knows it before."),
			"grpc_host":   stableText("Declared gRPC host; null where the region has none."),
			"global_host": stableText("Declared host that leads to the account's nearest region; null where the region has none."),
			"url":         stableText("Declared public url, such as `https://acme-eu-central.kura.example.dev`. Which url is published right now is in the data source `kura_server`."),
			"grpc_url":    stableText("Declared gRPC url; null where the region has none."),
			"global_url":  stableText("Declared global url; null where the region has none."),
		},
	}
}

func serverTimeouts(ctx context.Context) schema.Attribute {
	a, ok := timeouts.Attributes(ctx, timeouts.Opts{
		Create: true, Update: true, Delete: true,
		CreateDescription: "How long creating waits for the server, such as `30m`. Past it the apply goes on with a warning; the daemon goes on too. Default `20m`.",
		UpdateDescription: "How long a change waits for the server, such as `30m`. Past it the apply goes on with a warning; the daemon goes on too. Default `20m`.",
		DeleteDescription: "How long destroying waits until the server is gone, such as `15m`. Default `10m`.",
	}).(schema.SingleNestedAttribute)
	if ok {
		a.MarkdownDescription = "How long an apply waits for the server. Default: the defaults below."
	}
	return a
}
