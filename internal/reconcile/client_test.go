package reconcile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// client is a cluster as one kurad sees it: what its watches have shown it. It answers as
// internal/runtime/kubernetes does.
type client struct {
	server *apiserver
	k      *kurad

	mu         sync.Mutex
	namespaces map[string]*cache
}

type cache struct {
	listed  bool
	last    time.Time // that something was heard
	version int       // all changes up to here are in objects
	failure *fleet.ReadFailure
	objects map[string]object
	at      map[string]int                // by name: the version of the newest answer about it
	direct  map[string]time.Time          // by name: when the read began that showed it
	rolling map[string]bool               // by name: each beat is news
	effects map[string]map[int]effect     // of ours, by name: not seen yet
	echoes  map[string][]fleet.Alteration // of the last apply, by name
	nth     int
}

// effect is a change of ours that the watch has not shown yet.
type effect struct {
	begun   time.Time
	version int // 0: under way
}

var (
	errSilent   = errors.New("the server does not answer")
	errStranger = errors.New("the namespace is another one")
)

// expected is the UID that is stored of the namespaces.
func (c *client) expected() string {
	for _, id := range c.k.w.view.Identities() {
		return id.UID
	}
	return ""
}

func (c *client) namespaceUID() string {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	return c.server.uid
}

// stranger reports whether the namespaces are others than those that were observed (K9).
func (c *client) stranger() bool { e := c.expected(); return e != "" && e != c.namespaceUID() }

func (c *client) Unidentified(namespace string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.namespace(namespace).listed || c.expected() != "" {
		return ""
	}
	return c.namespaceUID()
}

func (c *client) namespace(name string) *cache {
	n := c.namespaces[name]
	if n == nil {
		n = &cache{objects: map[string]object{}, at: map[string]int{}, direct: map[string]time.Time{}, rolling: map[string]bool{}, effects: map[string]map[int]effect{}, echoes: map[string][]fleet.Alteration{}}
		c.namespaces[name] = n
	}
	return n
}

// read asks the server, unless this kurad is dead.
func (c *client) read(what string, do func()) error {
	if c.k.dead.Load() {
		return errDead
	}
	ask := func() error {
		if c.stranger() {
			return errStranger
		}
		c.server.mu.Lock()
		c.server.asked[what]++
		silent := c.server.silent
		c.server.mu.Unlock()
		if silent != "" {
			return errSilent
		}
		do()
		return nil
	}
	if hook := c.k.options.onRead; hook != nil {
		return hook(ask)
	}
	return ask()
}

func (c *client) Watch(ctx context.Context, namespace string, changed func(string)) {
	for pause := time.Second; ctx.Err() == nil; pause = min(2*pause, 10*time.Second) {
		var objects map[string]object
		var version int
		err := c.read("list", func() { objects, version = c.server.all(namespace) })
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			c.failed(namespace, changed)
			_ = rest(ctx, pause)
			continue
		}
		c.listed(namespace, objects, version)
		changed("")
		pause = time.Second
		c.follow(ctx, namespace, changed)
		if ctx.Err() == nil {
			c.failed(namespace, changed)
		}
	}
}

func (c *client) failed(namespace string, changed func(string)) {
	c.mu.Lock()
	n := c.namespace(namespace)
	c.server.mu.Lock()
	why := c.server.silent
	c.server.mu.Unlock()
	if c.stranger() {
		why = fleet.ReasonClusterChanged
	}
	if why == "" {
		why = fleet.ReasonRuntimeError
	}
	f := fleet.ReadFailure{Reason: why, Message: "no answer", Since: time.Now(), Count: 1}
	news := n.failure == nil || n.failure.Reason != why
	if n.failure != nil {
		f.Since, f.Count = n.failure.Since, n.failure.Count+1
	}
	n.failure = &f
	c.mu.Unlock()
	if news {
		changed("")
	}
}

func (c *client) listed(namespace string, objects map[string]object, version int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.namespace(namespace)
	n.listed, n.last, n.failure, n.version, n.objects = true, time.Now(), nil, version, objects
	clear(n.at)
	clear(n.direct)
}

