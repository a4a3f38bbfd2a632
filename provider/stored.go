package provider

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// stored is the part of a resource whose object the daemon only stores, so that a write
// is done once it is answered: all but kura_server. D is what is declared of it, W what the
// API shows of it, K what names it there.
type stored[K, D, W any] struct {
	configured
	typeName   string // such as kura_account
	schema     schema.Schema
	identity   map[string]string // the attributes that identify it, each with its description
	key        func(D) K
	check      func(D) error // what `tofu validate` says
	get        func(*api.Client, context.Context, K) (W, error)
	put        func(*api.Client, context.Context, D, api.PutOptions) (api.Written[W], error)
	delete     func(*api.Client, context.Context, K) error
	generation func(W) int64
}

func (r *stored[K, D, W]) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = r.typeName
}

func (r *stored[K, D, W]) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema(r.identity)
}

func (r *stored[K, D, W]) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = r.schema
}

func (r *stored[K, D, W]) ValidateConfig(_ context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	checkConfig(req.Config, "Validate "+r.noun(), r.check, &resp.Diagnostics)
}

// noun is such as `host template`.
func (r *stored[K, D, W]) noun() string {
	return strings.ReplaceAll(strings.TrimPrefix(r.typeName, "kura_"), "_", " ")
}

// id imports an object.
func (r *stored[K, D, W]) id(d D) string { return fmt.Sprint(r.key(d)) }

// named is such as `account "acme"`. What is named by several words bears no quotes.
func (r *stored[K, D, W]) named(d D) string {
	if _, word := any(r.key(d)).(string); word {
		return r.noun() + " " + strconv.Quote(r.id(d))
	}
	return r.noun() + " " + r.id(d)
}

func (r *stored[K, D, W]) begin(ctx context.Context, verb string, from tftypes.Value, diags *diag.Diagnostics) (d D, what string, client *api.Client) {
	return begin(ctx, r.session, verb, from, r.named, diags)
}

// begin reads what an attempt is about, and names it; client is nil where it cannot begin.
func begin[D any](ctx context.Context, s *session, verb string, from tftypes.Value, named func(D) string, diags *diag.Diagnostics) (d D, what string, client *api.Client) {
	d, err := decode[D](from)
	what = verb + named(d)
	if err != nil {
		report(diags, nil, what, err)
		return d, what, nil
	}
	return d, what, s.use(ctx, what, diags)
}

func (r *stored[K, D, W]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	plan, what, client := r.begin(ctx, "Create ", req.Plan.Raw, &resp.Diagnostics)
	if client == nil {
		return
	}
	written, err := r.put(client, ctx, plan, api.PutOptions{IfNoneMatch: true})
	if err != nil {
		_, found := r.get(client, ctx, r.key(plan))
		reportCreate(&resp.Diagnostics, req.Plan.Schema.Type(), what, err, found, importBlock(r.typeName, r.id(plan)))
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.Plan.Raw, written.Object)...)
	resp.Diagnostics.Append(identify(ctx, resp.Identity, plan)...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, r.generation(written.Object))...)
}

func (r *stored[K, D, W]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	state, what, client := r.begin(ctx, "Read ", req.State.Raw, &resp.Diagnostics)
	if client == nil {
		return
	}
	resp.Diagnostics.Append(identify(ctx, resp.Identity, state)...)
	found, err := r.get(client, ctx, r.key(state))
	if has(err, fleet.CodeNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		report(&resp.Diagnostics, req.State.Schema.Type(), what, err)
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.State.Raw, found)...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, r.generation(found))...)
}

func (r *stored[K, D, W]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	plan, what, client := r.begin(ctx, "Update ", req.Plan.Raw, &resp.Diagnostics)
	if client == nil {
		return
	}
	written, err := r.put(client, ctx, plan, api.PutOptions{IfMatch: plannedGeneration(ctx, req.Private)})
	if err != nil {
		report(&resp.Diagnostics, req.Plan.Schema.Type(), what, err)
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.Plan.Raw, written.Object)...)
	resp.Diagnostics.Append(identify(ctx, resp.Identity, plan)...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, r.generation(written.Object))...)
}

func (r *stored[K, D, W]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	state, what, client := r.begin(ctx, "Delete ", req.State.Raw, &resp.Diagnostics)
	if client == nil {
		return
	}
	if err := r.delete(client, ctx, r.key(state)); err != nil && !has(err, fleet.CodeNotFound) {
		reportDelete(&resp.Diagnostics, req.State.Schema.Type(), what, err)
	}
}

// ImportState imports by what identifies the object, where that is one attribute.
func (r *stored[K, D, W]) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	for name := range r.identity {
		resource.ImportStatePassthroughWithIdentity(ctx, path.Root(name), path.Root(name), req, resp)
	}
}

// preview asks the daemon what a change of an object that exists would mean, and says
// so in the plan: warnings, and errors where it would refuse it. A daemon that does
// not answer, or a token that may only read, leaves the plan without them.
func (r *stored[K, D, W]) preview(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.State.Raw.IsNull() || len(resp.RequiresReplace) > 0 || resp.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	d, warnings, err := r.dryRun(ctx, req, resp, api.PutOptions{})
	what := "Plan the change of " + r.named(d)
	if err == nil {
		r.session.warn(&resp.Diagnostics, req.Plan.Schema.Type(), what, r.id(d), warnings)
		return
	}
	switch fleet.CodeOf(err) {
	case fleet.CodeInvalid, fleet.CodeConflict, fleet.CodeTooLarge:
		report(&resp.Diagnostics, req.Plan.Schema.Type(), what, err)
	case fleet.CodeNotFound, fleet.CodePrecondition, fleet.CodeUnauthorized, fleet.CodeForbidden, fleet.CodeUnavailable, fleet.CodeInternal:
		tflog.Debug(ctx, "the daemon was asked what the plan means and did not say", map[string]any{"object": r.named(d), "error": err.Error()})
	}
}

// previewNew asks the daemon about an object that is to be created, and reports what it
// says of single attributes, and its warnings. What the object names of others may be created by the same
// apply: a dry run only warns of that, and that the object exists already is said by the
// apply, with the way to import it.
func (r *stored[K, D, W]) previewNew(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if !req.State.Raw.IsNull() && len(resp.RequiresReplace) == 0 {
		return
	}
	d, warnings, err := r.dryRun(ctx, req, resp, api.PutOptions{IfNoneMatch: true})
	what := "Plan " + r.named(d)
	if has(err, fleet.CodeInvalid) && len(fields(err)) > 0 {
		report(&resp.Diagnostics, req.Plan.Schema.Type(), what, err)
	}
	if err == nil {
		r.session.warn(&resp.Diagnostics, req.Plan.Schema.Type(), what, r.id(d), warnings)
	}
}

// dryRun sends what is planned as a dry run, where all of it is known and the daemon has
// answered before.
func (r *stored[K, D, W]) dryRun(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, o api.PutOptions) (d D, warnings []fleet.Warning, err error) {
	client := r.session.answering()
	if client == nil || req.Plan.Raw.IsNull() || resp.Diagnostics.HasError() || !req.Config.Raw.IsFullyKnown() {
		return d, nil, nil
	}
	if d, err = decode[D](resp.Plan.Raw); err != nil {
		return d, nil, err
	}
	o.DryRun = true
	w, err := r.put(client, ctx, d, o)
	return d, w.Warnings, err
}
