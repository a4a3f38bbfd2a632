package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var _ ourResource = (*regionResource)(nil)

func newRegionResource() resource.Resource {
	return &regionResource{stored[string, fleet.Region, api.Region]{
		typeName: "kura_region",
		schema:   regionSchema(),
		identity: map[string]string{"name": "Name of the region."},
		key:      func(r fleet.Region) string { return r.Name },
		check:    fleet.Region.Validate,
		get:      (*api.Client).GetRegion, put: (*api.Client).PutRegion, delete: (*api.Client).DeleteRegion,
		generation: func(r api.Region) int64 { return r.Generation },
	}}
}

type regionResource struct {
	stored[string, fleet.Region, api.Region]
}

func (r *regionResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	r.protect(ctx, req, resp)
	r.previewNew(ctx, req, resp)
	r.preview(ctx, req, resp)
}
