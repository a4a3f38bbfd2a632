package provider

import (
	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

type serverModel struct {
	Account            types.String      `tfsdk:"account"`
	Region             types.String      `tfsdk:"region"`
	ImageTag           types.String      `tfsdk:"image_tag"`
	Overrides          *overridesModel   `tfsdk:"overrides"`
	Labels             map[string]string `tfsdk:"labels"`
	Remediation        types.String      `tfsdk:"remediation"`
	Paused             types.Bool        `tfsdk:"paused"`
	WaitFor            types.String      `tfsdk:"wait_for"`
	DeletionProtection types.Bool        `tfsdk:"deletion_protection"`
	Timeouts           timeouts.Value    `tfsdk:"timeouts"`
	PendingImageTag    types.String      `tfsdk:"pending_image_tag"`
	Instance           types.String      `tfsdk:"instance"`
	Host               types.String      `tfsdk:"host"`
	GRPCHost           types.String      `tfsdk:"grpc_host"`
	GlobalHost         types.String      `tfsdk:"global_host"`
	URL                types.String      `tfsdk:"url"`
	GRPCURL            types.String      `tfsdk:"grpc_url"`
	GlobalURL          types.String      `tfsdk:"global_url"`
}

type overridesModel struct {
	Containers *containerOverridesModel  `tfsdk:"containers"`
	Kubernetes *kubernetesOverridesModel `tfsdk:"kubernetes"`
}

type containerOverridesModel struct {
	Services map[string]serviceOverrideModel `tfsdk:"services"`
}

type serviceOverrideModel struct {
	Env    map[string]string `tfsdk:"env"`
	Memory types.String      `tfsdk:"memory"`
	CPUs   types.Float64     `tfsdk:"cpus"`
}

type kubernetesOverridesModel struct {
	Replicas    types.Int64       `tfsdk:"replicas"`
	StorageSize types.String      `tfsdk:"storage_size"`
	Env         map[string]string `tfsdk:"env"`
}

func (m serverModel) key() fleet.ServerKey {
	return fleet.ServerKey{Account: m.Account.ValueString(), Region: m.Region.ValueString()}
}

func (m serverModel) identity() serverIdentity { return serverIdentity{m.Account, m.Region} }

func (m serverModel) expand() fleet.Server {
	s := fleet.Server{
		Account: m.Account.ValueString(), Region: m.Region.ValueString(), ImageTag: m.ImageTag.ValueString(), Labels: m.Labels,
		Remediation: fleet.Remediation(m.Remediation.ValueString()), Paused: m.Paused.ValueBool(), DeletionProtection: m.DeletionProtection.ValueBool(),
	}
	if o := m.Overrides; o != nil {
		s.Overrides = o.expand()
	}
	return s
}

func (m overridesModel) expand() *fleet.Overrides {
	o := &fleet.Overrides{}
	if c := m.Containers; c != nil {
		o.Containers = &fleet.ContainerOverrides{}
		for name, s := range c.Services {
			if o.Containers.Services == nil {
				o.Containers.Services = map[string]fleet.ServiceOverride{}
			}
			o.Containers.Services[name] = fleet.ServiceOverride{Env: s.Env, Memory: s.Memory.ValueString(), CPUs: s.CPUs.ValueFloat64()}
		}
	}
	if k := m.Kubernetes; k != nil {
		o.Kubernetes = &fleet.KubernetesOverrides{Replicas: int(k.Replicas.ValueInt64()), StorageSize: k.StorageSize.ValueString(), Env: k.Env}
	}
	return o
}

// flattenServer writes a server's declaration and what is computed of it into a copy
// of prior, from which it takes what the daemon does not know: wait_for and timeouts.
func flattenServer(v fleet.ServerView, prior serverModel) serverModel {
	in := v.Intent.Server
	m := prior
	m.Account, m.Region, m.ImageTag, m.PendingImageTag = types.StringValue(v.Account), types.StringValue(v.Region), text(in.ImageTag), types.StringNull()
	m.Labels, m.Remediation, m.Paused, m.DeletionProtection = in.Labels, text(in.Remediation), types.BoolValue(in.Paused), types.BoolValue(in.DeletionProtection)
	m.Overrides = flattenOverrides(in.Overrides)
	m.Instance, m.Host, m.GRPCHost, m.GlobalHost = text(v.Instance), text(v.Hosts.Public), text(v.Hosts.GRPC), text(v.Hosts.Global)
	m.URL, m.GRPCURL, m.GlobalURL = text(v.DeclaredURL), text(v.DeclaredGRPCURL), text(v.DeclaredGlobal)
	return m
}

func flattenOverrides(o *fleet.Overrides) *overridesModel {
	if o == nil {
		return nil
	}
	m := &overridesModel{}
	if c := o.Containers; c != nil {
		m.Containers = &containerOverridesModel{}
		for name, s := range c.Services {
			if m.Containers.Services == nil {
				m.Containers.Services = map[string]serviceOverrideModel{}
			}
			m.Containers.Services[name] = serviceOverrideModel{Env: s.Env, Memory: text(s.Memory), CPUs: decimal(s.CPUs)}
		}
	}
	if k := o.Kubernetes; k != nil {
		m.Kubernetes = &kubernetesOverridesModel{Replicas: number(k.Replicas), StorageSize: text(k.StorageSize), Env: k.Env}
	}
	return m
}

// asPlanned returns m with what the plan promised: an apply that succeeds returns
// every value that was known in its plan, and the next Read brings it up to date.
func (m serverModel) asPlanned(plan serverModel) serverModel {
	for _, c := range []struct{ got, planned *types.String }{
		{&m.Instance, &plan.Instance}, {&m.Host, &plan.Host}, {&m.GRPCHost, &plan.GRPCHost}, {&m.GlobalHost, &plan.GlobalHost},
		{&m.URL, &plan.URL}, {&m.GRPCURL, &plan.GRPCURL}, {&m.GlobalURL, &plan.GlobalURL},
	} {
		if !c.planned.IsUnknown() {
			*c.got = *c.planned
		}
	}
	return m
}

type serverIdentity struct {
	Account types.String `tfsdk:"account"`
	Region  types.String `tfsdk:"region"`
}