// follow takes changes over until the server falls silent.
func (c *client) follow(ctx context.Context, namespace string, changed func(string)) {
	uid := c.namespaceUID()
	for {
		c.mu.Lock()
		version := c.namespace(namespace).version
		c.mu.Unlock()
		c.server.mu.Lock()
		bell, lag, silent := c.server.bell, c.server.lag, c.server.silent
		log := slices.Clone(c.server.log[version:])
		c.server.mu.Unlock()
		if silent != "" || c.k.dead.Load() || c.stranger() || uid != c.namespaceUID() {
			return
		}
		for _, e := range log {
			if rest(ctx, time.Until(e.at.Add(lag))) != nil {
				return
			}
			if c.saw(namespace, e) {
				changed(e.to.name)
			}
		}
		if len(log) > 0 {
			continue
		}
		select {
		case <-bell:
		case <-ctx.Done():
			return
		}
	}
}

// saw takes a change over and says whether what is shown changed.
func (c *client) saw(namespace string, e change) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.namespace(namespace)
	n.version, n.last = e.to.version, time.Now()
	if e.to.namespace != namespace {
		return false
	}
	waited := n.waits(e.to.name)
	n.settle(e.to.name)
	news := waited != n.waits(e.to.name)
	if e.to.version <= n.at[e.to.name] {
		return news // an answer was newer
	}
	delete(n.direct, e.to.name)
	was, there := n.objects[e.to.name]
	if e.gone {
		delete(n.objects, e.to.name)
		return there || news
	}
	n.objects[e.to.name] = e.to
	if was.version = e.to.version; !n.rolling[e.to.name] {
		was.beat, was.generation = e.to.beat, e.to.generation
	}
	return !there || news || !reflect.DeepEqual(was, e.to)
}

func (n *cache) waits(name string) bool { return len(n.effects[name]) > 0 }

// settle forgets the effects of ours that the watch has shown.
func (n *cache) settle(name string) {
	for id, e := range n.effects[name] {
		if e.version > 0 && e.version <= n.version {
			delete(n.effects[name], id)
		}
	}
}

func (c *client) Refresh(ctx context.Context, namespace, name string) error {
	begun := time.Now().UTC()
	var o object
	var there bool
	var version int
	err := c.read("get", func() {
		o, there = c.server.get(namespace, name)
		_, version = c.server.all(namespace)
	})
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.namespace(namespace)
	n.at[name], n.direct[name] = version, begun
	delete(n.objects, name)
	if there {
		n.objects[name] = o
	}
	for id, e := range n.effects[name] {
		if e.version > 0 { // it was over before
			delete(n.effects[name], id)
		}
	}
	return ctx.Err()
}

func (c *client) Execute(ctx context.Context, key fleet.ServerKey, task fleet.Task, doc fleet.KubeDocument) fleet.Outcome {
	c.mu.Lock()
	n := c.namespace(doc.Namespace)
	n.nth++
	id := n.nth
	if n.effects[doc.Name] == nil {
		n.effects[doc.Name] = map[int]effect{}
	}
	begun := time.Now().UTC()
	n.effects[doc.Name][id] = effect{begun: begun}
	c.mu.Unlock()
	execute := func() fleet.Outcome {
		if c.k.dead.Load() {
			return unanswered(errDead)
		}
		if c.stranger() {
			return unreadable(fleet.ReasonClusterChanged)
		}
		_, o := c.server.change(ctx, key, task, doc)
		return o
	}
	c.k.tasks.Add(1)
	var out fleet.Outcome
	if hook := c.k.options.onTask; hook != nil {
		out = hook(key, task, execute)
	} else {
		out = execute()
	}
	_, version := c.server.all(doc.Namespace)
	c.mu.Lock()
	defer c.mu.Unlock()
	n.effects[doc.Name][id] = effect{begun, version}
	n.settle(doc.Name)
	if out.Applied != nil {
		n.echoes[doc.Name] = out.Altered
	}
	return out
}

