package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const (
	// A server that was away is asked again after at most 7.5 s.
	backoffMin    = 300 * time.Millisecond
	backoffMax    = 5 * time.Second
	backoffJitter = 0.5

	answerWithin = 10 * time.Second // of a watch: that it begins; of a page of a list: that it is there
	pageSize     = 500
	schemaEvery  = 30 * time.Second // while it lacks a field
	schemaLag    = 2 * time.Second  // until a server publishes the schema of a changed definition
)

// Watch keeps what Observe shows of a namespace up to date until ctx ends. It calls
// changed with the name of an instance of which something that Observe shows has
// changed, and with "" when that may be so of all: after the first list, when the schema
// changed, and when reading begins or ceases to fail, or fails for another reason. There
// is one Watch of a namespace at a time.
func (c *Cluster) Watch(ctx context.Context, namespace string, changed func(name string)) {
	cached := c.cache(namespace)
	cached.notify(changed)
	ctx, cancel := context.WithCancel(ctx)
	r := &reader{c: c, cache: cached, namespace: namespace, watching: make(chan struct{}, 1)}
	r.background.Go(func() { r.followSchema(ctx) })
	defer func() {
		cancel()
		r.background.Wait()
		cached.notify(nil)
	}()
	// A watch that also streams what there is would be one call less; a list tells
	// apart what is refused.
	lw := cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{ListWithContextFunc: r.list, WatchFuncWithContext: r.watch}, plainLists{})
	// What goes wrong is shown by Observe, and once by the log, not with every attempt.
	quiet := logr.Discard()
	reflector := cache.NewReflectorWithOptions(lw, nil, cached, cache.ReflectorOptions{
		Logger: &quiet, Name: c.cfg.Name + "/" + namespace, TypeDescription: gvr.String(),
		Backoff: &wait.Backoff{Duration: backoffMin, Factor: 2, Cap: backoffMax, Steps: 10, Jitter: backoffJitter},
	})
	reflector.WatchListPageSize = pageSize
	reflector.RunWithContext(klog.NewContext(ctx, quiet))
}

type plainLists struct{}

// IsWatchListSemanticsUnSupported is how client-go asks.
func (plainLists) IsWatchListSemanticsUnSupported() bool { return true }

// reader reads a namespace into its cache.
type reader struct {
	c         *Cluster
	cache     *namespaceCache
	namespace string
	watching  chan struct{} // a watch was established
	warned    bool          // that the namespace cannot be told from others
	// background are the streams, and what follows the schema.
	background sync.WaitGroup
}

// list reads one page. It is always what the server itself holds now: one that follows
// a change of leader must not show what was before its predecessor's last write.
func (r *reader) list(ctx context.Context, opts metav1.ListOptions) (runtime.Object, error) {
	if opts.Continue == "" {
		opts.ResourceVersion, opts.ResourceVersionMatch = "", ""
		if r.c.served.Load() == nil { // what it lacks must be, before anything is compared
			r.c.readSchema(ctx)
		}
		r.cache.listBegins()
	}
	bounded, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if opts.Continue == "" {
		if err := r.identify(bounded); err != nil {
			return nil, err
		}
	}
	page, err := r.c.instances(r.namespace).List(bounded, opts)
	if err != nil {
		r.failed(ctx, err)
		return nil, err
	}
	out := &metainternal.List{}
	out.ResourceVersion, out.Continue = page.GetResourceVersion(), page.GetContinue()
	out.RemainingItemCount = page.GetRemainingItemCount()
	for i := range page.Items {
		out.Items = append(out.Items, r.c.owners.object(&page.Items[i]))
	}
	return out, nil
}

// watch opens the watch. It answers as soon as it stands, whether or not there is news: what
// has happened since the last one was cut, it cannot tell from nothing at all. Therefore a
// list comes first, unless the last one ended when it was to end: then it just goes on.
func (r *reader) watch(outer context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	if !r.cache.state().listed {
		return nil, apierrors.NewResourceExpired("the watch ended; what has happened since is listed")
	}
	ctx, cancel := context.WithCancel(outer)
	timer := time.AfterFunc(answerWithin, cancel)
	inner, err := r.c.instances(r.namespace).Watch(ctx, opts)
	if !timer.Stop() {
		if err == nil {
			inner.Stop()
		}
		err = fmt.Errorf("the watch was not answered within %s: %w", answerWithin, context.DeadlineExceeded)
	}
	if err != nil {
		cancel()
		r.failed(outer, err)
		// client-go would wait and watch again by itself, and only then wait and list.
		return nil, errors.New(err.Error())
	}
	end, recovered := r.cache.established(cancel)
	if recovered {
		r.c.log.Info("namespace is read again", "namespace", r.namespace)
	}
	select {
	case r.watching <- struct{}{}:
	default:
	}
	begun, events := time.Now(), make(chan watch.Event)
	out := watch.NewProxyWatcher(events)
	r.background.Go(func() {
		byServer := r.pass(ctx, inner.ResultChan(), events, out.StopChan())
		inner.Stop()
		cancel()
		// Known before anybody else knows that the watch has ended.
		end(byServer && opts.TimeoutSeconds != nil && inTime(time.Since(begun), *opts.TimeoutSeconds))
		close(events)
	})
	return out, nil
}

// inTime reports whether a watch that lasted so long ended because it was asked for so many
// seconds.
func inTime(lasted time.Duration, asked int64) bool {
	return lasted >= time.Duration(asked-1)*time.Second
}

// failed notes that a list or a watch failed. One that was given up says nothing, and
// neither does a version that is too old: what is there is listed again.
func (r *reader) failed(ctx context.Context, err error) {
	if ctx.Err() != nil || expired(err) {
		return
	}
	r.unreadable(r.c.readFailure(r.namespace, err))
}

func (r *reader) unreadable(f fleet.ReadFailure) {
	if r.cache.failed(f) {
		r.c.log.Warn("namespace cannot be read", "namespace", r.namespace, "reason", f.Reason, "error", f.Message)
	}
}

// followSchema reads the schema after each beginning of a watch, since a changed
// definition ends them all and is published a little later, and now and then while it
// lacks a field of a document.
func (r *reader) followSchema(ctx context.Context) {
	tick, again := time.NewTicker(schemaEvery), time.NewTimer(schemaLag)
	defer tick.Stop()
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.watching:
			again.Reset(schemaLag)
		case <-again.C:
		case <-tick.C:
			if !r.cache.state().lacking {
				continue
			}
		}
		r.c.readSchema(ctx)
	}
}

// pass hands events on, their objects reduced to what is kept of them, until the watch ends;
// byServer says who ended it.
func (r *reader) pass(ctx context.Context, from <-chan watch.Event, to chan<- watch.Event, stop <-chan struct{}) (byServer bool) {
	for {
		var e watch.Event
		select {
		case <-ctx.Done():
			return false
		case <-stop:
			return false
		case next, ok := <-from:
			if !ok {
				return true
			}
			e = next
		}
		if u, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Error {
			e.Object = r.c.owners.object(u)
		}
		select {
		case to <- e:
		case <-ctx.Done():
			return false
		case <-stop:
			return false
		}
	}
}
