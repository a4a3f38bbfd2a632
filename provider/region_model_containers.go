package provider

import (
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

type containersModel struct {
	Endpoint types.String            `tfsdk:"endpoint"`
	Pull     types.String            `tfsdk:"pull"`
	Services map[string]serviceModel `tfsdk:"services"`
}

type serviceModel struct {
	Image       types.String         `tfsdk:"image"`
	Command     []string             `tfsdk:"command"`
	Env         map[string]string    `tfsdk:"env"`
	EnvFrom     []string             `tfsdk:"env_from"`
	Volumes     []volumeModel        `tfsdk:"volumes"`
	Ports       map[string]portModel `tfsdk:"ports"`
	Labels      map[string]string    `tfsdk:"labels"`
	User        types.String         `tfsdk:"user"`
	Memory      types.String         `tfsdk:"memory"`
	CPUs        types.Float64        `tfsdk:"cpus"`
	StopSignal  types.String         `tfsdk:"stop_signal"`
	GracePeriod durationValue        `tfsdk:"grace_period"`
}

type volumeModel struct {
	Name     types.String `tfsdk:"name"`
	HostPath types.String `tfsdk:"host_path"`
	Path     types.String `tfsdk:"path"`
	ReadOnly types.Bool   `tfsdk:"read_only"`
	Retain   types.Bool   `tfsdk:"retain"`
}

type portModel struct {
	Container types.Int64  `tfsdk:"container"`
	Host      types.Int64  `tfsdk:"host"`
	Bind      types.String `tfsdk:"bind"`
	Protocol  types.String `tfsdk:"protocol"`
	Endpoint  types.String `tfsdk:"endpoint"`
}

func (m containersModel) expand() *fleet.Containers {
	c := &fleet.Containers{Endpoint: m.Endpoint.ValueString(), Pull: fleet.PullPolicy(m.Pull.ValueString()), Services: map[string]fleet.Service{}}
	for name, s := range m.Services {
		c.Services[name] = s.expand()
	}
	return c
}

func (m serviceModel) expand() fleet.Service {
	s := fleet.Service{
		Image: m.Image.ValueString(), Command: m.Command, Env: m.Env, EnvFrom: m.EnvFrom, Labels: m.Labels, User: m.User.ValueString(),
		Memory: m.Memory.ValueString(), CPUs: m.CPUs.ValueFloat64(), StopSignal: m.StopSignal.ValueString(), GracePeriod: m.GracePeriod.fleet(),
	}
	for _, v := range m.Volumes {
		s.Volumes = append(s.Volumes, fleet.Volume{
			Name: v.Name.ValueString(), HostPath: v.HostPath.ValueString(), Path: v.Path.ValueString(),
			ReadOnly: v.ReadOnly.ValueBool(), Retain: v.Retain.ValueBool(),
		})
	}
	for name, p := range m.Ports {
		if s.Ports == nil {
			s.Ports = map[string]fleet.Port{}
		}
		s.Ports[name] = fleet.Port{
			Container: int(p.Container.ValueInt64()), Host: int(p.Host.ValueInt64()), Bind: p.Bind.ValueString(),
			Protocol: p.Protocol.ValueString(), Endpoint: p.Endpoint.ValueString(),
		}
	}
	return s
}

func flattenContainers(c fleet.Containers) *containersModel {
	m := &containersModel{Endpoint: types.StringValue(c.Endpoint), Pull: text(c.Pull), Services: map[string]serviceModel{}}
	for name, s := range c.Services {
		m.Services[name] = flattenService(s)
	}
	return m
}

func flattenService(s fleet.Service) serviceModel {
	m := serviceModel{
		Image: types.StringValue(s.Image), Command: s.Command, Env: s.Env, EnvFrom: s.EnvFrom, Labels: s.Labels, User: text(s.User),
		Memory: text(s.Memory), CPUs: decimal(s.CPUs), StopSignal: text(s.StopSignal), GracePeriod: newDuration(s.GracePeriod),
	}
	for _, v := range s.Volumes {
		m.Volumes = append(m.Volumes, volumeModel{
			Name: text(v.Name), HostPath: text(v.HostPath), Path: types.StringValue(v.Path),
			ReadOnly: types.BoolValue(v.ReadOnly), Retain: types.BoolValue(v.Retain),
		})
	}
	for name, p := range s.Ports {
		if m.Ports == nil {
			m.Ports = map[string]portModel{}
		}
		m.Ports[name] = portModel{
			Container: types.Int64Value(int64(p.Container)), Host: number(p.Host), Bind: text(p.Bind), Protocol: text(p.Protocol), Endpoint: text(p.Endpoint),
		}
	}
	return m
}
