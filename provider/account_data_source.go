package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

// accountRow shows every account with a handle.
func accountRow(a api.Account) any {
	return amended{a, map[string]any{"handle": a.PublicHandle(), "labels": orEmpty(a.Labels)}}
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
	return one(source{
		typeName:   "kura_account",
		about:      "An account as it is declared. One that does not exist is an error.",
		attributes: with(accountShown(), map[string]schema.Attribute{"id": askedText("Permanent id of the account, such as `acme`.")}),
	}, "account", (*api.Client).GetAccount, accountRow)
}

func newAccountsDataSource() datasource.DataSource {
	return list(source{
		typeName: "kura_accounts",
		about:    "Accounts as they are declared.",
		attributes: map[string]schema.Attribute{
			"labels":   filterLabels("accounts"),
			"accounts": objects("The accounts, by id.", accountShown()),
		},
	}, "accounts", (*api.Client).ListAccounts, func(q question, a api.Account) bool { return bears(a.Labels, q.Labels) }, accountRow)
}
