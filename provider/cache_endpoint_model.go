package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// cacheEndpointModel is the resource and its identity alike: there is nothing else to it.
type cacheEndpointModel struct {
	Account    types.String `tfsdk:"account"`
	Technology types.String `tfsdk:"technology"`
	URL        types.String `tfsdk:"url"`
}

func (m cacheEndpointModel) expand() fleet.CacheEndpoint {
	return fleet.CacheEndpoint{Account: m.Account.ValueString(), Technology: m.Technology.ValueString(), URL: m.URL.ValueString()}
}

func flattenCacheEndpoint(e fleet.CacheEndpoint) cacheEndpointModel {
	return cacheEndpointModel{Account: types.StringValue(e.Account), Technology: types.StringValue(e.WithDefaults().Technology), URL: types.StringValue(e.URL)}
}
