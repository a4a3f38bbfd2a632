package containers

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/volume"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// createVolume makes the named volume with our labels, or finds it made (C13).
func (r run) createVolume(ctx context.Context, v fleet.VolumeDocument) fleet.Outcome {
	seen, err := r.engine.VolumeInspect(ctx, v.Source, client.VolumeInspectOptions{})
	vol := seen.Volume
	if errdefs.IsNotFound(err) {
		labels := r.serverLabels()
		labels[fleet.LabelRetain] = strconv.FormatBool(v.Retain)
		var made client.VolumeCreateResult
		made, err = r.engine.VolumeCreate(ctx, client.VolumeCreateOptions{Name: v.Source, Labels: labels})
		vol = made.Volume
	}
	if err != nil {
		return r.failed(fmt.Errorf("volume %s: %w", v.Source, err))
	}
	// Somebody else's data under our name is neither used nor, later, removed.
	if who := ownerOf(vol.Labels); who != r.ownerFor(r.key) {
		return runtime.Foreign("volume "+v.Source, who.String())
	}
	return done("")
}

// removeVolumes removes the server's volumes that are not retained. Where the present
// document names a volume, it decides; the label, which nothing changes once the volume is
// made, speaks for those that are in no document any more.
func (r run) removeVolumes(ctx context.Context) fleet.Outcome {
	if err := r.negotiate(ctx); err != nil {
		return r.unread(err)
	}
	labels := r.serverLabels()
	filters := client.Filters{}
	for _, k := range sortedKeys(labels) {
		filters.Add("label", k+"="+labels[k])
	}
	listed, err := r.engine.VolumeList(ctx, client.VolumeListOptions{Filters: filters})
	if err != nil {
		return r.unread(err)
	}
	declared := r.retained()
	for _, v := range listed.Items {
		// Engines do not agree on whether several labels mean all or any of them.
		if ownerOf(v.Labels) != r.ownerFor(r.key) {
			continue
		}
		keep, known := declared[v.Name]
		if !known {
			keep = v.Labels[fleet.LabelRetain] == "true"
		}
		if keep {
			continue
		}
		if o := r.removeVolume(ctx, v); o.Class != fleet.ClassOK {
			return o
		}
	}
	return done("")
}

// retained says of each named volume of the present document whether it stays; one that
// several services mount stays where one of them says so.
func (r run) retained() map[string]bool {
	keep := map[string]bool{}
	if r.doc == nil {
		return keep
	}
	for _, v := range r.doc.Volumes {
		if !v.HostPath {
			keep[v.Source] = keep[v.Source] || v.Retain
		}
	}
	return keep
}

func (r run) removeVolume(ctx context.Context, v volume.Volume) fleet.Outcome {
	_, err := r.engine.VolumeRemove(ctx, v.Name, client.VolumeRemoveOptions{})
	if err == nil || errdefs.IsNotFound(err) {
		return done("")
	}
	o := r.failed(fmt.Errorf("volume %s: %w", v.Name, err))
	o.Message = strings.Replace(o.Message, r.task.Describe()+": ", "remove ", 1)
	return o
}
