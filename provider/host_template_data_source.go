package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"

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
	return one(source{
		typeName:   "kura_host_template",
		about:      "A host template as it is declared. One that does not exist is an error.",
		attributes: with(hostTemplateShown(), map[string]schema.Attribute{"name": askedText("Name of the host template, such as `public`.")}),
	}, "host template", (*api.Client).GetHostTemplate, asIs)
}

func newHostTemplatesDataSource() datasource.DataSource {
	return list(source{
		typeName: "kura_host_templates",
		about:    "Host templates as they are declared.",
		attributes: map[string]schema.Attribute{
			"zone":           filterText("Only those whose hosts lie in this zone, such as `kura.example.dev`."),
			"host_templates": objects("The host templates, by name.", hostTemplateShown()),
		},
	}, "host_templates", (*api.Client).ListHostTemplates, func(q question, t api.HostTemplate) bool { return asked(q.Zone, t.Zone) }, asIs)
}
