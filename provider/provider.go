package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

var (
	_ provider.Provider              = (*kuraProvider)(nil)
	_ provider.ProviderWithFunctions = (*kuraProvider)(nil)
)

// New returns what the plugin server makes providers with.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &kuraProvider{version: version} }
}

type kuraProvider struct{ version string }

type providerModel struct {
	Endpoint              types.String  `tfsdk:"endpoint"`
	Token                 types.String  `tfsdk:"token"`
	TokenFile             types.String  `tfsdk:"token_file"`
	Environment           types.String  `tfsdk:"environment"`
	CACertificate         types.String  `tfsdk:"ca_certificate"`
	RequestTimeout        durationValue `tfsdk:"request_timeout"`
	MaxConcurrentRequests types.Int64   `tfsdk:"max_concurrent_requests"`
	WaitFor               types.String  `tfsdk:"wait_for"`
}

func (p *kuraProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName, resp.Version = "kura", p.version
}

func (p *kuraProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Declares cache servers, one per account and region, to the daemon `kurad`, which creates them and keeps them running between applies. " +
			"The provider talks to that daemon only: it holds no cluster, container or DNS credentials.",
		Attributes: map[string]schema.Attribute{
			"endpoint": settingText("URL of the daemon, such as `https://kurad.example.dev:7433` or `unix:///run/kurad.sock`. Default: the environment variable `KURA_ENDPOINT`, else `http://127.0.0.1:7433`."),
			"token": schema.StringAttribute{
				Optional: true, Sensitive: true,
				MarkdownDescription: "Bearer token, as `kurad token create` prints it. Default: `token_file`, else the environment variables `KURA_TOKEN` and `KURA_TOKEN_FILE`. A token of scope `read` can plan, one of scope `write` can apply.",
				Validators:          append(filled(), stringvalidator.ConflictsWith(path.MatchRoot("token_file"))),
			},
			"token_file": settingText("File that holds the bearer token and nothing else, such as `/var/lib/kurad/token`. Conflicts with `token`."),
			"environment": settingText("Environment that this configuration is for, such as `production` or `staging`. Nothing is read or written through a daemon of another environment. " +
				"Must be set here or by the environment variable `KURA_ENVIRONMENT`; there is no default."),
			"ca_certificate": settingText("PEM text of the certificate authority that the daemon's certificate must come from, such as `file(\"ca.pem\")`. Default: the authorities that the system trusts."),
			"request_timeout": schema.StringAttribute{
				CustomType: durationType{}, Optional: true,
				MarkdownDescription: "How long one request may take before it is given up, such as `30s` (the default). How long a resource waits for its server is set by its own `timeouts`.",
			},
			"max_concurrent_requests": schema.Int64Attribute{
				Optional:            true,
				MarkdownDescription: "How many requests may be under way at once; default 16. Waiting for servers takes one more per region.",
				Validators:          []validator.Int64{int64validator.Between(1, 256)},
			},
			"wait_for": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "What creating or changing a `kura_server` waits for where the resource does not say: `active` (the default) until it runs the declared version and answers, `accepted` until the daemon has stored the declaration.",
				Validators:          []validator.String{stringvalidator.OneOf(waitActive, waitAccepted)},
			},
		},
	}
}

func settingText(description string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description, Validators: filled()}
}

// Configure resolves the settings and hands one session to every object. It fails on
// what is certainly wrong: a daemon that does not answer yet may be there by the time
// a call is needed, so that is no error here.
func (p *kuraProvider) Configure(ctx context.Context, req provider.ConfigureRequest, resp *provider.ConfigureResponse) {
	var model providerModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &model)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if unknown := model.unknown(); len(unknown) > 0 {
		if req.ClientCapabilities.DeferralAllowed {
			resp.Deferred = &provider.Deferred{Reason: provider.DeferredReasonProviderConfigUnknown}
		}
		share(resp, &session{unknown: unknown})
		return
	}
	s := model.session(p.userAgent(req.TerraformVersion), &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	s.meet(ctx, &resp.Diagnostics)
	share(resp, s)
}

func (p *kuraProvider) userAgent(core string) string {
	return "terraform/" + core + " terraform-provider-kura/" + p.version
}

func share(resp *provider.ConfigureResponse, s *session) {
	resp.ResourceData, resp.DataSourceData = s, s
}

func (p *kuraProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{newAccountResource, newHostTemplateResource, newRegionResource, newServerResource, newCacheEndpointResource}
}

func (p *kuraProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		newAccountDataSource, newAccountsDataSource, newHostTemplateDataSource, newHostTemplatesDataSource, newRegionDataSource, newRegionsDataSource,
		newServerDataSource, newServersDataSource, newCacheEndpointsDataSource, newFleetDataSource, newDNSAuditDataSource, newVersionDataSource,
	}
}

func (p *kuraProvider) Functions(context.Context) []func() function.Function {
	return []func() function.Function{newHostFunction}
}
