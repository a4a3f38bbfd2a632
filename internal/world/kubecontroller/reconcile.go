package kubecontroller

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// state is what runs for one instance.
type state struct {
	uid        types.UID
	spec       map[string]any // as the last pass has read it; nil: none has
	generation int64          // of it
	waits      int64          // the generation that a pass is to read
	notices    time.Time      // when it does
	follows    time.Time      // when the next pass begins, for what the last one changed wakes it up
	rolled     int64          // the generation whose roll-out completed last
	rolledAt   time.Time
	done       string    // the pods of the last roll-out that completed
	image      string    // their image: the latch
	ready      int64     // how many there are of them
	target     string    // the pods of the roll-out that goes on
	begun      time.Time // when it did
	written    map[string]any
	at         time.Time // when it was written
}

// notOfPods are the spec fields that no pod sees: they change routes and records only.
var notOfPods = []string{
	"publicHost", "grpcPublicHost", "globalPublicHost", "globalGrpcPublicHost", "clientHostAliases",
	"cloudflarePoolLatitude", "cloudflarePoolLongitude", "ingressClassName", "private", "exposeNodePort",
}

// podsOf is what the pods of an instance are made of, comparable.
func podsOf(spec map[string]any) string {
	pods := maps.Clone(spec)
	for _, field := range notOfPods {
		delete(pods, field)
	}
	b, err := json.Marshal(pods)
	if err != nil {
		panic(err) // it came as JSON
	}
	return string(b)
}

// reconcile looks at one instance and returns when to look again; 0: when it changes.
func (k *Controller) reconcile(ctx context.Context, of key) time.Duration {
	k.mu.Lock()
	object := k.objects[of]
	if object == nil {
		delete(k.states, of)
		k.mu.Unlock()
		k.ingress.route(of, route{})
		return 0
	}
	now := time.Now()
	s := k.states[of]
	if s == nil || s.uid != object.GetUID() {
		s = found(object)
		k.states[of] = s
	}
	b := k.behaves(of)
	if b.Silent {
		k.mu.Unlock()
		return 0
	}
	late, write := s.notice(object, b, now)
	if s.spec == nil {
		k.mu.Unlock()
		return late
	}
	spec := s.spec
	var left time.Duration
	if late == 0 {
		left = s.advance(spec, b, now)
	}
	status := s.status(spec, b)
	resync := s.at.Add(k.config.Resync).Sub(now)
	write = write || late == 0 && (resync <= 0 || !reflect.DeepEqual(status, s.written))
	if write {
		s.written, s.at, resync = status, now, k.config.Resync
	}
	account, version := nested(spec, "accountHandle"), versionOf(s.image)
	k.mu.Unlock()

	k.ingress.route(of, route{
		hosts: hostsOf(spec), account: account, version: version, up: version != "" && !b.Down,
		selfSigned: b.SelfSigned, unrouted: b.Unrouted, unpublished: b.Unpublished,
	})
	if write {
		if err := k.write(ctx, of, object.GetUID(), status, now); err != nil {
			k.mu.Lock()
			s.written = nil
			k.mu.Unlock()
			return again
		}
	}
	if late > 0 {
		return late
	}
	for _, sooner := range []time.Duration{left, s.follows.Sub(now)} {
		if sooner > 0 {
			resync = min(resync, sooner)
		}
	}
	return resync
}

// notice reads the spec when that is due, and says how long it is until then; meanwhile
// nothing is done. write says that a pass ends now, which writes whatever it found: one that
// went on when the spec changed, one that reads it, and one that follows.
func (s *state) notice(object *unstructured.Unstructured, b Behaviour, now time.Time) (late time.Duration, write bool) {
	if g := object.GetGeneration(); g != s.generation {
		if s.waits != g {
			s.waits, s.notices, write = g, now.Add(b.Notice), true
		}
		if late = s.notices.Sub(now); late > 0 {
			return late, write
		}
		s.spec, _, _ = unstructured.NestedMap(object.Object, "spec")
		s.generation, s.follows = g, now.Add(time.Second)
		return 0, true
	}
	if !s.follows.IsZero() && !s.follows.After(now) {
		s.follows = time.Time{}
		return 0, true
	}
	return 0, false
}

