package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

type regionModel struct {
	Name               types.String      `tfsdk:"name"`
	DisplayName        types.String      `tfsdk:"display_name"`
	ClusterID          types.String      `tfsdk:"cluster_id"`
	Hosts              *hostsModel       `tfsdk:"hosts"`
	Location           *locationModel    `tfsdk:"location"`
	Readiness          *readinessModel   `tfsdk:"readiness"`
	DNS                *dnsModel         `tfsdk:"dns"`
	StallAfter         durationValue     `tfsdk:"stall_after"`
	MaxUnsettled       types.Int64       `tfsdk:"max_unsettled"`
	Remediation        types.String      `tfsdk:"remediation"`
	Paused             types.Bool        `tfsdk:"paused"`
	Cordoned           types.Bool        `tfsdk:"cordoned"`
	Labels             map[string]string `tfsdk:"labels"`
	DeletionProtection types.Bool        `tfsdk:"deletion_protection"`
	Sidecar            *sidecarModel     `tfsdk:"sidecar"`
	Kubernetes         *kubernetesModel  `tfsdk:"kubernetes"`
	Containers         *containersModel  `tfsdk:"containers"`
}

type hostsModel struct {
	Public types.String `tfsdk:"public"`
	GRPC   types.String `tfsdk:"grpc"`
	Global types.String `tfsdk:"global"`
}

type locationModel struct {
	Latitude  types.Float64 `tfsdk:"latitude"`
	Longitude types.Float64 `tfsdk:"longitude"`
}

type readinessModel struct {
	Path    types.String  `tfsdk:"path"`
	Scheme  types.String  `tfsdk:"scheme"`
	Port    types.Int64   `tfsdk:"port"`
	Timeout durationValue `tfsdk:"timeout"`
	Global  types.String  `tfsdk:"global"`
}

type dnsModel struct {
	Mode    types.String `tfsdk:"mode"`
	OwnerID types.String `tfsdk:"owner_id"`
	Target  types.String `tfsdk:"target"`
}

type sidecarModel struct {
	Port          types.Int64   `tfsdk:"port"`
	ReadyPath     types.String  `tfsdk:"ready_path"`
	MarkReadyPath types.String  `tfsdk:"mark_ready_path"`
	Scheme        types.String  `tfsdk:"scheme"`
	Timeout       durationValue `tfsdk:"timeout"`
}

func (m regionModel) expand() fleet.Region {
	r := fleet.Region{
		Name: m.Name.ValueString(), DisplayName: m.DisplayName.ValueString(), ClusterID: m.ClusterID.ValueString(),
		StallAfter: m.StallAfter.fleet(), MaxUnsettled: int(m.MaxUnsettled.ValueInt64()), Remediation: fleet.Remediation(m.Remediation.ValueString()),
		Paused: m.Paused.ValueBool(), Cordoned: m.Cordoned.ValueBool(), Labels: m.Labels, DeletionProtection: m.DeletionProtection.ValueBool(),
	}
	if h := m.Hosts; h != nil {
		r.Hosts = fleet.RegionHosts{Public: h.Public.ValueString(), GRPC: h.GRPC.ValueString(), Global: h.Global.ValueString()}
	}
	if l := m.Location; l != nil {
		r.Location = &fleet.Location{Latitude: l.Latitude.ValueFloat64(), Longitude: l.Longitude.ValueFloat64()}
	}
	if p := m.Readiness; p != nil {
		r.Readiness = fleet.Readiness{
			Path: p.Path.ValueString(), Scheme: p.Scheme.ValueString(), Port: int(p.Port.ValueInt64()),
			Timeout: p.Timeout.fleet(), Global: p.Global.ValueString(),
		}
	}
	if d := m.DNS; d != nil {
		r.DNS = fleet.DNS{Mode: fleet.DNSMode(d.Mode.ValueString()), OwnerID: d.OwnerID.ValueString(), Target: d.Target.ValueString()}
	}
	if s := m.Sidecar; s != nil {
		r.Sidecar = &fleet.Sidecar{
			Port: int(s.Port.ValueInt64()), ReadyPath: s.ReadyPath.ValueString(), MarkReadyPath: s.MarkReadyPath.ValueString(),
			Scheme: s.Scheme.ValueString(), Timeout: s.Timeout.fleet(),
		}
	}
	if m.Kubernetes != nil {
		r.Kubernetes = m.Kubernetes.expand()
	}
	if m.Containers != nil {
		r.Containers = m.Containers.expand()
	}
	return r
}

func flattenRegion(r fleet.Region) regionModel {
	m := regionModel{
		Name: types.StringValue(r.Name), DisplayName: text(r.DisplayName), ClusterID: text(r.ClusterID),
		Hosts:      &hostsModel{Public: types.StringValue(r.Hosts.Public), GRPC: text(r.Hosts.GRPC), Global: text(r.Hosts.Global)},
		StallAfter: newDuration(r.StallAfter), MaxUnsettled: number(r.MaxUnsettled), Remediation: text(r.Remediation),
		Paused: types.BoolValue(r.Paused), Cordoned: types.BoolValue(r.Cordoned), Labels: r.Labels, DeletionProtection: types.BoolValue(r.DeletionProtection),
	}
	if l := r.Location; l != nil {
		m.Location = &locationModel{Latitude: types.Float64Value(l.Latitude), Longitude: types.Float64Value(l.Longitude)}
	}
	if p := r.Readiness; p != (fleet.Readiness{}) {
		m.Readiness = &readinessModel{Path: text(p.Path), Scheme: text(p.Scheme), Port: number(p.Port), Timeout: newDuration(p.Timeout), Global: text(p.Global)}
	}
	if d := r.DNS; d != (fleet.DNS{}) {
		m.DNS = &dnsModel{Mode: text(d.Mode), OwnerID: text(d.OwnerID), Target: text(d.Target)}
	}
	if s := r.Sidecar; s != nil {
		m.Sidecar = &sidecarModel{
			Port: types.Int64Value(int64(s.Port)), ReadyPath: text(s.ReadyPath), MarkReadyPath: text(s.MarkReadyPath),
			Scheme: text(s.Scheme), Timeout: newDuration(s.Timeout),
		}
	}
	if r.Kubernetes != nil {
		m.Kubernetes = flattenKubernetes(*r.Kubernetes)
	}
	if r.Containers != nil {
		m.Containers = flattenContainers(*r.Containers)
	}
	return m
}

type regionIdentity struct {
	Name types.String `tfsdk:"name"`
}
