package kubecontroller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

// FieldManager is the name under which the controller writes.
const FieldManager = "kura-controller"

const (
	defaultNotice  = 200 * time.Millisecond
	defaultRollOut = 100 * time.Millisecond
	defaultResync  = 30 * time.Second
	again          = 200 * time.Millisecond // after what failed
	workers        = 4
)

var instances = schema.GroupVersionResource{Group: fleet.KubeGroup, Version: fleet.KubeVersion, Resource: fleet.KubeResource}

// Config says for what the controller stands.
type Config struct {
	REST *rest.Config
	// Namespace is whose instances it looks after; "": all.
	Namespace string
	// CA signs the certificates of the hosts.
	CA *world.CA
	// DNS gets the hosts; nil: somebody else publishes them.
	DNS *world.DNS
	// Notice is how long a change waits for a pass that reads it; 0: 200 ms.
	Notice time.Duration
	// RollOut is how long one takes; 0: 100 ms.
	RollOut time.Duration
	// Resync is the time between two writes of lastReconciledAt; 0: 30 s.
	Resync time.Duration
}

// Controller is a running one.
type Controller struct {
	config  Config
	client  dynamic.NamespaceableResourceInterface
	queue   workqueue.TypedDelayingInterface[key]
	ingress *ingress
	stop    context.CancelFunc
	running sync.WaitGroup

	mu        sync.Mutex
	objects   map[key]*unstructured.Unstructured // as the watch tells them
	states    map[key]*state                     // what runs for them
	behaviour map[key]Behaviour                  // the zero key: of all others
}

// key names an instance.
type key struct{ namespace, name string }

// Start runs a controller until Close. Where the API server does not answer, or does not
// know the type, it goes on trying.
func Start(c Config) (*Controller, error) {
	if c.Notice == 0 {
		c.Notice = defaultNotice
	}
	if c.RollOut == 0 {
		c.RollOut = defaultRollOut
	}
	if c.Resync == 0 {
		c.Resync = defaultResync
	}
	config := rest.CopyConfig(c.REST)
	config.QPS = -1 // it stands for many pods
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("start the controller: %w", err)
	}
	k := &Controller{
		config: c, client: client.Resource(instances), queue: workqueue.NewTypedDelayingQueue[key](),
		objects: map[key]*unstructured.Unstructured{}, states: map[key]*state{}, behaviour: map[key]Behaviour{},
	}
	if k.ingress, err = startIngress(c.CA, c.DNS); err != nil {
		k.queue.ShutDown()
		return nil, fmt.Errorf("start the controller: %w", err)
	}
	ctx, stop := context.WithCancel(context.Background())
	k.stop = stop
	k.running.Go(func() { k.follow(ctx) })
	for range workers {
		k.running.Go(func() { k.work(ctx) })
	}
	return k, nil
}

// Close ends the controller and what it serves; the instances stay as they are.
func (k *Controller) Close() error {
	k.stop()
	k.queue.ShutDown()
	k.running.Wait()
	return k.ingress.close()
}

// Address is host:port at which every host of every instance is served.
func (k *Controller) Address() string { return k.ingress.address }

// follow keeps objects as they are on the server.
func (k *Controller) follow(ctx context.Context) {
	for ctx.Err() == nil {
		if err := k.watch(ctx); err == nil {
			continue
		}
		timer := time.NewTimer(again)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
		}
	}
}

// watch lists, and hears what changes until the watch ends.
func (k *Controller) watch(ctx context.Context) error {
	list, err := k.client.Namespace(k.config.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	k.replace(list.Items)
	w, err := k.client.Namespace(k.config.Namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			return errors.New("the watch has failed")
		}
		object, ok := e.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		of := key{object.GetNamespace(), object.GetName()}
		k.mu.Lock()
		if e.Type == watch.Deleted {
			delete(k.objects, of)
		} else {
			k.objects[of] = object
		}
		k.mu.Unlock()
		k.queue.Add(of)
	}
	return nil
}

// replace takes over a list. What is not in it is gone.
func (k *Controller) replace(list []unstructured.Unstructured) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for of := range k.objects {
		k.queue.Add(of)
	}
	clear(k.objects)
	for i := range list {
		of := key{list[i].GetNamespace(), list[i].GetName()}
		k.objects[of] = &list[i]
		k.queue.Add(of)
	}
}

func (k *Controller) work(ctx context.Context) {
	for {
		of, ended := k.queue.Get()
		if ended {
			return
		}
		if next := k.reconcile(ctx, of); next > 0 {
			k.queue.AddAfter(of, next)
		}
		k.queue.Done(of)
	}
}

// nested returns a string of an object; "" where it is not there.
func nested(o map[string]any, path ...string) string {
	s, _, _ := unstructured.NestedString(o, path...)
	return s
}
