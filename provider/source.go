package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

// source is a data source: a question to the daemon. M is its model, which holds what is
// asked and then the answer as well.
type source[M any] struct {
	typeName   string
	about      string // the description
	attributes map[string]schema.Attribute
	what       func(M) string // the attempt, such as `Read account "acme"`
	fill       func(context.Context, *api.Client, *M, *diag.Diagnostics) error

	session *session
}

func (d *source[M]) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = d.typeName
}

func (d *source[M]) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{MarkdownDescription: d.about, Attributes: d.attributes}
}

func (d *source[M]) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

func (d *source[M]) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m M
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	what := d.what(m)
	client := d.session.use(ctx, what, &resp.Diagnostics)
	if client == nil {
		return
	}
	if err := d.fill(ctx, client, &m, &resp.Diagnostics); err != nil {
		report(&resp.Diagnostics, req.Config.Schema.Type(), what, err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// always is the attempt of a data source that has one only.
func always[M any](what string) func(M) string { return func(M) string { return what } }

// with returns the attributes of a data source: what it shows, and what it asks for.
func with(shown map[string]schema.Attribute, asked map[string]schema.Attribute) map[string]schema.Attribute {
	for name, a := range asked {
		shown[name] = a
	}
	return shown
}

// Shapes of attributes.

func askedText(description string) schema.StringAttribute {
	return schema.StringAttribute{Required: true, MarkdownDescription: description, Validators: filled()}
}

// filterText chooses among what is listed.
func filterText(description string) schema.StringAttribute {
	return schema.StringAttribute{Optional: true, MarkdownDescription: description + " Default: all.", Validators: filled()}
}

func filterLabels(of string) schema.MapAttribute {
	return schema.MapAttribute{ElementType: types.StringType, Optional: true, MarkdownDescription: "Only " + of + " that bear all of these labels, such as `{ team = \"build\" }`. Default: all."}
}

func shownText(description string) schema.StringAttribute {
	return schema.StringAttribute{Computed: true, MarkdownDescription: description}
}

func shownNumber(description string) schema.Int64Attribute {
	return schema.Int64Attribute{Computed: true, MarkdownDescription: description}
}

func shownBool(description string) schema.BoolAttribute {
	return schema.BoolAttribute{Computed: true, MarkdownDescription: description}
}

func shownTexts(description string) schema.ListAttribute {
	return schema.ListAttribute{ElementType: types.StringType, Computed: true, MarkdownDescription: description}
}

func shownTextMap(description string) schema.MapAttribute {
	return schema.MapAttribute{ElementType: types.StringType, Computed: true, MarkdownDescription: description}
}

func shownNumbers(description string) schema.MapAttribute {
	return schema.MapAttribute{ElementType: types.Int64Type, Computed: true, MarkdownDescription: description}
}

func objects(description string, attributes map[string]schema.Attribute) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{Computed: true, MarkdownDescription: description, NestedObject: schema.NestedAttributeObject{Attributes: attributes}}
}

// rows are those of a list that are asked for; never null.
func rows[T, R any](all []T, choose func(T) bool, flatten func(T) R) []R {
	out := []R{}
	for _, v := range all {
		if choose(v) {
			out = append(out, flatten(v))
		}
	}
	return out
}

// asked reports whether a value is the one that is asked for, where one is.
func asked(want types.String, value string) bool {
	return want.IsNull() || want.ValueString() == value
}

// bears reports whether an object has all labels that are asked for.
func bears(have, want map[string]string) bool {
	for key, value := range want {
		if v, ok := have[key]; !ok || v != value {
			return false
		}
	}
	return true
}
