package provider

import (
	"cmp"
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func newServerDataSource() datasource.DataSource {
	return &source{
		typeName: "kura_server",
		about:    "A server as it is now: what is declared, what runs and answers, and what the daemon does about the difference. Made for outputs and `check` blocks. A server that does not exist is an error.",
		attributes: with(serverShown(), map[string]schema.Attribute{
			"account": askedText("Id of the account, such as `acme`."),
			"region":  askedText("Name of the region, such as `eu-central`."),
			"fresh": schema.BoolAttribute{
				Optional:            true,
				MarkdownDescription: "Whether the daemon looks at the server and probes it before it answers, 10 s at most, instead of telling what it saw last. Default `false`.",
			},
		}),
		what:   func(q question) string { return "Read server " + q.server().String() },
		answer: readServer,
	}
}

func (q question) server() fleet.ServerKey {
	return fleet.ServerKey{Account: q.Account, Region: q.Region}
}

func readServer(ctx context.Context, c *api.Client, q question, diags *diag.Diagnostics) (any, error) {
	view, err := c.GetServer(ctx, q.server(), api.GetOptions{ObserveNow: q.Fresh})
	if err != nil {
		return nil, err
	}
	if view.Stale {
		diags.AddWarning("Read server "+q.server().String()+": the fresh look did not end in time", "What is shown was seen before it.")
	}
	deployments, err := c.Deployments(ctx, q.server())
	return serverFields(view, deployments), err
}

// serverFields are the computed attributes: the view's fields, and those that bear another
// name, or another value, than there.
func serverFields(v fleet.ServerView, deployments []fleet.Deployment) any {
	fields := map[string]any{
		"image_tag": v.Intent.ImageTag, "labels": v.Intent.Labels, "active": v.Status == fleet.StatusActive,
		"host": v.Hosts.Public, "grpc_host": v.Hosts.GRPC, "global_host": v.Hosts.Global, "url": v.DeclaredURL,
		"aliases": each(v.Aliases, func(a fleet.Alias) any { return a.Host }), "ports": orEmpty(v.Ports),
		"containers": each(v.Containers, func(c fleet.Container) any {
			return amended{c, map[string]any{"ports": orEmpty(c.Ports)}}
		}),
		"conditions": each(v.Conditions, func(c fleet.Condition) any {
			return amended{c, map[string]any{"since": moment(&c.LastTransitionTime)}}
		}),
		"deployments": each(deployments, func(d fleet.Deployment) any {
			return amended{d, map[string]any{"number": d.Seq, "created_at": moment(&d.CreatedAt), "finished_at": moment(d.FinishedAt)}}
		}),
		"holds": each(v.Holds, func(h fleet.Hold) any { return amended{shown: h} }),
		"plan":  planFields(v.Plan), "intended_plan": planFields(v.IntendedPlan), "last_observed_at": moment(v.LastObservedAt),
	}
	if r := v.Resource; r != nil {
		fields["resource"] = amended{r, map[string]any{"image": r.SpecImage, "ready_replicas": r.ReadyReplicas}}
	}
	return amended{v, fields}
}

func planFields(p *fleet.Plan) any {
	if p == nil {
		return nil
	}
	return amended{p, map[string]any{"tasks": each(p.Tasks, func(t fleet.Task) any {
		return amended{t, map[string]any{"description": t.Describe(), "state": cmp.Or(t.State, fleet.TaskPending)}}
	})}}
}

func each[T any](all []T, show func(T) any) []any {
	return rows(all, func(T) bool { return true }, show)
}

// moment is "" for a time that has not come.
func moment(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// serverShown are the computed attributes of a server's data source.
func serverShown() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"image_tag":          shownText("Declared version."),
		"status":             shownText("`provisioning`, `active`, `failed` or `destroying`."),
		"verdict":            shownText("One word on where it stands: `converged`, `progressing`, `held`, `stalled`, `failed`, `unobserved`, `destroying`; where the region only observes, also `drifted` or `absent`."),
		"reason":             shownText("Why the verdict is what it is, one word such as `RollingOut` or `ImagePullFailed`."),
		"message":            shownText("The same in a sentence; null where there is nothing to add."),
		"serving_image_tag":  shownText("Version that answered last; null before the first one did."),
		"observed_image_tag": shownText("Version that was seen running; null where none was."),
		"instance":           shownText("Name of what the runtime holds."),
		"host":               shownText("Declared public host."),
		"grpc_host":          shownText("Declared gRPC host; null where the region has none."),
		"global_host":        shownText("Declared global host; null where the region has none."),
		"url":                shownText("Declared public url."),
		"published_url":      shownText("Url that clients are given right now; null while there is none."),
		"last_observed_at":   shownText("When the runtime last told about it, in RFC 3339; null before it did."),
		"generation":         shownNumber("How many times its declaration was written."),
		"active":             shownBool("Whether its status is `active`: a declared version has answered, and is published."),
		"labels":             shownTextMap("Declared labels."),
		"aliases":            shownTexts("Old hosts that still lead to it after a move."),
		"ports":              shownNumbers("Assigned host ports by `<service>/<port name>`; they stay until it is destroyed."),
		"containers": objects("What runs, or ran: its containers, and others that bear its names.", map[string]schema.Attribute{
			"service": shownText("Service; null where the container is not ours."),
			"name":    shownText("Name of the container."),
			"id":      shownText("Id that the engine gave it."),
			"image":   shownText("Image that it runs."),
			"state":   shownText("`created`, `running`, `paused` or `exited`."),
			"foreign": shownText("Whose it is, where it is not ours; else null."),
			"ports":   shownNumbers("Published host ports by `<port>/<protocol>`."),
		}),
		"resource": shownObject("The `KuraInstance` of its name, as last seen; null in a container region and where there is none.", map[string]schema.Attribute{
			"namespace":      shownText("Namespace of the instance."),
			"name":           shownText("Name of the instance, such as `kura-acme-eu-central`."),
			"uid":            shownText("Id that the cluster gave it."),
			"foreign":        shownText("Whose it is, where it is not ours; else null."),
			"adopted":        shownBool("Whether it was taken over and does not bear our labels yet."),
			"deleting":       shownBool("Whether somebody deletes it, and it is still there."),
			"image":          shownText("Image that it is to run."),
			"observed_image": shownText("Image of its last complete roll-out; null before the first one."),
			"phase":          shownText("What its controller says of it: `Pending` or `Ready`. It says nothing of whether the server can be reached."),
			"public_url":     shownText("Url that its controller names."),
			"ready_replicas": shownNumber("Replicas that are ready."),
			"message":        shownText("What its controller says besides; null where it says nothing."),
			"revision":       shownText("Revision of the manifest that was applied last; null where none was."),
			"differs":        differences("Fields that differ from what is declared, and that the daemon corrects."),
			"held":           differences("Fields that differ from what is declared because another manager applied them."),
			"dropped":        shownTexts("Declared fields that the cluster's custom resource definition does not have."),
		}),
		"conditions": objects("Observed aspects, each with its reason.", map[string]schema.Attribute{
			"type":    shownText("Aspect, such as `EndpointReady`."),
			"status":  shownText("`True`, `False` or `Unknown`."),
			"reason":  shownText("One word why."),
			"message": shownText("The same in a sentence; null where there is nothing to add."),
			"since":   shownText("When the status last changed, in RFC 3339."),
		}),
		"deployments": objects("Attempts to bring it to a version, the newest first: the audit trail.", map[string]schema.Attribute{
			"number":      shownNumber("Counts from 1."),
			"cause":       shownText("`create`, `image` or `redeploy`."),
			"image_tag":   shownText("Version that it was to bring."),
			"status":      shownText("`pending`, `running`, `succeeded`, `failed`, `cancelled` or `superseded`."),
			"reason":      shownText("One word why; null where there is none."),
			"message":     shownText("The same in a sentence; null where there is nothing to add."),
			"created_at":  shownText("When it was declared, in RFC 3339."),
			"finished_at": shownText("When it ended, in RFC 3339; null while it is open."),
		}),
		"plan":          shownPlan("Steps that the daemon is taking; null while there are none."),
		"intended_plan": shownPlan("Steps that it would take if nothing held it; null where there are none."),
		"holds": objects("Why nothing may be changed now; empty where nothing holds.", map[string]schema.Attribute{
			"kind":    shownText("`paused`, `observe`, `admission`, `ownership` or `adoption`."),
			"message": shownText("What holds it, in a sentence."),
		}),
	}
}

func differences(description string) schema.Attribute {
	return objects(description, map[string]schema.Attribute{
		"path":    shownText("The field, such as `spec.storageSize`."),
		"have":    shownText("What is there, in JSON; null for nothing."),
		"want":    shownText("What is declared, in JSON; null for nothing."),
		"manager": shownText("Who set what is there, where it was not us; else null."),
	})
}

func shownPlan(description string) schema.Attribute {
	return shownObject(description, map[string]schema.Attribute{
		"kind":  shownText("`apply`, `replace` or `destroy`."),
		"cause": shownText("Why, such as `roll-out` or `recreation`."),
		"tasks": objects("The steps, in order.", map[string]schema.Attribute{
			"description": shownText("What the step does."),
			"state":       shownText("`pending`, `running` or `done`."),
		}),
	})
}
