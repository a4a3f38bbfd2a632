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

var _ ourResource = (*accountResource)(nil)

func newAccountResource() resource.Resource {
	return &accountResource{stored[accountModel]{
		typeName: "kura_account",
		noun:     func(m accountModel) string { return fmt.Sprintf("account %q", m.ID.ValueString()) },
		id:       func(m accountModel) string { return m.ID.ValueString() },
		identity: func(m accountModel) any { return accountIdentity{m.ID} },
		get: func(ctx context.Context, c *api.Client, m accountModel) (accountModel, int64, error) {
			found, err := c.GetAccount(ctx, m.ID.ValueString())
			return flattenAccount(found.Account), found.Generation, err
		},
		put: func(ctx context.Context, c *api.Client, m accountModel, o api.PutOptions) (accountModel, int64, []fleet.Warning, error) {
			w, err := c.PutAccount(ctx, m.expand(), o)
			return flattenAccount(w.Object.Account), w.Object.Generation, w.Warnings, err
		},
		delete: func(ctx context.Context, c *api.Client, m accountModel) error {
			return c.DeleteAccount(ctx, m.ID.ValueString())
		},
	}}
}

type accountResource struct{ stored[accountModel] }

func (r *accountResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"id": identityschema.StringAttribute{RequiredForImport: true, Description: "Permanent id of the account."},
	}}
}

func (r *accountResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "An account: a tenant that has at most one cache server in each region.",
		Attributes: map[string]schema.Attribute{
			"id": name("Permanent id, such as `acme`: names everything that must survive a rename (instances, containers, volumes). Another id is another account: the old one is destroyed and a new one created."),
			"handle": optionalText("Public name, such as `acme-inc`, which appears in host names only, in lower case. It may change: servers then move to new hosts, while instances and storage stay. " +
				"The plan says which hosts move. No other account may have it as its id or handle, nor for the alias period after this one gave it up (see `kurad serve --alias-period`). Default: the `id`."),
			"labels":              labels("account"),
			"deletion_protection": deletionProtection("account"),
		},
	}
}

func (r *accountResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	checkConfig(ctx, req.Config, "Validate account", func(m accountModel) error { return m.expand().Validate() }, &resp.Diagnostics)
}

func (r *accountResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	protect(ctx, req, resp, "account")
	r.preview(ctx, req, resp)
}

func (r *accountResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("id"), path.Root("id"), req, resp)
}
