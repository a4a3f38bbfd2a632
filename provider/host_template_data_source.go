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

func hostTemplateShown() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"name":       shownText("Name, by which regions refer to it."),
		"pattern":    shownText("Pattern of the hosts, with its tokens."),
		"env_suffix": shownText("What `{env_suffix}` stands for here, such as `-staging`; empty in production."),
		"zone":       shownText("Zone of the hosts: all behind the first label."),
		"example":    shownText("Host that an account `acme` would have in cluster `eu-central`."),
	}
}

func newHostTemplateDataSource() datasource.DataSource {
	return &source[hostTemplateModel]{
		typeName:   "kura_host_template",
		about:      "A host template as it is declared. One that does not exist is an error.",
		attributes: with(hostTemplateShown(), map[string]schema.Attribute{"name": askedText("Name of the host template, such as `public`.")}),
		what:       func(m hostTemplateModel) string { return fmt.Sprintf("Read host template %q", m.Name.ValueString()) },
		fill: func(ctx context.Context, c *api.Client, m *hostTemplateModel, _ *diag.Diagnostics) error {
			t, err := c.GetHostTemplate(ctx, m.Name.ValueString())
			*m = flattenHostTemplate(t)
			return err
		},
	}
}

type hostTemplatesModel struct {
	Zone          types.String        `tfsdk:"zone"`
	HostTemplates []hostTemplateModel `tfsdk:"host_templates"`
}

func newHostTemplatesDataSource() datasource.DataSource {
	return &source[hostTemplatesModel]{
		typeName: "kura_host_templates",
		about:    "Host templates as they are declared.",
		attributes: map[string]schema.Attribute{
			"zone":           filterText("Only those whose hosts lie in this zone, such as `kura.example.dev`."),
			"host_templates": objects("The host templates, by name.", hostTemplateShown()),
		},
		what: always[hostTemplatesModel]("List host templates"),
		fill: func(ctx context.Context, c *api.Client, m *hostTemplatesModel, _ *diag.Diagnostics) error {
			all, err := c.ListHostTemplates(ctx)
			m.HostTemplates = rows(all, func(t api.HostTemplate) bool { return asked(m.Zone, t.Zone) }, flattenHostTemplate)
			return err
		},
	}
}
