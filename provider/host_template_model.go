package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

type hostTemplateModel struct {
	Name      types.String `tfsdk:"name"`
	Pattern   types.String `tfsdk:"pattern"`
	EnvSuffix types.String `tfsdk:"env_suffix"`
	Zone      types.String `tfsdk:"zone"`
	Example   types.String `tfsdk:"example"`
}

func (m hostTemplateModel) expand() fleet.HostTemplate {
	return fleet.HostTemplate{Name: m.Name.ValueString(), Pattern: m.Pattern.ValueString()}
}

func flattenHostTemplate(t api.HostTemplate) hostTemplateModel {
	return hostTemplateModel{
		Name: types.StringValue(t.Name), Pattern: types.StringValue(t.Pattern),
		EnvSuffix: types.StringValue(t.EnvSuffix), Zone: types.StringValue(t.Zone), Example: types.StringValue(t.Example),
	}
}

type hostTemplateIdentity struct {
	Name types.String `tfsdk:"name"`
}
