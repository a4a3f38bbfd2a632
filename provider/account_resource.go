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
	_ resource.ResourceWithConfigure      = (*accountResource)(nil)
	_ resource.ResourceWithIdentity       = (*accountResource)(nil)
	_ resource.ResourceWithImportState    = (*accountResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*accountResource)(nil)
	_ resource.ResourceWithValidateConfig = (*accountResource)(nil)
)

func newAccountResource() resource.Resource { return &accountResource{} }

type accountResource struct{ configured }

func (r *accountResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "kura_account"
}

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
				"The plan says which hosts move. Default: the `id`."),
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
	preview(ctx, r.session, req, resp, func(c *api.Client, m accountModel) (string, []api.Warning, error) {
		w, err := c.PutAccount(ctx, m.expand(), api.PutOptions{DryRun: true})
		return accountNoun(m.ID.ValueString()), w.Warnings, err
	})
}

func (r *accountResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan accountModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	what := "Create " + accountNoun(plan.ID.ValueString())
	client := r.session.use(ctx, what, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	written, err := client.PutAccount(ctx, plan.expand(), api.PutOptions{IfNoneMatch: true})
	if err != nil {
		_, found := client.GetAccount(ctx, plan.ID.ValueString())
		reportCreate(&resp.Diagnostics, req.Plan.Schema.Type(), what, err, found, "kura_account", plan.ID.ValueString())
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.Plan.Raw, flattenAccount(written.Object.Account))...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, accountIdentity{plan.ID})...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, written.Object.Generation)...)
}

func (r *accountResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state accountModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	what := "Read " + accountNoun(state.ID.ValueString())
	client := r.session.use(ctx, what, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, accountIdentity{state.ID})...)
	account, err := client.GetAccount(ctx, state.ID.ValueString())
	if has(err, fleet.CodeNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		report(&resp.Diagnostics, req.State.Schema.Type(), what, err)
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.State.Raw, flattenAccount(account.Account))...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, account.Generation)...)
}

func (r *accountResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan accountModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	what := "Update " + accountNoun(plan.ID.ValueString())
	client := r.session.use(ctx, what, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	written, err := client.PutAccount(ctx, plan.expand(), api.PutOptions{IfMatch: plannedGeneration(ctx, req.Private)})
	if err != nil {
		report(&resp.Diagnostics, req.Plan.Schema.Type(), what, err)
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.Plan.Raw, flattenAccount(written.Object.Account))...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, accountIdentity{plan.ID})...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, written.Object.Generation)...)
}

func (r *accountResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state accountModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	what := "Delete " + accountNoun(state.ID.ValueString())
	client := r.session.use(ctx, what, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := client.DeleteAccount(ctx, state.ID.ValueString()); err != nil && !has(err, fleet.CodeNotFound) {
		reportDelete(&resp.Diagnostics, req.State.Schema.Type(), what, err)
	}
}

func (r *accountResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	resource.ImportStatePassthroughWithIdentity(ctx, path.Root("id"), path.Root("id"), req, resp)
}

func accountNoun(id string) string { return fmt.Sprintf("account %q", id) }
