package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var _ ourResource = (*cacheEndpointResource)(nil)

func newCacheEndpointResource() resource.Resource {
	return &cacheEndpointResource{stored[cacheEndpointModel]{
		typeName: "kura_cache_endpoint",
		noun:     func(m cacheEndpointModel) string { return "cache endpoint " + m.expand().String() },
		id:       func(m cacheEndpointModel) string { return m.expand().String() },
		identity: func(m cacheEndpointModel) any { return m },
		get: func(ctx context.Context, c *api.Client, m cacheEndpointModel) (cacheEndpointModel, int64, error) {
			found, err := c.GetCacheEndpoint(ctx, m.expand())
			return flattenCacheEndpoint(found.CacheEndpoint), found.Generation, err
		},
		put: func(ctx context.Context, c *api.Client, m cacheEndpointModel, o api.PutOptions) (cacheEndpointModel, int64, []fleet.Warning, error) {
			w, err := c.PutCacheEndpoint(ctx, m.expand(), o)
			return flattenCacheEndpoint(w.Object.CacheEndpoint), w.Object.Generation, w.Warnings, err
		},
		delete: func(ctx context.Context, c *api.Client, m cacheEndpointModel) error {
			return c.DeleteCacheEndpoint(ctx, m.expand())
		},
	}}
}

// cacheEndpointResource has no attribute that changes in place, so core never asks for
// an Update.
type cacheEndpointResource struct{ stored[cacheEndpointModel] }

func (r *cacheEndpointResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"account":    identityschema.StringAttribute{RequiredForImport: true, Description: "Id of the account."},
		"technology": identityschema.StringAttribute{RequiredForImport: true, Description: "Technology, such as default."},
		"url":        identityschema.StringAttribute{RequiredForImport: true, Description: "Url, as it was declared."},
	}}
}

func (r *cacheEndpointResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
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
	}
}

func (r *cacheEndpointResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var m cacheEndpointModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	e := m.expand()
	if m.Account.IsUnknown() { // mostly another resource's: no reason to leave the url unchecked
		e.Account = "unknown"
	}
	if m.URL.IsUnknown() {
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
	m := cacheEndpointModel{}
	if req.ID == "" {
		resp.Diagnostics.Append(req.Identity.Get(ctx, &m)...)
	} else if e, err := fleet.ParseCacheEndpoint(req.ID); err != nil {
		report(&resp.Diagnostics, nil, fmt.Sprintf("Import cache endpoint %q", req.ID), err)
	} else {
		m = flattenCacheEndpoint(e)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("account"), m.Account)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("technology"), m.Technology)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("url"), m.URL)...)
}
