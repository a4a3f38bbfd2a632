package provider

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"

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
	resp.IdentitySchema = identityschema.Schema{Attributes: map[string]identityschema.Attribute{
		"account": identityschema.StringAttribute{RequiredForImport: true, Description: "Id of the account."},
		"region":  identityschema.StringAttribute{RequiredForImport: true, Description: "Name of the region."},
	}}
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
	checkConfig(ctx, req.Config, "Validate server", func(m serverModel) error { return m.expand().Validate() }, &resp.Diagnostics)
}

func (r *serverResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	protectServer(ctx, r.session, req, resp)
	previewServer(ctx, r.session, req, resp)
}

func (r *serverResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan serverModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	what := "Create server " + plan.key().String()
	client := r.session.use(ctx, what, &resp.Diagnostics)
	timeout, diags := plan.Timeouts.Create(ctx, defaultSettle)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	written, err := client.PutServer(ctx, plan.expand(), api.PutOptions{IfNoneMatch: true})
	if err != nil {
		_, found := client.GetServer(ctx, plan.key(), api.GetOptions{})
		reportCreate(&resp.Diagnostics, req.Plan.Schema.Type(), what, err, found, importBlock("kura_server", plan.key().String()))
		return
	}
	// From here on the server exists: it is in state whatever becomes of the wait.
	view := written.Object
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.Plan.Raw, flattenServer(view, plan))...)
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, view.Generation)...)
	resp.Diagnostics.Append(keepDeclared(ctx, resp.Private, plan.ImageTag.ValueString())...)
	if resp.Diagnostics.HasError() || r.accepted(plan) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch end, seen, err := r.session.await(ctx, targetOf(view), view); end {
	case endSettled:
	case endRefused:
		resp.Diagnostics.AddAttributeError(path.Root("image_tag"), what+": "+fate(seen),
			why(seen)+lastEvents(ctx, client, plan.key())+
				"\n\nThe server exists and kurad goes on trying: when the cause is gone it becomes active by itself. The next apply would replace it, for it is marked as tainted; `untaint` keeps it.")
	case endLeaving, endGone:
		resp.Diagnostics.AddError(what+": somebody else destroyed it meanwhile", "It was created and then destroyed by somebody else. Find out who, then apply again.")
	case endStalled, endSuperseded, endPaused, endDeadline, endStopped, endError, endWaiting:
		// A warning, for an error taints what the daemon is still bringing up.
		r.session.unsettled(&resp.Diagnostics, what, end, seen, err)
	}
}

func (r *serverResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state serverModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	what := "Read server " + state.key().String()
	client := r.session.use(ctx, what, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Identity.Set(ctx, state.identity())...)
	view, err := client.GetServer(ctx, state.key(), api.GetOptions{})
	if has(err, fleet.CodeNotFound) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		report(&resp.Diagnostics, req.State.Schema.Type(), what, err)
		return
	}
	was := before{imageTag: state.ImageTag, declared: declared(ctx, req.Private)}
	is := project(view, was, time.Now())
	for _, w := range append(notices(view), is.warnings()...) {
		r.session.once(w.key, &resp.Diagnostics, w.summary, w.detail)
	}
	next := flattenServer(view, state)
	next.ImageTag, next.PendingImageTag = is.imageTag, is.pending
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.State.Raw, next)...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, view.Generation)...)
	if was.declared == "" {
		resp.Diagnostics.Append(keepDeclared(ctx, resp.Private, view.Intent.ImageTag)...)
	}
}

func (r *serverResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state serverModel
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	what := "Update server " + plan.key().String()
	client := r.session.use(ctx, what, &resp.Diagnostics)
	timeout, diags := plan.Timeouts.Update(ctx, defaultSettle)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	written, err := client.PutServer(ctx, plan.expand(), api.PutOptions{
		IfMatch: plannedGeneration(ctx, req.Private),
		// Where the daemon has this version as declared already, the plan shows that it came to nothing.
		Again: !state.ImageTag.Equal(plan.ImageTag),
	})
	if err != nil {
		report(&resp.Diagnostics, req.Plan.Schema.Type(), what, err)
		return
	}
	view := written.Object
	resp.Diagnostics.Append(resp.Identity.Set(ctx, plan.identity())...)
	resp.Diagnostics.Append(keepGeneration(ctx, resp.Private, view.Generation)...)
	resp.Diagnostics.Append(keepDeclared(ctx, resp.Private, plan.ImageTag.ValueString())...)
	resp.Diagnostics.Append(setState(ctx, &resp.State, req.Plan.Raw, flattenServer(view, plan).asPlanned(plan))...)
	if resp.Diagnostics.HasError() || r.accepted(plan) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	switch end, seen, err := r.session.await(ctx, targetOf(view), view); end {
	case endSettled:
	case endRefused, endStalled:
		if illegible(seen) {
			w := unreadVersion(seen)
			resp.Diagnostics.AddWarning(w.summary, w.detail)
			break
		}
		resp.Diagnostics.Append(r.setServing(ctx, req, resp, seen, plan)...)
		resp.Diagnostics.AddAttributeError(path.Root("image_tag"), what+": "+fate(seen),
			why(seen)+" "+stillServes(seen)+lastEvents(ctx, client, plan.key())+
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
	var state serverModel
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	what := "Destroy server " + state.key().String()
	client := r.session.use(ctx, what, &resp.Diagnostics)
	timeout, diags := state.Timeouts.Delete(ctx, defaultDestroy)
	resp.Diagnostics.Append(diags...)
	if resp.Diagnostics.HasError() {
		return
	}
	seen, err := client.DeleteServer(ctx, state.key())
	if has(err, fleet.CodeNotFound) {
		return
	}
	if err != nil {
		report(&resp.Diagnostics, req.State.Schema.Type(), what, err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err = r.session.watches.follow(ctx, state.key(), func(v *fleet.ServerView) bool {
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

// accepted reports whether an apply is done once the daemon has stored the declaration.
func (r *serverResource) accepted(plan serverModel) bool {
	if w := plan.WaitFor.ValueString(); w != "" {
		return w == waitAccepted
	}
	return r.session.waitFor == waitAccepted
}
