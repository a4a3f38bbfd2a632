package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var (
	_ resource.ResourceWithConfigure      = (*regionResource)(nil)
	_ resource.ResourceWithIdentity       = (*regionResource)(nil)
	_ resource.ResourceWithImportState    = (*regionResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*regionResource)(nil)
	_ resource.ResourceWithValidateConfig = (*regionResource)(nil)
)

func newRegionResource() resource.Resource { return &regionResource{} }

type regionResource struct{ configured }

func (r *regionResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "kura_region"
}

func (r *regionResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"name": identityschema.StringAttribute{RequiredForImport: true, Description: "Name of the region."},
	}}
}

func (r *regionResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = regionSchema()
}

func (r *regionResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	checkConfig(ctx, req.Config, "Validate region", func(m regionModel) error { return m.expand().Validate() }, &resp.Diagnostics)
}

func (r *regionResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	protect(ctx, req, resp, "region")
	previewNewRegion(ctx, r.session, req, resp)
	preview(ctx, r.session, req, resp, func(c *api.Client, m regionModel) (string, []api.Warning, error) {
		w, err := c.PutRegion(ctx, m.expand(), api.PutOptions{DryRun: true})
		return regionNoun(m.Name.ValueString()), w.Warnings, err
	})
}

func (r *regionResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan regionModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	what := "Create " + regionNoun(plan.Name.ValueString())
	client := r.session.use(ctx, what, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	written, err := client.PutRegion(ctx, plan.expand(), api.PutOptions{IfNoneMatch: true})
	if err != nil {
		_, found := client.GetRegion(ctx, plan.Name.ValueString())
		reportCreate(&resp.Diagnostics, req.Plan.Schema.Type(), what, err, found, "kura_region", plan.Name.ValueString())
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.Plan.Raw, flattenRegion(written.Object.Region))...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, regionIdentity{plan.Name})...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, written.Object.Generation)...)
}

func (r *regionResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state regionModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	what := "Read " + regionNoun(state.Name.ValueString())
	client := r.session.use(ctx, what, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, regionIdentity{state.Name})...)
	region, err := client.GetRegion(ctx, state.Name.ValueString())
	if has(err, fleet.CodeNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		report(&resp.Diagnostics, req.State.Schema.Type(), what, err)
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.State.Raw, flattenRegion(region.Region))...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, region.Generation)...)
}

func (r *regionResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan regionModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	what := "Update " + regionNoun(plan.Name.ValueString())
	client := r.session.use(ctx, what, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	written, err := client.PutRegion(ctx, plan.expand(), api.PutOptions{IfMatch: plannedGeneration(ctx, req.Private)})
	if err != nil {
		report(&resp.Diagnostics, req.Plan.Schema.Type(), what, err)
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.Plan.Raw, flattenRegion(written.Object.Region))...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, regionIdentity{plan.Name})...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, written.Object.Generation)...)
}

func (r *regionResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state regionModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	what := "Delete " + regionNoun(state.Name.ValueString())
	client := r.session.use(ctx, what, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := client.DeleteRegion(ctx, state.Name.ValueString()); err != nil && !has(err, fleet.CodeNotFound) {
		reportDelete(&resp.Diagnostics, req.State.Schema.Type(), what, err)
	}
}

func (r *regionResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("name"), path.Root("name"), req, resp)
}

func regionNoun(name string) string { return fmt.Sprintf("region %q", name) }
