package provider

import (
	"cmp"
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

var _ ourResource = (*serverResource)(nil)

// How long an apply waits where the resource does not say.
const (
	defaultSettle  = 20 * time.Minute
	defaultDestroy = 10 * time.Minute
)

func newServerResource() resource.Resource { return &serverResource{} }

type serverResource struct{ configured }

func (r *serverResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = "kura_server"
}

func (r *serverResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identitySchema(map[string]string{"account": "Id of the account.", "region": "Name of the region."})
}

func (r *serverResource) Schema(ctx context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = serverSchema(ctx)
}

func (r *serverResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	if !req.Config.Raw.IsFullyKnown() {
		// Account and region are mostly taken from other resources; the version is not.
		checkImageTag(ctx, req, resp)
		return
	}
	checkConfig(req.Config, "Validate server", fleet.Server.Validate, &resp.Diagnostics)
}

func (r *serverResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	protectServer(ctx, r.session, req, resp)
	previewServer(ctx, r.session, req, resp)
}

// begin reads which server an attempt is about; client is nil where it cannot begin.
func (r *serverResource) begin(ctx context.Context, verb string, from tftypes.Value, diags *diag.Diagnostics) (s fleet.Server, what string, client *api.Client) {
	return begin(ctx, r.session, verb, from, func(s fleet.Server) string { return "server " + s.Key().String() }, diags)
}

func (r *serverResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	plan, what, client := r.begin(ctx, "Create ", req.Plan.Raw, &resp.Diagnostics)
	timeout := timeoutOf(ctx, req.Plan, timeouts.Value.Create, defaultSettle, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	written, err := client.PutServer(ctx, plan, api.PutOptions{IfNoneMatch: true})
	if err != nil {
		_, found := client.GetServer(ctx, plan.Key(), api.GetOptions{})
		reportCreate(&resp.Diagnostics, req.Plan.Schema.Type(), what, err, found, importBlock("kura_server", plan.Key().String()))
		return
	}
	switch end, seen, err := r.settle(ctx, write{req.Plan, plan, timeout, &resp.State, resp.Identity, resp.Private}, written.Object, &resp.Diagnostics); end {
	case endSettled:
	case endRefused:
		resp.Diagnostics.AddAttributeError(path.Root("image_tag"), what+": "+fate(seen),
			why(seen)+lastEvents(ctx, client, plan.Key())+
				"\n\nThe server exists and kurad goes on trying: when the cause is gone it becomes active by itself. The next apply would replace it, for it is marked as tainted; `untaint` keeps it.")
	case endLeaving, endGone:
		resp.Diagnostics.AddError(what+": somebody else destroyed it meanwhile", "It was created and then destroyed by somebody else. Find out who, then apply again.")
	case endStalled, endSuperseded, endPaused, endDeadline, endStopped, endError, endWaiting:
		// A warning, for an error taints what the daemon is still bringing up.
		r.session.unsettled(&resp.Diagnostics, what, end, seen, err)
	}
}

// write is a Create or an Update: what is planned, and where what came of it is written.
type write struct {
	plan     tfsdk.Plan
	declared fleet.Server
	timeout  time.Duration
	state    *tfsdk.State
	identity *tfsdk.ResourceIdentity
	private  privateWriter
}

// settle stores what the daemon answered to a write, and waits for the server where an apply
// is to. From here on the server exists: it is in state whatever becomes of the wait.
func (r *serverResource) settle(ctx context.Context, w write, view fleet.ServerView, diags *diag.Diagnostics) (ending, fleet.ServerView, error) {
	diags.Append(setState(ctx, w.state, w.plan.Raw, serverState(view), promised()...)...)
	diags.Append(identify(ctx, w.identity, w.declared)...)
	diags.Append(keepGeneration(ctx, w.private, view.Generation)...)
	diags.Append(keepDeclared(ctx, w.private, w.declared.ImageTag)...)
	if diags.HasError() || r.accepted(ctx, w.plan) {
		return endSettled, view, nil
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	return r.session.await(ctx, targetOf(view), view)
}

func (r *serverResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	state, what, client := r.begin(ctx, "Read ", req.State.Raw, &resp.Diagnostics)
	if client == nil {
		return
	}
	resp.Diagnostics.Append(identify(ctx, resp.Identity, state)...)
	view, err := client.GetServer(ctx, state.Key(), api.GetOptions{})
	if has(err, fleet.CodeNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		report(&resp.Diagnostics, req.State.Schema.Type(), what, err)
		return
	}
	was := before{imageTag: text(state.ImageTag), declared: declared(ctx, req.Private)}
	is := project(view, was, time.Now())
	for _, w := range append(notices(view), is.warnings()...) {
		r.session.once(w.key, &resp.Diagnostics, w.summary, w.detail)
	}
	next := serverState(view)
	next.fields["image_tag"], next.fields["pending_image_tag"] = is.imageTag.ValueString(), is.pending.ValueString()
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.State.Raw, next, providers()...)...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, view.Generation)...)
	if was.declared == "" {
		resp.Diagnostics.Append(keepDeclared(ctx, resp.Private, view.Intent.ImageTag)...)
	}
}