func (c *client) Observe(key fleet.ServerKey, doc fleet.KubeDocument, known fleet.KubeKnown) fleet.InstanceObservation {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.namespace(doc.Namespace)
	n.rolling[doc.Name] = known.RollingOut
	o := fleet.InstanceObservation{}
	if n.failure != nil {
		f := *n.failure
		o.Unreadable = &f
	}
	if !n.listed {
		return o
	}
	o.Begun = time.Now().UTC()
	if n.failure != nil {
		o.Begun = n.last.UTC()
	}
	if at, ok := n.direct[doc.Name]; ok {
		o.Begun, o.Direct = at, true
	}
	for _, e := range n.effects[doc.Name] {
		if before := e.begun.Add(-time.Nanosecond); before.Before(o.Begun) {
			o.Begun, o.Direct = before, false
		}
	}
	if live, ok := n.objects[doc.Name]; ok {
		if echo, ok := n.echoes[doc.Name]; ok {
			known.Altered = echo
		}
		i := live.compare(key, doc, known)
		o.Resource = &i
	}
	return o
}

// shown is an object, compared with nothing.
func (o object) shown() fleet.KubeInstance {
	image, _ := o.spec["image"].(string)
	i := fleet.KubeInstance{
		Namespace: o.namespace, Name: o.name, UID: o.uid, Account: o.labels[fleet.KubeLabelAccount], Region: o.labels[fleet.KubeLabelRegion],
		Deleting: o.deleting, SpecImage: image, ObservedImage: o.observed, Phase: o.phase, Revision: o.revision,
		Generation: o.generation, Written: fmt.Sprint(o.beat, o.phase, o.observed),
	}
	if env := o.labels[fleet.LabelEnvironment]; env == "" {
		i.Foreign = fleet.NotByKurad
	} else if env != "staging" {
		i.Foreign = "environment " + env
	}
	return i
}

// compare is what the document makes of an object (P14).
func (o object) compare(key fleet.ServerKey, doc fleet.KubeDocument, known fleet.KubeKnown) fleet.KubeInstance {
	i := o.shown()
	if i.Foreign == fleet.NotByKurad && known.Adopted != nil && known.Adopted.UID == o.uid {
		i.Foreign, i.Adopted, i.Account, i.Region = "", true, key.Account, key.Region
	}
	if i.Foreign == "" && (i.Account != key.Account || i.Region != key.Region) {
		i.Foreign = "server " + i.Account + "/" + i.Region
	}
	differ := func(path string, have, want any) {
		a, _ := json.Marshal(have)
		b, _ := json.Marshal(want)
		if string(a) != string(b) {
			i.Differs = append(i.Differs, fleet.FieldDifference{Path: path, Have: string(a), Want: string(b)})
		}
	}
	for name, want := range doc.Labels {
		differ(fmt.Sprintf("metadata.labels[%s]", name), o.labels[name], want)
	}
	for name, want := range doc.Spec {
		a := fleet.Alteration{Path: "spec." + name, Sent: fmt.Sprint(want), Became: fmt.Sprint(o.spec[name])}
		if slices.Contains(known.Altered, a) {
			i.Altered = append(i.Altered, fleet.FieldDifference{Path: a.Path, Have: a.Became, Want: a.Sent})
			continue
		}
		differ("spec."+name, o.spec[name], want)
	}
	slices.SortFunc(i.Differs, func(a, b fleet.FieldDifference) int { return strings.Compare(a.Path, b.Path) })
	return i
}

func (c *client) Listing(namespace string) fleet.KubeListing {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.namespace(namespace)
	l := fleet.KubeListing{Cluster: "prod", Namespace: namespace}
	if n.failure != nil {
		f := *n.failure
		l.Unreadable = &f
	}
	if n.listed {
		l.Begun = n.last
	}
	for _, o := range n.objects {
		l.Instances = append(l.Instances, o.shown())
	}
	slices.SortFunc(l.Instances, func(a, b fleet.KubeInstance) int { return strings.Compare(a.Name, b.Name) })
	return l
}
