package provider

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

type accountRowModel struct {
	ID                 types.String      `tfsdk:"id"`
	Handle             types.String      `tfsdk:"handle"`
	Labels             map[string]string `tfsdk:"labels"`
	DeletionProtection types.Bool        `tfsdk:"deletion_protection"`
	Generation         types.Int64       `tfsdk:"generation"`
}

func flattenAccountRow(a api.Account) accountRowModel {
	return accountRowModel{
		ID: types.StringValue(a.ID), Handle: types.StringValue(a.PublicHandle()), Labels: orEmpty(a.Labels),
		DeletionProtection: types.BoolValue(a.DeletionProtection), Generation: types.Int64Value(a.Generation),
	}
}

func accountShown() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"id":                  shownText("Permanent id."),
		"handle":              shownText("Public name, as it appears in hosts: the declared handle, or the id where none is declared."),
		"labels":              shownTextMap("Declared labels; empty where there are none."),
		"deletion_protection": shownBool("Whether a plan that destroys it is refused."),
		"generation":          shownNumber("How many times its declaration was written."),
	}
}

func newAccountDataSource() datasource.DataSource {
	return &source[accountRowModel]{
		typeName:   "kura_account",
		about:      "An account as it is declared. One that does not exist is an error.",
		attributes: with(accountShown(), map[string]schema.Attribute{"id": askedText("Permanent id of the account, such as `acme`.")}),
		what:       func(m accountRowModel) string { return fmt.Sprintf("Read account %q", m.ID.ValueString()) },
		fill: func(ctx context.Context, c *api.Client, m *accountRowModel, _ *diag.Diagnostics) error {
			a, err := c.GetAccount(ctx, m.ID.ValueString())
			*m = flattenAccountRow(a)
			return err
		},
	}
}

type accountsModel struct {
	Labels   map[string]string `tfsdk:"labels"`
	Accounts []accountRowModel `tfsdk:"accounts"`
}

func newAccountsDataSource() datasource.DataSource {
	return &source[accountsModel]{
		typeName: "kura_accounts",
		about:    "Accounts as they are declared.",
		attributes: map[string]schema.Attribute{
			"labels":   filterLabels("accounts"),
			"accounts": objects("The accounts, by id.", accountShown()),
		},
		what: always[accountsModel]("List accounts"),
		fill: func(ctx context.Context, c *api.Client, m *accountsModel, _ *diag.Diagnostics) error {
			all, err := c.ListAccounts(ctx)
			m.Accounts = rows(all, func(a api.Account) bool { return bears(a.Labels, m.Labels) }, flattenAccountRow)
			return err
		},
	}
}
