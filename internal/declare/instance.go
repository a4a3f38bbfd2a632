package declare

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// nameOf is a server's instance as a document that says nothing but where it is.
func nameOf(key fleet.ServerKey, r fleet.Region) (fleet.KubeDocument, error) {
	r = r.WithDefaults()
	name, err := r.Instance(key.Account)
	if err != nil {
		return fleet.KubeDocument{}, unrenderable(key, err)
	}
	return fleet.KubeDocument{Cluster: r.Kubernetes.Cluster, Namespace: r.Kubernetes.Namespace, Name: name}, nil
}

// lastKnown is what an instance that bears the server's own labels tells of its record:
// nothing where there is none, or where the cluster does not answer.
func (d *Declarer) lastKnown(ctx context.Context, key fleet.ServerKey, r fleet.Region) (found, error) {
	doc, err := nameOf(key, r)
	if err != nil {
		return found{}, nil // the declaration says so itself
	}
	inst, err := d.instance(ctx, key, doc, nil, listWithin)
	if _, unasked := asked(err); unasked {
		return found{}, err
	}
	if err != nil {
		return found{unread: &fleet.ReadFailure{Message: err.Error()}}, nil
	}
	if inst == nil || inst.Foreign != "" {
		return found{}, nil
	}
	return found{restartMark: inst.RestartMark, aliases: inst.Aliases}, nil
}

// instance asks for an instance, compared with a document.
func (d *Declarer) instance(ctx context.Context, key fleet.ServerKey, doc fleet.KubeDocument, adopted *fleet.KubeAdoption, limit time.Duration) (*fleet.KubeInstance, error) {
	about := called(doc) + " as of " + doc.Revision
	if adopted != nil {
		about += fmt.Sprintf(", taken over as %s at %d", adopted.UID, adopted.Generation)
	}
	return ask(ctx, about, limit, func(ctx context.Context) (*fleet.KubeInstance, error) {
		return d.runtimes.Instance(ctx, key, doc, adopted)
	})
}

// routed are the old hosts that an instance goes on routing, though its record was lost, for
// the period of an alias from now: the first one began nobody knows when. What has become
// somebody else's since is not among them.
func (d *Declarer) routed(ctx context.Context, key fleet.ServerKey, hosts []string) (list []fleet.Alias, err error) {
	until := d.now().UTC().Add(d.aliases)
	for _, host := range hosts {
		if fleet.CheckHost(host) != nil {
			continue // no host of ours
		}
		owner, held, err := d.records.Owner(ctx, store.ReserveHost(host))
		if err != nil {
			return nil, err
		}
		if !held || owner == key {
			list = append(list, fleet.Alias{Host: host, Until: &until})
		}
	}
	return list, nil
}

// findInstance finds the KuraInstance that bears the name of a server which is to adopt
// it, and takes its version where the request names none. already says that it is the
// server's own by now.
func (d *Declarer) findInstance(ctx context.Context, declared *fleet.Server, r fleet.Region, known bool, f *found) (already bool, err error) {
	key := declared.Key()
	doc, err := nameOf(key, r)
	if err != nil {
		return false, err
	}
	inst, err := d.readInstance(ctx, key, doc, f.status.Value.AdoptedResource)
	if err != nil {
		return false, err
	}
	if known && inst.Foreign == "" {
		return true, nil
	}
	if f.status.Value.Runtime.Plan != nil {
		return false, fleet.Errorf(fleet.CodeConflict, "adopt server %s: a plan is under way; wait until it ended, or pause the server", key)
	}
	if declared.ImageTag == "" {
		tag, ok := fleet.TagOf(inst.SpecImage)
		if !ok {
			return false, adoptFault(key, "/image_tag", "%s runs image %q, which names no version: name the one that is to be declared", called(doc), inst.SpecImage)
		}
		declared.ImageTag = tag
		if err := declared.Validate(); err != nil {
			return false, err
		}
	}
	f.instance, f.restartMark = inst, inst.RestartMark
	if inst.Foreign == "" {
		f.aliases = inst.Aliases
	}
	return false, nil
}

// readInstance asks the cluster for an instance that is to be adopted.
func (d *Declarer) readInstance(ctx context.Context, key fleet.ServerKey, doc fleet.KubeDocument, adopted *fleet.KubeAdoption) (*fleet.KubeInstance, error) {
	inst, err := d.instance(ctx, key, doc, adopted, readTimeout)
	switch {
	case err != nil:
		return nil, &fleet.Error{Code: fleet.CodeUnavailable, Message: fmt.Sprintf("adopt server %s: %s cannot be read", key, called(doc)), Err: err}
	case inst == nil:
		return nil, fleet.Errorf(fleet.CodeNotFound, "adopt server %s: there is no %s; declare the server (kura_server) and kurad makes it, or correct account and region", key, called(doc))
	case inst.Deleting:
		return nil, fleet.Errorf(fleet.CodeConflict, "adopt server %s: %s is being deleted; wait until it is gone, then declare the server", key, called(doc))
	}
	return inst, nil
}

func called(doc fleet.KubeDocument) string {
	return fmt.Sprintf("KuraInstance %s in namespace %q of cluster %q", doc.Name, doc.Namespace, doc.Cluster)
}

