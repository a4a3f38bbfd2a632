package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

type kubernetesModel struct {
	Cluster        types.String      `tfsdk:"cluster"`
	Namespace      types.String      `tfsdk:"namespace"`
	Image          types.String      `tfsdk:"image"`
	Replicas       types.Int64       `tfsdk:"replicas"`
	Storage        *storageModel     `tfsdk:"storage"`
	IngressClass   types.String      `tfsdk:"ingress_class"`
	NodeSelector   map[string]string `tfsdk:"node_selector"`
	Tolerations    []tolerationModel `tfsdk:"tolerations"`
	Env            map[string]string `tfsdk:"env"`
	EnvFrom        []string          `tfsdk:"env_from"`
	ExtraSpec      types.String      `tfsdk:"extra_spec"`
	ForceConflicts types.Bool        `tfsdk:"force_conflicts"`
	DeleteOrphans  types.Bool        `tfsdk:"delete_orphans"`
}

type storageModel struct {
	Class types.String `tfsdk:"class"`
	Size  types.String `tfsdk:"size"`
}

type tolerationModel struct {
	Key      types.String `tfsdk:"key"`
	Operator types.String `tfsdk:"operator"`
	Value    types.String `tfsdk:"value"`
	Effect   types.String `tfsdk:"effect"`
}

func (m kubernetesModel) expand() *fleet.Kubernetes {
	k := &fleet.Kubernetes{
		Cluster: m.Cluster.ValueString(), Namespace: m.Namespace.ValueString(), Image: m.Image.ValueString(), Replicas: int(m.Replicas.ValueInt64()),
		IngressClass: m.IngressClass.ValueString(), NodeSelector: m.NodeSelector, Env: m.Env, EnvFrom: m.EnvFrom, ExtraSpec: m.ExtraSpec.ValueString(),
		ForceConflicts: m.ForceConflicts.ValueBool(), DeleteOrphans: m.DeleteOrphans.ValueBool(),
	}
	if s := m.Storage; s != nil {
		k.Storage = &fleet.Storage{Class: s.Class.ValueString(), Size: s.Size.ValueString()}
	}
	for _, t := range m.Tolerations {
		k.Tolerations = append(k.Tolerations, fleet.Toleration{
			Key: t.Key.ValueString(), Operator: t.Operator.ValueString(), Value: t.Value.ValueString(), Effect: t.Effect.ValueString(),
		})
	}
	return k
}

func flattenKubernetes(k fleet.Kubernetes) *kubernetesModel {
	m := &kubernetesModel{
		Cluster: types.StringValue(k.Cluster), Namespace: text(k.Namespace), Image: types.StringValue(k.Image), Replicas: number(k.Replicas),
		IngressClass: text(k.IngressClass), NodeSelector: k.NodeSelector, Env: k.Env, EnvFrom: k.EnvFrom, ExtraSpec: text(k.ExtraSpec),
		ForceConflicts: types.BoolValue(k.ForceConflicts), DeleteOrphans: types.BoolValue(k.DeleteOrphans),
	}
	if s := k.Storage; s != nil {
		m.Storage = &storageModel{Class: text(s.Class), Size: text(s.Size)}
	}
	for _, t := range k.Tolerations {
		m.Tolerations = append(m.Tolerations, tolerationModel{Key: text(t.Key), Operator: text(t.Operator), Value: text(t.Value), Effect: text(t.Effect)})
	}
	return m
}
