package provider

import (
	"cmp"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// serverDataModel is a server as it is now: what is declared, what was seen, and what
// the daemon does about it.
type serverDataModel struct {
	Account          types.String      `tfsdk:"account"`
	Region           types.String      `tfsdk:"region"`
	Fresh            types.Bool        `tfsdk:"fresh"`
	Generation       types.Int64       `tfsdk:"generation"`
	ImageTag         types.String      `tfsdk:"image_tag"`
	Labels           map[string]string `tfsdk:"labels"`
	Status           types.String      `tfsdk:"status"`
	Verdict          types.String      `tfsdk:"verdict"`
	Reason           types.String      `tfsdk:"reason"`
	Message          types.String      `tfsdk:"message"`
	Active           types.Bool        `tfsdk:"active"`
	ServingImageTag  types.String      `tfsdk:"serving_image_tag"`
	ObservedImageTag types.String      `tfsdk:"observed_image_tag"`
	Instance         types.String      `tfsdk:"instance"`
	Host             types.String      `tfsdk:"host"`
	GRPCHost         types.String      `tfsdk:"grpc_host"`
	GlobalHost       types.String      `tfsdk:"global_host"`
	URL              types.String      `tfsdk:"url"`
	PublishedURL     types.String      `tfsdk:"published_url"`
	Aliases          []string          `tfsdk:"aliases"`
	Ports            map[string]int64  `tfsdk:"ports"`
	Containers       []containerModel  `tfsdk:"containers"`
	Resource         *instanceModel    `tfsdk:"resource"`
	Conditions       []conditionModel  `tfsdk:"conditions"`
	Deployments      []deploymentModel `tfsdk:"deployments"`
	Plan             *planModel        `tfsdk:"plan"`
	IntendedPlan     *planModel        `tfsdk:"intended_plan"`
	Holds            []holdModel       `tfsdk:"holds"`
	LastObservedAt   types.String      `tfsdk:"last_observed_at"`
}

type containerModel struct {
	Service types.String     `tfsdk:"service"`
	Name    types.String     `tfsdk:"name"`
	ID      types.String     `tfsdk:"id"`
	Image   types.String     `tfsdk:"image"`
	State   types.String     `tfsdk:"state"`
	Foreign types.String     `tfsdk:"foreign"`
	Ports   map[string]int64 `tfsdk:"ports"`
}

// instanceModel is a KuraInstance.
type instanceModel struct {
	Namespace     types.String      `tfsdk:"namespace"`
	Name          types.String      `tfsdk:"name"`
	UID           types.String      `tfsdk:"uid"`
	Foreign       types.String      `tfsdk:"foreign"`
	Adopted       types.Bool        `tfsdk:"adopted"`
	Deleting      types.Bool        `tfsdk:"deleting"`
	Image         types.String      `tfsdk:"image"`
	ObservedImage types.String      `tfsdk:"observed_image"`
	Phase         types.String      `tfsdk:"phase"`
	PublicURL     types.String      `tfsdk:"public_url"`
	ReadyReplicas types.Int64       `tfsdk:"ready_replicas"`
	Message       types.String      `tfsdk:"message"`
	Revision      types.String      `tfsdk:"revision"`
	Differs       []differenceModel `tfsdk:"differs"`
	Held          []differenceModel `tfsdk:"held"`
	Dropped       []string          `tfsdk:"dropped"`
}

type differenceModel struct {
	Path    types.String `tfsdk:"path"`
	Have    types.String `tfsdk:"have"`
	Want    types.String `tfsdk:"want"`
	Manager types.String `tfsdk:"manager"`
}

type conditionModel struct {
	Type    types.String `tfsdk:"type"`
	Status  types.String `tfsdk:"status"`
	Reason  types.String `tfsdk:"reason"`
	Message types.String `tfsdk:"message"`
	Since   types.String `tfsdk:"since"`
}

type deploymentModel struct {
	Number     types.Int64  `tfsdk:"number"`
	Cause      types.String `tfsdk:"cause"`
	ImageTag   types.String `tfsdk:"image_tag"`
	Status     types.String `tfsdk:"status"`
	Reason     types.String `tfsdk:"reason"`
	Message    types.String `tfsdk:"message"`
	CreatedAt  types.String `tfsdk:"created_at"`
	FinishedAt types.String `tfsdk:"finished_at"`
}

type planModel struct {
	Kind  types.String `tfsdk:"kind"`
	Cause types.String `tfsdk:"cause"`
	Tasks []taskModel  `tfsdk:"tasks"`
}

type taskModel struct {
	Description types.String `tfsdk:"description"`
	State       types.String `tfsdk:"state"`
}

type holdModel struct {
	Kind    types.String `tfsdk:"kind"`
	Message types.String `tfsdk:"message"`
}

func (m serverDataModel) key() fleet.ServerKey {
	return fleet.ServerKey{Account: m.Account.ValueString(), Region: m.Region.ValueString()}
}

func flattenServerData(v fleet.ServerView, deployments []fleet.Deployment, fresh types.Bool) serverDataModel {
	m := serverDataModel{
		Account: types.StringValue(v.Account), Region: types.StringValue(v.Region), Fresh: fresh, Generation: types.Int64Value(v.Generation),
		ImageTag: text(v.Intent.ImageTag), Labels: v.Intent.Labels, Status: text(v.Status), Verdict: text(v.Verdict), Reason: text(v.Reason), Message: text(v.Message),
		Active: types.BoolValue(v.Status == fleet.StatusActive), ServingImageTag: text(v.ServingImageTag), ObservedImageTag: text(v.ObservedImageTag),
		Instance: text(v.Instance), Host: text(v.Hosts.Public), GRPCHost: text(v.Hosts.GRPC), GlobalHost: text(v.Hosts.Global),
		URL: text(v.DeclaredURL), PublishedURL: text(v.PublishedURL), Aliases: []string{}, Ports: numbers(v.Ports),
		Containers: []containerModel{}, Conditions: []conditionModel{}, Deployments: []deploymentModel{}, Holds: []holdModel{},
		Resource: flattenInstance(v.Resource), Plan: flattenPlan(v.Plan), IntendedPlan: flattenPlan(v.IntendedPlan), LastObservedAt: moment(v.LastObservedAt),
	}
	for _, a := range v.Aliases {
		m.Aliases = append(m.Aliases, a.Host)
	}
	for _, c := range v.Containers {
		m.Containers = append(m.Containers, containerModel{
			Service: text(c.Service), Name: text(c.Name), ID: text(c.ID), Image: text(c.Image), State: text(c.State), Foreign: text(c.Foreign), Ports: numbers(c.Ports),
		})
	}
	for _, c := range v.Conditions {
		m.Conditions = append(m.Conditions, conditionModel{
			Type: text(c.Type), Status: text(c.Status), Reason: text(c.Reason), Message: text(c.Message), Since: moment(&c.LastTransitionTime),
		})
	}
	for _, d := range deployments {
		m.Deployments = append(m.Deployments, deploymentModel{
			Number: types.Int64Value(d.Seq), Cause: text(d.Cause), ImageTag: text(d.ImageTag), Status: text(d.Status), Reason: text(d.Reason),
			Message: text(d.Message), CreatedAt: moment(&d.CreatedAt), FinishedAt: moment(d.FinishedAt),
		})
	}
	for _, h := range v.Holds {
		m.Holds = append(m.Holds, holdModel{Kind: text(h.Kind), Message: text(h.Message)})
	}
	return m
}

func flattenInstance(r *fleet.KubeInstance) *instanceModel {
	if r == nil {
		return nil
	}
	return &instanceModel{
		Namespace: text(r.Namespace), Name: text(r.Name), UID: text(r.UID), Foreign: text(r.Foreign), Adopted: types.BoolValue(r.Adopted), Deleting: types.BoolValue(r.Deleting),
		Image: text(r.SpecImage), ObservedImage: text(r.ObservedImage), Phase: text(r.Phase), PublicURL: text(r.PublicURL), ReadyReplicas: types.Int64Value(int64(r.ReadyReplicas)),
		Message: text(r.Message), Revision: text(r.Revision), Differs: flattenDifferences(r.Differs), Held: flattenDifferences(r.Held), Dropped: texts(r.Dropped),
	}
}

func flattenDifferences(all []fleet.FieldDifference) []differenceModel {
	out := make([]differenceModel, 0, len(all))
	for _, d := range all {
		out = append(out, differenceModel{Path: text(d.Path), Have: text(d.Have), Want: text(d.Want), Manager: text(d.Manager)})
	}
	return out
}

func flattenPlan(p *fleet.Plan) *planModel {
	if p == nil {
		return nil
	}
	m := &planModel{Kind: text(p.Kind), Cause: text(p.Cause), Tasks: []taskModel{}}
	for _, t := range p.Tasks {
		m.Tasks = append(m.Tasks, taskModel{Description: text(t.Describe()), State: text(cmp.Or(t.State, fleet.TaskPending))})
	}
	return m
}

func numbers(in map[string]int) map[string]int64 {
	out := make(map[string]int64, len(in))
	for k, n := range in {
		out[k] = int64(n)
	}
	return out
}

func moment(t *time.Time) types.String {
	if t == nil || t.IsZero() {
		return types.StringNull()
	}
	return types.StringValue(t.UTC().Format(time.RFC3339))
}
