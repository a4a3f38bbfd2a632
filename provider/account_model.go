package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

type accountModel struct {
	ID                 types.String      `tfsdk:"id"`
	Handle             types.String      `tfsdk:"handle"`
	Labels             map[string]string `tfsdk:"labels"`
	DeletionProtection types.Bool        `tfsdk:"deletion_protection"`
}

func (m accountModel) expand() fleet.Account {
	return fleet.Account{
		ID: m.ID.ValueString(), Handle: m.Handle.ValueString(), Labels: m.Labels,
		DeletionProtection: m.DeletionProtection.ValueBool(),
	}
}

func flattenAccount(a fleet.Account) accountModel {
	return accountModel{
		ID: types.StringValue(a.ID), Handle: text(a.Handle), Labels: a.Labels,
		DeletionProtection: types.BoolValue(a.DeletionProtection),
	}
}

type accountIdentity struct {
	ID types.String `tfsdk:"id"`
}
