package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var _ ourResource = (*hostTemplateResource)(nil)

func newHostTemplateResource() resource.Resource {
	return &hostTemplateResource{stored[string, fleet.HostTemplate, api.HostTemplate]{
		typeName: "kura_host_template",
		schema: schema.Schema{
			MarkdownDescription: "A host template: the pattern that hosts of servers are rendered from. Regions name it. One that a region still names cannot be deleted; " +
				"with `lifecycle { create_before_destroy = true }`, one apply can move a region to another template and delete the old one, for then it is deleted last.",
			Attributes: map[string]schema.Attribute{
				"name": name("Name, such as `public`, by which regions refer to it. Another name is another template."),
				"pattern": requiredText("Pattern of the hosts, such as `{account_handle}-{cluster_id}{env_suffix}.kura.example.dev`. Tokens: `{account_handle}`, `{cluster_id}`, `{region}` and `{env_suffix}`, " +
					"which must stand exactly once, at the end of the first label, so that no two environments render one host and one wildcard certificate covers all. A change moves hosts; the plan says which."),
				"env_suffix": derivedText("What `{env_suffix}` stands for in the provider's environment, such as `-staging`; empty in production."),
				"zone":       derivedText("Zone of the hosts: all behind the first label, such as `kura.example.dev`."),
				"example":    derivedText("Host that an account `acme` would have in cluster `eu-central`, such as `acme-eu-central-staging.kura.example.dev`."),
			},
		},
		identity: map[string]string{"name": "Name of the host template."},
		key:      func(t fleet.HostTemplate) string { return t.Name },
		check:    func(t fleet.HostTemplate) error { return fleet.CheckPattern(t.Pattern) },
		get:      (*api.Client).GetHostTemplate, put: (*api.Client).PutHostTemplate, delete: (*api.Client).DeleteHostTemplate,
		generation: func(t api.HostTemplate) int64 { return t.Generation },
	}}
}

type hostTemplateResource struct {
	stored[string, fleet.HostTemplate, api.HostTemplate]
}

func (r *hostTemplateResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	r.planDerived(ctx, req, resp)
	r.preview(ctx, req, resp)
}

// planDerived computes what follows from the pattern, so that the plan shows it, and refuses
// a pattern whose hosts would read like another environment's (H2).
func (r *hostTemplateResource) planDerived(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	plan, err := decode[fleet.HostTemplate](resp.Plan.Raw)
	if err != nil || plan.Name == "" || plan.Pattern == "" {
		return // destroyed, or not known yet
	}
	e, ok := r.session.serves()
	if !ok {
		return // unknown until the apply
	}
	if err := plan.Validate(e); err != nil {
		report(&resp.Diagnostics, req.Plan.Schema.Type(), "Plan "+r.named(plan), err)
		return
	}
	if resp.Plan.Raw.IsFullyKnown() {
		return // nothing changes: what Read found stays
	}
	for name, value := range map[string]string{"env_suffix": e.Suffix, "zone": fleet.Zone(plan.Pattern), "example": e.ExampleHost(plan.Pattern)} {
		resp.Diagnostics.Append(resp.Plan.SetAttribute(ctx, path.Root(name), types.StringValue(value))...)
	}
}
