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

var _ ourResource = (*regionResource)(nil)

func newRegionResource() resource.Resource {
	return &regionResource{stored[regionModel]{
		typeName: "kura_region",
		noun:     func(m regionModel) string { return fmt.Sprintf("region %q", m.Name.ValueString()) },
		id:       func(m regionModel) string { return m.Name.ValueString() },
		identity: func(m regionModel) any { return regionIdentity{m.Name} },
		get: func(ctx context.Context, c *api.Client, m regionModel) (regionModel, int64, error) {
			found, err := c.GetRegion(ctx, m.Name.ValueString())
			return flattenRegion(found.Region), found.Generation, err
		},
		put: func(ctx context.Context, c *api.Client, m regionModel, o api.PutOptions) (regionModel, int64, []fleet.Warning, error) {
			w, err := c.PutRegion(ctx, m.expand(), o)
			return flattenRegion(w.Object.Region), w.Object.Generation, w.Warnings, err
		},
		delete: func(ctx context.Context, c *api.Client, m regionModel) error {
			return c.DeleteRegion(ctx, m.Name.ValueString())
		},
	}}
}

type regionResource struct{ stored[regionModel] }

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
	r.previewNew(ctx, req, resp)
	r.preview(ctx, req, resp)
}

func (r *regionResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("name"), path.Root("name"), req, resp)
}
