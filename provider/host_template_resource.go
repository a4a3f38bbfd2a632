package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var _ ourResource = (*hostTemplateResource)(nil)

func newHostTemplateResource() resource.Resource {
	return &hostTemplateResource{stored[hostTemplateModel]{
		typeName: "kura_host_template",
		noun:     func(m hostTemplateModel) string { return fmt.Sprintf("host template %q", m.Name.ValueString()) },
		id:       func(m hostTemplateModel) string { return m.Name.ValueString() },
		identity: func(m hostTemplateModel) any { return hostTemplateIdentity{m.Name} },
		get: func(ctx context.Context, c *api.Client, m hostTemplateModel) (hostTemplateModel, int64, error) {
			found, err := c.GetHostTemplate(ctx, m.Name.ValueString())
			return flattenHostTemplate(found), found.Generation, err
		},
		put: func(ctx context.Context, c *api.Client, m hostTemplateModel, o api.PutOptions) (hostTemplateModel, int64, []fleet.Warning, error) {
			w, err := c.PutHostTemplate(ctx, m.expand(), o)
			return flattenHostTemplate(w.Object), w.Object.Generation, w.Warnings, err
		},
		delete: func(ctx context.Context, c *api.Client, m hostTemplateModel) error {
			return c.DeleteHostTemplate(ctx, m.Name.ValueString())
		},
	}}
}

type hostTemplateResource struct{ stored[hostTemplateModel] }

func (r *hostTemplateResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"name": identityschema.StringAttribute{RequiredForImport: true, Description: "Name of the host template."},
	}}
}

func (r *hostTemplateResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
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
	}
}

func (r *hostTemplateResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	checkConfig(ctx, req.Config, "Validate host template", func(m hostTemplateModel) error { return fleet.CheckPattern(m.Pattern.ValueString()) }, &resp.Diagnostics)
}

func (r *hostTemplateResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	planHostTemplate(ctx, r.session, req, resp)
	r.preview(ctx, req, resp)
}

func (r *hostTemplateResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("name"), path.Root("name"), req, resp)
}
