package containers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"strconv"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// prepare runs a step of what is made for the task's document, which says what that is,
// unless the document is another one by now or may not be (C4, C10).
func (r run) prepare(ctx context.Context, step func(context.Context, client.ContainerCreateOptions) fleet.Outcome) fleet.Outcome {
	if r.doc == nil {
		return runtime.Replan("the document of service %s is gone", r.task.Service)
	}
	if r.task.Digest != "" && r.task.Digest != r.doc.Digest {
		return runtime.Replan("the document of service %s changed since the plan was made", r.task.Service)
	}
	spec, refused := r.spec()
	if refused != nil {
		return *refused
	}
	return step(ctx, spec)
}

// create makes the volumes and the container present.
func (r run) create(ctx context.Context, spec client.ContainerCreateOptions) fleet.Outcome {
	if o, made := r.reuse(ctx); made {
		return o
	}
	for _, v := range r.doc.Volumes {
		if v.HostPath {
			continue
		}
		if o := r.createVolume(ctx, v); o.Class != fleet.ClassOK {
			return o
		}
	}
	made, err := r.engine.ContainerCreate(ctx, spec)
	if err != nil {
		// A name in use is 409 of Docker and 500 of Podman; what bears it tells.
		if isConflict(err) {
			if o, made := r.reuse(ctx); made {
				return o
			}
		}
		if errdefs.IsNotFound(err) {
			if _, err := r.engine.ImageInspect(ctx, r.doc.Image); errdefs.IsNotFound(err) {
				return runtime.Replan("image %s was removed before the container could be created", r.doc.Image)
			}
		}
		return r.failed(err)
	}
	for _, w := range made.Warnings {
		r.log.Warn("engine warns about a container", "container", r.task.Name, "warning", r.cfg.hide(w))
	}
	return done(made.ID)
}

// reuse looks at what bears the task's name. made is false where the name is free and the
// container must be created.
func (r run) reuse(ctx context.Context) (o fleet.Outcome, made bool) {
	seen, err := r.inspect(ctx, r.task.Name)
	if errdefs.IsNotFound(err) {
		return fleet.Outcome{}, false
	}
	if err != nil {
		return r.unread(err), true
	}
	labels := seen.Config.Labels
	switch {
	case ownerOf(labels) != r.ownerFor(r.key):
		return runtime.Foreign("container "+r.task.Name, ownerOf(labels).String()), true
	case labels[fleet.LabelDigest] == r.doc.Digest && labels[fleet.LabelService] == r.doc.Service:
		return done(seen.ID), true
	}
	return runtime.Replan("container %s is there, made from another document", r.task.Name), true
}

// spec is the document in the engine's words, or why it may not be (C10).
func (r run) spec() (client.ContainerCreateOptions, *fleet.Outcome) {
	refuse := func(reason fleet.Reason, err error) (client.ContainerCreateOptions, *fleet.Outcome) {
		o := runtime.Refuse(reason, "create container %s: %v", r.doc.Name, err)
		return client.ContainerCreateOptions{}, &o
	}
	mounts, err := r.mounts()
	if err != nil {
		return refuse(fleet.ReasonForbidden, err)
	}
	_, badImage := fleet.ParseImage(r.doc.Image)
	env, badEnv := r.environ()
	exposed, bound, badPorts := r.ports()
	if err := errors.Join(badImage, badEnv, badPorts); err != nil {
		return refuse(fleet.ReasonInvalid, err)
	}
	grace := int(math.Ceil(r.doc.GracePeriod.Std().Seconds()))
	return client.ContainerCreateOptions{
		Name: r.task.Name,
		Config: &container.Config{
			Image: r.doc.Image, Cmd: r.doc.Command, Env: env, User: r.doc.User, Labels: r.labels(),
			ExposedPorts: exposed, StopSignal: r.doc.StopSignal, StopTimeout: &grace,
		},
		HostConfig: &container.HostConfig{
			Mounts:       mounts,
			PortBindings: bound,
			// We start what ended, not the engine (C9).
			RestartPolicy: container.RestartPolicy{Name: container.RestartPolicyDisabled},
			CapDrop:       []string{"ALL"},
			SecurityOpt:   []string{"no-new-privileges"},
			Resources:     container.Resources{Memory: r.doc.MemoryBytes, NanoCPUs: int64(math.Round(r.doc.CPUs * 1e9))},
		},
	}, nil
}

