package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// stored is the part of a resource whose object the daemon only stores, so that a write
// is done once it is answered: all but kura_server. M is the resource's model.
type stored[M any] struct {
	configured
	typeName string
	noun     func(M) string // such as `account "acme"`
	id       func(M) string // what imports it
	identity func(M) any
	get      func(context.Context, *api.Client, M) (found M, generation int64, err error)
	put      func(context.Context, *api.Client, M, api.PutOptions) (written M, generation int64, warnings []fleet.Warning, err error)
	delete   func(context.Context, *api.Client, M) error
}

func (r *stored[M]) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = r.typeName
}

// begin reads what an attempt is about, and names it; client is nil where it cannot begin.
func (r *stored[M]) begin(ctx context.Context, verb string, from interface {
	Get(ctx context.Context, target any) diag.Diagnostics
}, diags *diag.Diagnostics) (m M, what string, client *api.Client) {
	diags.Append(from.Get(ctx, &m)...)
	what = verb + r.noun(m)
	if client = r.session.use(ctx, what, diags); diags.HasError() {
		return m, what, nil
	}
	return m, what, client
}

func (r *stored[M]) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	plan, what, client := r.begin(ctx, "Create ", req.Plan, &resp.Diagnostics)
	if client == nil {
		return
	}
	written, generation, _, err := r.put(ctx, client, plan, api.PutOptions{IfNoneMatch: true})
	if err != nil {
		_, _, found := r.get(ctx, client, plan)
		reportCreate(&resp.Diagnostics, req.Plan.Schema.Type(), what, err, found, importBlock(r.typeName, r.id(plan)))
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.Plan.Raw, written)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, r.identity(plan))...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, generation)...)
}

func (r *stored[M]) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	state, what, client := r.begin(ctx, "Read ", req.State, &resp.Diagnostics)
	if client == nil {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, r.identity(state))...)
	found, generation, err := r.get(ctx, client, state)
	if has(err, fleet.CodeNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		report(&resp.Diagnostics, req.State.Schema.Type(), what, err)
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.State.Raw, found)...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, generation)...)
}

func (r *stored[M]) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	plan, what, client := r.begin(ctx, "Update ", req.Plan, &resp.Diagnostics)
	if client == nil {
		return
	}
	written, generation, _, err := r.put(ctx, client, plan, api.PutOptions{IfMatch: plannedGeneration(ctx, req.Private)})
	if err != nil {
		report(&resp.Diagnostics, req.Plan.Schema.Type(), what, err)
		return
	}
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.Plan.Raw, written)...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, r.identity(plan))...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, generation)...)
}

func (r *stored[M]) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	state, what, client := r.begin(ctx, "Delete ", req.State, &resp.Diagnostics)
	if client == nil {
		return
	}
	if err := r.delete(ctx, client, state); err != nil && !has(err, fleet.CodeNotFound) {
		reportDelete(&resp.Diagnostics, req.State.Schema.Type(), what, err)
	}
}

// preview asks the daemon what a change of an object that exists would mean, and says
// so in the plan: warnings, and errors where it would refuse it. A daemon that does
// not answer, or a token that may only read, leaves the plan without them.
func (r *stored[M]) preview(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.State.Raw.IsNull() || len(resp.RequiresReplace) > 0 || resp.Plan.Raw.Equal(req.State.Raw) {
		return
	}
	m, warnings, err := r.dryRun(ctx, req, resp, api.PutOptions{})
	what := "Plan the change of " + r.noun(m)
	if err == nil {
		r.session.warn(&resp.Diagnostics, req.Plan.Schema.Type(), what, r.id(m), warnings)
		return
	}
	switch fleet.CodeOf(err) {
	case fleet.CodeInvalid, fleet.CodeConflict, fleet.CodeTooLarge:
		report(&resp.Diagnostics, req.Plan.Schema.Type(), what, err)
	case fleet.CodeNotFound, fleet.CodePrecondition, fleet.CodeUnauthorized, fleet.CodeForbidden, fleet.CodeUnavailable, fleet.CodeInternal:
		tflog.Debug(ctx, "the daemon was asked what the plan means and did not say", map[string]any{"object": r.noun(m), "error": err.Error()})
	}
}

// previewNew asks the daemon about an object that is to be created, and reports what it
// says of single attributes, and its warnings. What the object names of others may be created by the same
// apply: a dry run only warns of that, and that the object exists already is said by the
// apply, with the way to import it.
func (r *stored[M]) previewNew(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if !req.State.Raw.IsNull() && len(resp.RequiresReplace) == 0 {
		return
	}
	m, warnings, err := r.dryRun(ctx, req, resp, api.PutOptions{IfNoneMatch: true})
	what := "Plan " + r.noun(m)
	if has(err, fleet.CodeInvalid) && len(fields(err)) > 0 {
		report(&resp.Diagnostics, req.Plan.Schema.Type(), what, err)
	}
	if err == nil {
		r.session.warn(&resp.Diagnostics, req.Plan.Schema.Type(), what, r.id(m), warnings)
	}
}

// dryRun sends what is planned as a dry run, where all of it is known and the daemon has
// answered before.
func (r *stored[M]) dryRun(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, o api.PutOptions) (m M, warnings []fleet.Warning, err error) {
	if req.Plan.Raw.IsNull() || resp.Diagnostics.HasError() || !req.Config.Raw.IsFullyKnown() {
		return m, nil, nil
	}
	client := r.session.answering()
	if client == nil {
		return m, nil, nil
	}
	resp.Diagnostics.Append(resp.Plan.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return m, nil, nil
	}
	o.DryRun = true
	_, _, warnings, err = r.put(ctx, client, m, o)
	return m, warnings, err
}
