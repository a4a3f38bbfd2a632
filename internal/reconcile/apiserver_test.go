package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const phaseReady = "Ready"

// apiserver is a Kubernetes cluster in memory: its API for KuraInstances, and a controller
// that brings up what is applied.
type apiserver struct {
	mu      sync.Mutex
	objects map[string]object // by namespace/name
	log     []change          // all changes, the oldest first
	bell    chan struct{}     // closed at the next change, or when the server falls silent
	uids    int
	notice  time.Duration // from an apply to the controller's noticing it
	rollOut time.Duration // from an apply to the image being there
	lag     time.Duration // between a change and its being seen by a watch
	took    time.Duration // by a change
	silent  fleet.Reason  // why nothing is answered
	uid     string        // of every namespace; "": kurad may not read it
	writes  []string      // what was done, in order
	asked   map[string]int
	admits  func(spec map[string]any) // what admission makes of what is applied; nil: nothing
	refuse  func(fleet.ServerKey, fleet.Task, fleet.KubeDocument) *fleet.Outcome
}

// object is a KuraInstance. It is never changed in place.
type object struct {
	namespace, name, uid string
	version              int
	labels               map[string]string
	revision             string
	spec                 map[string]any
	observed, phase      string
	beat                 int // lastReconciledAt: nothing that is shown
	generation           int64
	deleting             bool
}

type change struct {
	at   time.Time
	to   object
	gone bool
}

func newAPIServer() *apiserver {
	return &apiserver{
		objects: map[string]object{}, bell: make(chan struct{}), asked: map[string]int{},
		notice: 300 * time.Millisecond, rollOut: time.Second, lag: 10 * time.Millisecond, took: 50 * time.Millisecond,
	}
}

// store makes a change known; the lock is held.
func (s *apiserver) store(o object, gone bool) object {
	o.version = len(s.log) + 1
	if was, there := s.objects[o.namespace+"/"+o.name]; !there || !reflect.DeepEqual(was.spec, o.spec) {
		o.generation++
	}
	if gone {
		delete(s.objects, o.namespace+"/"+o.name)
	} else {
		s.objects[o.namespace+"/"+o.name] = o
	}
	s.log = append(s.log, change{time.Now(), o, gone})
	s.ring()
	return o
}

func (s *apiserver) ring() { close(s.bell); s.bell = make(chan struct{}) }

// with changes the server under its lock.
func (s *apiserver) with(change func()) { s.mu.Lock(); defer s.mu.Unlock(); change() }

func (s *apiserver) fallSilent(why fleet.Reason) { s.with(func() { s.silent = why; s.ring() }) }

func (s *apiserver) get(namespace, name string) (object, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[namespace+"/"+name]
	return o, ok
}

// of returns a server's instance in the namespace kura.
func (s *apiserver) of(account string) (object, bool) { return s.get("kura", "kura-"+account+"-eu") }

func (s *apiserver) count(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.writes {
		if w == what || strings.HasPrefix(w, what+" ") {
			n++
		}
	}
	return n
}

func (s *apiserver) asks(what string) int { s.mu.Lock(); defer s.mu.Unlock(); return s.asked[what] }

// put places an object there, as somebody with kubectl does.
func (s *apiserver) put(o object) object {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.uid == "" {
		s.uids++
		o.uid = fmt.Sprint("uid", s.uids)
	}
	return s.store(o, false)
}

// remove takes one away.
func (s *apiserver) remove(namespace, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o, ok := s.objects[namespace+"/"+name]; ok {
		s.store(o, true)
	}
}

// ours returns an object with our labels.
func ours(account, region string) object {
	return object{namespace: "kura", name: "kura-" + account + "-" + region, phase: phaseReady, labels: map[string]string{
		fleet.LabelEnvironment: "staging", fleet.KubeLabelAccount: account, fleet.KubeLabelRegion: region,
	}}
}

