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

var (
	_ resource.ResourceWithConfigure      = (*hostTemplateResource)(nil)
	_ resource.ResourceWithIdentity       = (*hostTemplateResource)(nil)
	_ resource.ResourceWithImportState    = (*hostTemplateResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*hostTemplateResource)(nil)
	_ resource.ResourceWithValidateConfig = (*hostTemplateResource)(nil)
)

func newHostTemplateResource() resource.Resource { return &hostTemplateResource{} }

type hostTemplateResource struct{ configured }

func (r *hostTemplateResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "kura_host_template"
}

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
	preview(ctx, r.session, req, resp, func(c *api.Client, m hostTemplateModel) (string, []api.Warning, error) {
		w, err := c.PutHostTemplate(ctx, m.expand(), api.PutOptions{DryRun: true})
		return hostTemplateNoun(m.Name.ValueString()), w.Warnings, err
	})
}

func (r *hostTemplateResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan hostTemplateModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	what := "Create " + hostTemplateNoun(plan.Name.ValueString())
	client := r.session.use(ctx, what, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	written, err := client.PutHostTemplate(ctx, plan.expand(), api.PutOptions{IfNoneMatch: true})
	if err != nil {
		_, found := client.GetHostTemplate(ctx, plan.Name.ValueString())
		reportCreate(&resp.Diagnostics, req.Plan.Schema.Type(), what, err, found, "kura_host_template", plan.Name.ValueString())
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.Plan.Raw, flattenHostTemplate(written.Object))...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, hostTemplateIdentity{plan.Name})...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, written.Object.Generation)...)
}

func (r *hostTemplateResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state hostTemplateModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	what := "Read " + hostTemplateNoun(state.Name.ValueString())
	client := r.session.use(ctx, what, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, hostTemplateIdentity{state.Name})...)
	template, err := client.GetHostTemplate(ctx, state.Name.ValueString())
	if has(err, fleet.CodeNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		report(&resp.Diagnostics, req.State.Schema.Type(), what, err)
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.State.Raw, flattenHostTemplate(template))...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, template.Generation)...)
}

func (r *hostTemplateResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan hostTemplateModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	what := "Update " + hostTemplateNoun(plan.Name.ValueString())
	client := r.session.use(ctx, what, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	written, err := client.PutHostTemplate(ctx, plan.expand(), api.PutOptions{IfMatch: plannedGeneration(ctx, req.Private)})
	if err != nil {
		report(&resp.Diagnostics, req.Plan.Schema.Type(), what, err)
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.Plan.Raw, flattenHostTemplate(written.Object))...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, hostTemplateIdentity{plan.Name})...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, written.Object.Generation)...)
}

func (r *hostTemplateResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state hostTemplateModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	what := "Delete " + hostTemplateNoun(state.Name.ValueString())
	client := r.session.use(ctx, what, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := client.DeleteHostTemplate(ctx, state.Name.ValueString()); err != nil && !has(err, fleet.CodeNotFound) {
		reportDelete(&resp.Diagnostics, req.State.Schema.Type(), what, err)
	}
}

func (r *hostTemplateResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("name"), path.Root("name"), req, resp)
}

func hostTemplateNoun(name string) string { return fmt.Sprintf("host template %q", name) }