func (r *serverResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	plan, what, client := r.begin(ctx, "Update ", req.Plan.Raw, &resp.Diagnostics)
	timeout := timeoutOf(ctx, req.Plan, timeouts.Value.Update, defaultSettle, &resp.Diagnostics)
	var was types.String
	resp.Diagnostics.Append(req.State.GetAttribute(ctx, path.Root("image_tag"), &was)...)
	if resp.Diagnostics.HasError() {
		return
	}
	written, err := client.PutServer(ctx, plan, api.PutOptions{
		IfMatch: plannedGeneration(ctx, req.Private),
		// Where the daemon has this version as declared already, the plan shows that it came to nothing.
		Again: was.ValueString() != plan.ImageTag,
	})
	if err != nil {
		report(&resp.Diagnostics, req.Plan.Schema.Type(), what, err)
		return
	}
	switch end, seen, err := r.settle(ctx, write{req.Plan, plan, timeout, &resp.State, resp.Identity, resp.Private}, written.Object, &resp.Diagnostics); end {
	case endSettled:
	case endRefused, endStalled:
		if illegible(seen) {
			w := unreadVersion(seen)
			resp.Diagnostics.AddWarning(w.summary, w.detail)
			break
		}
		resp.Diagnostics.Append(setState(ctx, &resp.State, req.Plan.Raw, servingState(seen), promised()...)...)
		resp.Diagnostics.AddAttributeError(path.Root("image_tag"), what+": "+fate(seen),
			why(seen)+" "+stillServes(seen)+lastEvents(ctx, client, plan.Key())+
				"\n\nkurad goes on trying, until another version is declared. Apply again to try at once"+goBack(seen)+"; nothing has to be destroyed.")
	case endLeaving, endGone:
		resp.Diagnostics.AddError(what+": somebody else destroys it", "It was changed, and somebody else asked for its destruction meanwhile. The next plan shows whether it is gone.")
	case endError:
		report(&resp.Diagnostics, req.Plan.Schema.Type(), what+", wait for it", err)
	case endSuperseded, endPaused, endDeadline, endStopped, endWaiting:
		r.session.unsettled(&resp.Diagnostics, what, end, seen, nil)
	}
}

func (r *serverResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	state, what, client := r.begin(ctx, "Destroy ", req.State.Raw, &resp.Diagnostics)
	timeout := timeoutOf(ctx, req.State, timeouts.Value.Delete, defaultDestroy, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	seen, err := client.DeleteServer(ctx, state.Key())
	if has(err, fleet.CodeNotFound) {
		return
	}
	if err != nil {
		report(&resp.Diagnostics, req.State.Schema.Type(), what, err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = r.session.watches.follow(ctx, state.Key(), func(v *fleet.ServerView) bool {
		if v == nil || v.Intent.Deleting == nil {
			return true // gone, and perhaps another one of its name is there by now
		}
		seen = *v
		return false
	})
	if err != nil {
		resp.Diagnostics.AddError(what+": it is not gone yet", undestroyed(ctx, seen, err))
	}
}

func (r *serverResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	importServer(ctx, r.session, req, resp)
}

// attributeReader is a plan or a state.
type attributeReader interface {
	GetAttribute(ctx context.Context, at path.Path, target any) diag.Diagnostics
}

// accepted reports whether an apply is done once the daemon has stored the declaration.
func (r *serverResource) accepted(ctx context.Context, plan attributeReader) bool {
	var waitFor types.String
	_ = plan.GetAttribute(ctx, path.Root("wait_for"), &waitFor)
	return cmp.Or(waitFor.ValueString(), r.session.waitFor) == waitAccepted
}

// timeoutOf is how long an attempt waits for the server.
func timeoutOf(ctx context.Context, from attributeReader, of func(timeouts.Value, context.Context, time.Duration) (time.Duration, diag.Diagnostics), otherwise time.Duration, diags *diag.Diagnostics) time.Duration {
	var t timeouts.Value
	diags.Append(from.GetAttribute(ctx, path.Root("timeouts"), &t)...)
	d, problems := of(t, ctx, otherwise)
	diags.Append(problems...)
	return d
}
