package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var _ ourResource = (*accountResource)(nil)

func newAccountResource() resource.Resource {
	return &accountResource{stored[string, fleet.Account, api.Account]{
		typeName: "kura_account",
		schema: schema.Schema{
			MarkdownDescription: "An account: a tenant that has at most one cache server in each region.",
			Attributes: map[string]schema.Attribute{
				"id": name("Permanent id, such as `acme`: names everything that must survive a rename (instances, containers, volumes). Another id is another account: the old one is destroyed and a new one created."),
				"handle": optionalText("Public name, such as `acme-inc`, which appears in host names only, in lower case. It may change: servers then move to new hosts, while instances and storage stay. " +
					"The plan says which hosts move. No other account may have it as its id or handle, nor for the alias period after this one gave it up (see `kurad serve --alias-period`). Default: the `id`."),
				"labels":              labels("account"),
				"deletion_protection": deletionProtection("account"),
			},
		},
		identity: map[string]string{"id": "Permanent id of the account."},
		key:      func(a fleet.Account) string { return a.ID },
		check:    fleet.Account.Validate,
		get:      (*api.Client).GetAccount, put: (*api.Client).PutAccount, delete: (*api.Client).DeleteAccount,
		generation: func(a api.Account) int64 { return a.Generation },
	}}
}

type accountResource struct {
	stored[string, fleet.Account, api.Account]
}

func (r *accountResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	r.protect(ctx, req, resp)
	r.preview(ctx, req, resp)
}
