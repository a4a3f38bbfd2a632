package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var _ ourResource = (*cacheEndpointResource)(nil)

func newCacheEndpointResource() resource.Resource {
	return &cacheEndpointResource{stored[fleet.CacheEndpoint, fleet.CacheEndpoint, api.CacheEndpoint]{
		typeName: "kura_cache_endpoint",
		schema: schema.Schema{
			MarkdownDescription: fmt.Sprintf("A url that clients of an account are given besides those of its servers, which the daemon derives by itself (`kura_cache_endpoints` lists both). The daemon asks it every 30 s or so whether it answers, "+
				"so that clients get first what does; it changes nothing there. Another value of any attribute is another endpoint. An account has at most %d, and cannot be deleted before them.", fleet.MaxCacheEndpoints),
			Attributes: map[string]schema.Attribute{
				"account": name("Id of the account, such as `acme`."),
				"technology": schema.StringAttribute{
					Optional: true, Computed: true, Default: stringdefault.StaticString(fleet.TechnologyDefault), Validators: filled(),
					PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
					MarkdownDescription: "What answers there, in a word that your clients know, such as `bazel`. Not `kura`, which is what the daemon runs itself. Default `default`.",
				},
				"url": name("Where clients find it, such as `https://cache.example.dev` or `https://cache.example.dev:8443/bazel`: https, a host in lower case, no user, query or fragment, and no slash at the end. " +
					"A host in the zone of one of this environment's host templates must bear this environment's suffix: one that does not is another environment's, and the plan refuses it."),
			},
		},
		identity: map[string]string{"account": "Id of the account.", "technology": "Technology, such as default.", "url": "Url, as it was declared."},
		key:      func(e fleet.CacheEndpoint) fleet.CacheEndpoint { return e },
		get:      (*api.Client).GetCacheEndpoint, put: (*api.Client).PutCacheEndpoint, delete: (*api.Client).DeleteCacheEndpoint,
		generation: func(e api.CacheEndpoint) int64 { return e.Generation },
	}}
}

// cacheEndpointResource has no attribute that changes in place, so core never asks for
// an Update.
type cacheEndpointResource struct {
	stored[fleet.CacheEndpoint, fleet.CacheEndpoint, api.CacheEndpoint]
}

func (r *cacheEndpointResource) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	e, err := decode[fleet.CacheEndpoint](req.Config.Raw)
	config, _, ok := entries(req.Config.Raw, req.Config.Raw)
	if err != nil || !ok {
		return // the schema's own checks say what it is
	}
	if !config["account"].IsKnown() { // mostly another resource's: no reason to leave the url unchecked
		e.Account = "unknown"
	}
	if !config["url"].IsKnown() {
		e.URL = "https://unknown"
	}
	if err := e.Validate(); err != nil {
		report(&resp.Diagnostics, req.Config.Schema.Type(), "Validate cache endpoint", err)
	}
}

func (r *cacheEndpointResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	r.previewNew(ctx, req, resp)
}

func (r *cacheEndpointResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	if req.ID == "" {
		for name := range r.identity {
			var value types.String
			resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root(name), &value)...)
			resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), value)...)
		}
		return
	}
	e, err := fleet.ParseCacheEndpoint(req.ID)
	if err != nil {
		report(&resp.Diagnostics, nil, fmt.Sprintf("Import cache endpoint %q", req.ID), err)
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, resp.State.Raw, e.WithDefaults())...)
}