// labels are the document's and, above them, ours (C7).
func (r run) labels() map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, r.doc.Labels)
	maps.Copy(labels, r.serverLabels())
	labels[fleet.LabelService] = r.doc.Service
	labels[fleet.LabelDigest] = r.doc.Digest
	if r.doc.RestartMark != "" {
		labels[fleet.LabelRestartMark] = r.doc.RestartMark
	}
	return labels
}

func (r run) serverLabels() map[string]string {
	return map[string]string{
		fleet.LabelEnvironment: r.env.Name,
		fleet.LabelAccount:     r.key.Account,
		fleet.LabelRegion:      r.key.Region,
	}
}

// environ are the variables of the named sets in their order, and above them the
// document's own.
func (r run) environ() ([]string, error) {
	all := map[string]string{}
	for _, name := range r.doc.EnvFrom {
		set, ok := r.cfg.EnvSets[name]
		if !ok {
			return nil, errors.New(r.cfg.unknownSet(name))
		}
		maps.Copy(all, set)
	}
	maps.Copy(all, r.doc.Env)
	out := make([]string, 0, len(all))
	for _, k := range sortedKeys(all) {
		out = append(out, k+"="+all[k])
	}
	return out, nil
}

// mounts are bind mounts and volumes. Mounts, not Binds: Podman makes a folder of the
// host for a bind whose source does not exist.
func (r run) mounts() ([]mount.Mount, error) {
	var out []mount.Mount
	for _, v := range r.doc.Volumes {
		m := mount.Mount{Type: mount.TypeVolume, Source: v.Source, Target: v.Path, ReadOnly: v.ReadOnly}
		if v.HostPath {
			real, err := r.mountable(v.Source)
			if err != nil {
				return nil, err
			}
			m.Type, m.Source = mount.TypeBind, real
		}
		out = append(out, m)
	}
	return out, nil
}

func (r run) ports() (network.PortSet, network.PortMap, error) {
	exposed, bound := network.PortSet{}, network.PortMap{}
	for _, p := range r.doc.Ports {
		port, err := network.ParsePort(fmt.Sprintf("%d/%s", p.Container, p.Protocol))
		if err != nil {
			return nil, nil, fmt.Errorf("port %s: %w", p.Name, err)
		}
		// An unset host port would be another one with each container (C12).
		if p.Host < 1 || p.Host > 65535 {
			return nil, nil, fmt.Errorf("port %s: no host port is assigned", p.Name)
		}
		addr, err := netip.ParseAddr(cmp.Or(p.Bind, r.cfg.Address))
		if err != nil {
			return nil, nil, fmt.Errorf("port %s: bind address: %w", p.Name, err)
		}
		exposed[port] = struct{}{}
		bound[port] = append(bound[port], network.PortBinding{HostIP: addr, HostPort: strconv.Itoa(p.Host)})
	}
	return exposed, bound, nil
}

// pull makes the image present as the document's policy says.
func (r run) pull(ctx context.Context, _ client.ContainerCreateOptions) fleet.Outcome {
	if r.doc.Pull != fleet.PullAlways {
		_, err := r.engine.ImageInspect(ctx, r.doc.Image)
		switch {
		case err == nil:
			return done("")
		case !errdefs.IsNotFound(err):
			return r.unread(err)
		case r.doc.Pull == fleet.PullNever:
			return runtime.Refuse(fleet.ReasonImagePullFailed, "image %s is not on endpoint %q and the region's pull policy is never: bring it there, or use pull = \"missing\"", r.doc.Image, r.cfg.Name)
		}
	}
	stream, err := r.engine.ImagePull(ctx, r.doc.Image, client.ImagePullOptions{})
	if err != nil {
		return r.failed(err)
	}
	defer stream.Close()
	if err := stream.Wait(ctx); err != nil {
		return r.failed(err)
	}
	return done("")
}
