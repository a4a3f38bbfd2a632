package provider

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// source is a data source: a question to the daemon, and its answer, whose fields are the
// computed attributes.
type source struct {
	typeName   string
	about      string // the description
	attributes map[string]schema.Attribute
	what       func(question) string // the attempt, such as `Read account "acme"`
	answer     func(context.Context, *api.Client, question, *diag.Diagnostics) (any, error)

	session *session
}

// question is what data sources ask, each some of it: the attributes that are not computed.
type question struct {
	ID, Name, Account, Region string // of one object, or of those in a list
	Technology, Zone, Runtime string
	Verdict                   fleet.Verdict
	Kind                      fleet.FindingKind
	Labels                    map[string]string
	Fresh                     bool
}

func (d *source) Metadata(_ context.Context, _ datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = d.typeName
}

func (d *source) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{MarkdownDescription: d.about, Attributes: d.attributes}
}

func (d *source) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	d.session = sessionOf(req.ProviderData, &resp.Diagnostics)
}

func (d *source) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	q, what, client := begin(ctx, d.session, "", req.Config.Raw, d.what, &resp.Diagnostics)
	if client == nil {
		return
	}
	answer, err := d.answer(ctx, client, q, &resp.Diagnostics)
	if err != nil {
		report(&resp.Diagnostics, req.Config.Schema.Type(), what, err)
		return
	}
	shown, diags := encode(ctx, req.Config.Schema.Type(), answer)
	resp.Diagnostics.Append(diags...)
	config, fields, ok := entries(req.Config.Raw, shown)
	if !ok || diags.HasError() {
		return
	}
	for name, a := range d.attributes {
		if !a.IsComputed() {
			fields[name] = config[name]
		}
	}
	resp.State.Raw, _ = tftypes.Transform(tftypes.NewValue(shown.Type(), fields), neverNull)
}

// neverNull makes an empty list of one that is null, so that a lookup in it is no error.
func neverNull(_ *tftypes.AttributePath, v tftypes.Value) (tftypes.Value, error) {
	if v.IsNull() && v.Type().Is(tftypes.List{}) {
		return tftypes.NewValue(v.Type(), []tftypes.Value{}), nil
	}
	return v, nil
}

// always is the attempt of a data source that has one only.
func always(what string) func(question) string { return func(question) string { return what } }

// one is the data source of a single object, whose id or name is asked for.
func one[W any](s source, noun string, get func(*api.Client, context.Context, string) (W, error), show func(W) any) datasource.DataSource {
	s.what = func(q question) string { return fmt.Sprintf("Read %s %q", noun, cmp.Or(q.ID, q.Name)) }
	s.answer = func(ctx context.Context, c *api.Client, q question, _ *diag.Diagnostics) (any, error) {
		w, err := get(c, ctx, cmp.Or(q.ID, q.Name))
		return show(w), err
	}
	return &s
}

// list is the data source of those objects that are asked for, in an attribute called nouns.
func list[W any](s source, nouns string, all func(*api.Client, context.Context) ([]W, error), choose func(question, W) bool, show func(W) any) datasource.DataSource {
	s.what = always("List " + strings.ReplaceAll(nouns, "_", " "))
	s.answer = func(ctx context.Context, c *api.Client, q question, _ *diag.Diagnostics) (any, error) {
		found, err := all(c, ctx)
		return map[string]any{nouns: rows(found, func(w W) bool { return choose(q, w) }, show)}, err
	}
	return &s
}

// with returns the attributes of a data source: what it shows, and what it asks for.
func with(shown map[string]schema.Attribute, asked map[string]schema.Attribute) map[string]schema.Attribute {
	maps.Copy(shown, asked)
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

func shownObject(description string, attributes map[string]schema.Attribute) schema.SingleNestedAttribute {
	return schema.SingleNestedAttribute{Computed: true, MarkdownDescription: description, Attributes: attributes}
}

func objects(description string, attributes map[string]schema.Attribute) schema.ListNestedAttribute {
	return schema.ListNestedAttribute{Computed: true, MarkdownDescription: description, NestedObject: schema.NestedAttributeObject{Attributes: attributes}}
}

// rows are those of a list that are asked for, as show writes them.
func rows[T any](all []T, choose func(T) bool, show func(T) any) []any {
	var out []any
	for _, v := range all {
		if choose(v) {
			out = append(out, show(v))
		}
	}
	return out
}

// asIs shows an object as the API does.
func asIs[T any](v T) any { return v }

// asked reports whether a value is the one that is asked for, where one is.
func asked(want, value string) bool { return want == "" || want == value }

// bears reports whether an object has all labels that are asked for.
func bears(have, want map[string]string) bool {
	for key, value := range want {
		if v, ok := have[key]; !ok || v != value {
			return false
		}
	}
	return true
}