// sameInstance compares the instance that was found with what the server renders to. One with
// the server's labels is its own anyway: only its record was lost.
func (d *Declarer) sameInstance(ctx context.Context, key fleet.ServerKey, desired fleet.Desired, adoption *fleet.KubeAdoption) (*fleet.KubeInstance, error) {
	if desired.Kubernetes == nil {
		return nil, errors.New("a server of a Kubernetes region renders to no instance")
	}
	doc := *desired.Kubernetes
	inst, err := d.readInstance(ctx, key, doc, adoption)
	switch {
	case err != nil:
		return nil, err
	case inst.UID != adoption.UID:
		return nil, fleet.Errorf(fleet.CodeConflict, "adopt server %s: somebody made %s anew just now; try again", key, called(doc))
	case inst.Foreign != "":
		return nil, fleet.Errorf(fleet.CodeConflict, "adopt server %s: %s is %s; only what no kurad made can be adopted", key, called(doc), inst.Foreign)
	}
	return inst, nil
}

// awaitsApply reports whether an instance that was taken over is as it was until somebody
// applies the declaration (K6): then an equal one counts as new. So it does where a turn saw
// the last one come to nothing: to try that again takes no redeploy, which would restart it.
func awaitsApply(g fleet.Gathered) bool {
	st := g.Status
	if st == nil || st.AdoptedResource == nil {
		return false
	}
	if st.Status == fleet.StatusFailed && st.Generation == g.Intent.Generation {
		return true
	}
	return st.AdoptedResource.Generation == g.Intent.Generation &&
		(st.Status == fleet.StatusFailed || len(unlikeDeclared(st)) > 0 || slices.ContainsFunc(st.Holds, func(h fleet.Hold) bool { return h.Kind == fleet.HoldAdoption }))
}

// drifted reports whether an instance is not as declared because its region only observes:
// what a user declares runs (S10), so an equal declaration counts as new.
func drifted(g fleet.Gathered) bool {
	st := g.Status
	return st != nil && st.Verdict == fleet.VerdictDrifted && st.Generation == g.Intent.Generation && st.Resource != nil && len(st.Resource.Differs) > 0
}

// unlikeDeclared says how an instance that was taken over differs in more than metadata,
// which is changed at once.
func unlikeDeclared(st *fleet.Status) (list []string) {
	if st.Resource == nil || !st.Resource.Adopted {
		return nil
	}
	for _, d := range st.Resource.Differs {
		if !strings.HasPrefix(d.Path, "metadata.") {
			list = append(list, fmt.Sprintf("%s: %s -> %s", d.Path, cmp.Or(d.Have, "nothing"), cmp.Or(d.Want, "nothing")))
		}
	}
	return list
}

// unapplied is why a server whose instance awaits an apply is not redeployed: that would
// change what nobody has confirmed yet.
func unapplied(key fleet.ServerKey, st *fleet.Status) error {
	why := cmp.Or(strings.Join(unlikeDeclared(st), ", "), st.Message, string(st.Reason), "kurad has not looked yet how it differs")
	return fleet.Errorf(fleet.CodeConflict, "server %s was taken over and is not as declared: %s; apply the declaration first (terraform apply, or the same PUT again), then redeploy", key, why)
}

// routing is what a cluster says of the old hosts of a server that moves.
type routing struct {
	doc         fleet.KubeDocument
	unsupported bool  // its schema has no place for them
	err         error // it did not answer
}

// unrouted says of the Kubernetes clusters of servers that move where old hosts stop
// being routed (H8, K7). Each cluster and namespace is asked once, about a server whose
// instance is there, all at the same time.
func (d *Declarer) unrouted(ctx context.Context, list []affected) (warnings []fleet.Warning) {
	within, cancel := context.WithTimeout(ctx, listWithin)
	defer cancel()
	asked := map[[2]string]bool{}
	answers := make(chan routing)
	n := 0
	for _, a := range list {
		doc, status := a.to.Kubernetes, a.after.Status
		if doc == nil || status == nil || status.Resource == nil || doc.Spec[aliasField] == nil || asked[[2]string{doc.Cluster, doc.Namespace}] {
			continue
		}
		asked[[2]string{doc.Cluster, doc.Namespace}] = true
		n++
		go func() {
			inst, err := d.runtimes.Instance(within, a.after.Intent.Key(), *doc, status.AdoptedResource)
			answers <- routing{doc: *doc, unsupported: inst != nil && slices.Contains(inst.Dropped, "spec."+aliasField), err: err}
		}()
	}
	var said []string
	for range n {
		switch r := <-answers; {
		case r.err != nil:
			said = append(said, fmt.Sprintf("cluster %q did not say whether its KuraInstances have %s, without which it routes no old hosts (%v)", r.doc.Cluster, aliasField, r.err))
		case r.unsupported:
			said = append(said, fmt.Sprintf("cluster %q routes no old hosts, for its KuraInstances have no %s: keep the DNS records of the old hosts until their clients have the new ones, or upgrade the custom resource definition first", r.doc.Cluster, aliasField))
		}
	}
	slices.Sort(said)
	for _, detail := range slices.Compact(said) {
		warnings = append(warnings, fleet.Warning{Code: fleet.WarnNoAlias, Detail: detail})
	}
	return warnings
}

// aliasField is where a KuraInstance names the hosts that stay routed.
const aliasField = "clientHostAliases"
