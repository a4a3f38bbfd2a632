package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func newDNSAuditDataSource() datasource.DataSource {
	return &source{
		typeName: "kura_dns_audit",
		about: "What in the DNS zones of the daemon (`kurad serve --zone`) is not as the servers want it, for `check` blocks: hosts that another owner has or that nobody has published, " +
			"hosts and ownership records of this environment that nobody wants, and what shadows a host. It is from the newest listing of each zone; nothing is changed. `kurad dns audit` shows the same.",
		attributes: map[string]schema.Attribute{
			"zone": filterText("Only this zone, such as `kura.example.dev`; one that the daemon was not given is an error."),
			"kind": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Only findings of this kind, such as `wanted-foreign`. Default: all but `wanted-ours`, of which nothing is wrong. `clean` and `counts` are of all kinds.",
				Validators:          []validator.String{stringvalidator.OneOf(findingKinds()...)},
			},
			"clean":  shownBool("Whether every zone could be listed and nothing but `wanted-ours` was found in it; true as well where the daemon was given no zone."),
			"counts": shownNumbers("How many findings of each kind there are; every kind is a key."),
			"zones": objects("The zones, by domain.", map[string]schema.Attribute{
				"zone":      shownText("Domain of the zone, such as `kura.example.dev`."),
				"listed_at": shownText("When the listing began that the findings are from, in RFC 3339; null where there was none."),
				"reason":    shownText("Why the zone cannot be listed now, such as `ZoneUnreachable` or `RateLimited`: what is found there was so before. Null where it can."),
				"message":   shownText("The same in words."),
			}),
			"findings": objects("What was found, by zone, host and kind.", map[string]schema.Attribute{
				"zone":        shownText("Domain of the zone."),
				"host":        shownText("Name of the host."),
				"kind":        shownText("What is wrong: `wanted-foreign` (somebody else has it), `wanted-absent` (nobody has published it), `wanted-unreadable` (its ownership record is encrypted, or names nobody), `wanted-unread` (no read has answered yet), `unwanted-stale` (ours, without this environment's suffix), `unwanted` (ours, and no server wants it), `txt-without-record`, `record-without-txt-beside-foreign`, `two-owners`, `owner-in-two-environments`, `balancer-shadows-record`, `unwanted-balancer` and `unwanted-pool` (ours, and no server wants it); or `wanted-ours`."),
				"owners":      shownTexts("Owner ids of all that claim the host."),
				"environment": shownText("Another environment, whose suffix the host carries or that the ownership record names; else null."),
				"resource":    shownText("What the ownership record says that the host is for."),
				"account":     shownText("Account of the server that wants the host, or that it was published for; null where none is known."),
				"region":      shownText("Region of that server."),
				"contents":    shownTexts("What the host leads to, each as type and content."),
				"why":         shownText("What is wrong, in words."),
				"prunable":    shownBool("Whether `kurad dns prune` deletes it."),
			}),
		},
		what: always("Audit DNS zones"),
		answer: func(ctx context.Context, c *api.Client, q question, _ *diag.Diagnostics) (any, error) {
			a, err := c.DNSAudit(ctx, api.DNSFilter{Zone: q.Zone, Kind: q.Kind})
			counts := map[string]int{}
			for _, k := range fleet.FindingKinds() {
				counts[string(k)] = a.Counts[k]
			}
			return map[string]any{
				"clean": a.Clean(), "counts": counts, "zones": a.Zones,
				"findings": rows(a.Items, func(fleet.Finding) bool { return true }, shownFinding),
			}, err
		},
	}
}

// shownFinding is a finding whose flag is there where it is false, too.
func shownFinding(f fleet.Finding) any {
	return struct {
		fleet.Finding
		Prunable bool `json:"prunable"`
	}{f, f.Prunable}
}

func findingKinds() (all []string) {
	for _, k := range fleet.FindingKinds() {
		all = append(all, string(k))
	}
	return all
}