func (s *apiserver) apply(task fleet.Task, doc fleet.KubeDocument) (object, fleet.Outcome) {
	old, there := s.objects[doc.Namespace+"/"+doc.Name]
	if task.UID != "" && (!there || old.uid != task.UID) {
		return old, replan("%s is another object", doc.Name)
	}
	o := old
	if !there {
		s.uids++
		o = object{namespace: doc.Namespace, name: doc.Name, uid: fmt.Sprint("uid", s.uids)}
	}
	o.labels, o.revision, o.spec = maps.Clone(doc.Labels), doc.Revision, maps.Clone(doc.Spec)
	if s.admits != nil {
		s.admits(o.spec)
	}
	s.writes = append(s.writes, "apply "+doc.Name)
	if there && reflect.DeepEqual(o, old) {
		return o, echo(o, doc)
	}
	o = s.store(o, false)
	if o.generation != old.generation || o.uid != old.uid {
		s.controls(o)
	}
	return o, echo(o, doc)
}

// echo is the answer to an apply: what the object then is, and what of it is otherwise.
func echo(o object, doc fleet.KubeDocument) fleet.Outcome {
	out, is := done(""), o.shown().State()
	out.Applied = &is
	for _, path := range slices.Sorted(maps.Keys(doc.Spec)) {
		if want, have := fmt.Sprint(doc.Spec[path]), fmt.Sprint(o.spec[path]); want != have {
			out.Altered = append(out.Altered, fleet.Alteration{Path: "spec." + path, Sent: want, Became: have})
		}
	}
	return out
}

// controls is what the controller does about a spec: a pass that had begun before says once
// more what it said; then one notices, and one finds it rolled out. After that it says that
// it is alive.
func (s *apiserver) controls(o object) {
	pass := func(after time.Duration, write func(*object)) {
		time.AfterFunc(after, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			now, there := s.objects[o.namespace+"/"+o.name]
			if there && now.uid == o.uid && now.generation == o.generation {
				write(&now)
				now.beat++
				s.store(now, false)
			}
		})
	}
	pass(s.notice/3, func(*object) {})
	pass(s.notice, func(now *object) { now.phase = "Pending" })
	pass(max(s.rollOut, s.notice+time.Millisecond), func(now *object) {
		now.observed, _ = now.spec["image"].(string)
		now.phase = phaseReady
		var alive func(*object)
		alive = func(*object) { pass(30*time.Second, alive) }
		alive(now)
	})
}

func (s *apiserver) drop(task fleet.Task, doc fleet.KubeDocument) fleet.Outcome {
	o, there := s.objects[doc.Namespace+"/"+doc.Name]
	if !there {
		return done("")
	}
	if o.uid != task.UID {
		return replan("%s is another object", doc.Name)
	}
	s.writes = append(s.writes, "delete "+doc.Name)
	s.store(o, true)
	return done("")
}

func unreadable(why fleet.Reason) fleet.Outcome {
	return fleet.Outcome{Class: fleet.ClassTransient, Reason: why, Answered: why != fleet.ReasonEndpointUnreachable, Message: "no answer"}
}

// change runs a task, and returns what the object then is.
func (s *apiserver) change(ctx context.Context, key fleet.ServerKey, task fleet.Task, doc fleet.KubeDocument) (object, fleet.Outcome) {
	s.mu.Lock()
	took, silent, refuse := s.took, s.silent, s.refuse
	s.mu.Unlock()
	if silent != "" {
		return object{}, unreadable(silent)
	}
	if refuse != nil {
		if o := refuse(key, task, doc); o != nil {
			return object{}, *o
		}
	}
	if err := rest(ctx, took); err != nil {
		return object{}, unanswered(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch task.Kind {
	case fleet.TaskApply:
		return s.apply(task, doc)
	case fleet.TaskDelete:
		return object{}, s.drop(task, doc)
	default:
		return object{}, *refused(fleet.ReasonInvalid)
	}
}

// all returns a namespace's objects by name, and the number of changes that they show.
func (s *apiserver) all(namespace string) (map[string]object, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := map[string]object{}
	for _, o := range s.objects {
		if o.namespace == namespace {
			list[o.name] = o
		}
	}
	return list, len(s.log)
}

// names are those of all objects, sorted.
func (s *apiserver) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []string
	for _, o := range s.objects {
		list = append(list, o.name)
	}
	slices.Sort(list)
	return list
}

func (s *apiserver) silence() fleet.Reason { s.mu.Lock(); defer s.mu.Unlock(); return s.silent }