// found is the state of an instance that is seen for the first time: what its status says
// has completed, has.
func found(object *unstructured.Unstructured) *state {
	s := &state{uid: object.GetUID(), image: nested(object.Object, "status", "observedImage")}
	if s.image == "" {
		return s
	}
	s.ready, _, _ = unstructured.NestedInt64(object.Object, "status", "readyReplicas")
	if nested(object.Object, "status", "phase") == phaseReady && s.image == nested(object.Object, "spec", "image") {
		s.spec, _, _ = unstructured.NestedMap(object.Object, "spec")
		s.generation = object.GetGeneration()
		s.done = podsOf(s.spec)
		s.target = s.done
	}
	return s
}

const (
	phasePending = "Pending"
	phaseReady   = "Ready"
)

// lost is the end of the tag of an image that nobody built: its pods never start.
const lost = "-lost"

// advance begins or completes a roll-out and returns what is left of it.
func (s *state) advance(spec map[string]any, b Behaviour, now time.Time) time.Duration {
	if pods := podsOf(spec); pods != s.target {
		s.target, s.begun = pods, now
	}
	defer func() {
		if s.done == s.target && s.rolled != s.generation {
			s.rolled, s.rolledAt = s.generation, now
		}
	}()
	if s.done == s.target || b.Stuck || strings.HasSuffix(versionOf(nested(spec, "image")), lost) {
		return 0
	}
	if left := s.begun.Add(b.RollOut).Sub(now); left > 0 {
		return left
	}
	s.done, s.image, s.ready = s.target, nested(spec, "image"), replicas(spec)
	return 0
}

// status is what the instance's status says, without lastReconciledAt.
func (s *state) status(spec map[string]any, b Behaviour) map[string]any {
	status := map[string]any{"phase": phaseReady, "readyReplicas": s.ready, "observedImage": nil, "publicURL": nil, "grpcPublicURL": nil, "message": nil}
	if s.image != "" {
		status["observedImage"] = s.image
	}
	if s.done != s.target {
		status["phase"] = phasePending
		status["message"] = fmt.Sprintf("rolling out %s: 0 of %d replicas are updated", nested(spec, "image"), replicas(spec))
	}
	for field, host := range map[string]string{"publicURL": "publicHost", "grpcPublicURL": "grpcPublicHost"} {
		if name := nested(spec, host); name != "" {
			status[field] = "https://" + name
		}
	}
	if b.Image != "" {
		status["observedImage"] = b.Image
	}
	if b.Message != "" {
		status["message"] = b.Message
	}
	return status
}

func replicas(spec map[string]any) int64 {
	if n, ok, _ := unstructured.NestedInt64(spec, "replicas"); ok {
		return n
	}
	return 1
}

// versionOf is the tag of an image; all of it where it has none.
func versionOf(image string) string {
	if tag, ok := fleet.TagOf(image); ok {
		return tag
	}
	return image
}

// hostsOf are the hosts that spec routes, each once.
func hostsOf(spec map[string]any) []string {
	hosts, _, _ := unstructured.NestedStringSlice(spec, "clientHostAliases")
	for _, field := range []string{"publicHost", "grpcPublicHost", "globalPublicHost", "globalGrpcPublicHost"} {
		if host := nested(spec, field); host != "" {
			hosts = append(hosts, host)
		}
	}
	slices.Sort(hosts)
	return slices.Compact(hosts)
}

// write writes a status. That the instance is gone, or is another one, is no failure: the
// watch will say so.
func (k *Controller) write(ctx context.Context, of key, uid types.UID, status map[string]any, now time.Time) error {
	all := maps.Clone(status)
	all["lastReconciledAt"] = now.UTC().Format(time.RFC3339)
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": uid}, "status": all})
	if err != nil {
		return err
	}
	_, err = k.client.Namespace(of.namespace).Patch(ctx, of.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: FieldManager}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
