package kubernetes

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apischema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A namespace is told apart by its UID (K9). Every list begins with a look at it, and so does
// every effect: what answers under a kubeconfig's address may have become another cluster,
// and a namespace that is made anew has lost all that was in it. What is left is the time of
// one call between that look and the effect, over one client's connections; in it only
// something new could be made in the wrong place, for what is there is changed and deleted by
// its own UID.

var namespaces = apischema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// NamespaceUID asks the server which namespace bears the name; "" where none does.
func (c *Cluster) NamespaceUID(ctx context.Context, namespace string) (string, error) {
	u, err := c.client.Resource(namespaces).Get(ctx, namespace, metav1.GetOptions{})
	if st := statusOf(err); apierrors.IsNotFound(err) && st.Details != nil && st.Details.Kind == namespaces.Resource {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read which namespace it is: %w", err)
	}
	return string(u.GetUID()), nil
}

// Expect says which namespace the name stands for; "": that is not known yet. Another one of
// the name is read no more, and nothing is done in it.
func (c *Cluster) Expect(namespace, uid string) { c.cache(namespace).expect(uid) }

// Unidentified returns the UID of a namespace that is read and of which nobody has said that
// it is the one that is expected.
func (c *Cluster) Unidentified(namespace string) (uid string) {
	if s := c.cache(namespace).state(); s.expected == "" {
		return s.uid
	}
	return ""
}

// unexpected says that the namespace is not the expected one; nil: it is, or none is expected.
func (c *Cluster) unexpected(namespace, uid, expected string) *fleet.ReadFailure {
	where := fmt.Sprintf("cluster %q, namespace %q", c.cfg.Name, namespace)
	switch {
	case expected == "" || uid == expected:
		return nil
	case uid == "":
		return &fleet.ReadFailure{Reason: fleet.ReasonNamespaceGone, Message: fmt.Sprintf("%s: it is not there; the one that was observed so far has the UID %s: correct the kubeconfig, or, if it is gone for good, run \"kurad cluster accept %s\"", where, expected, c.cfg.Name)}
	}
	return &fleet.ReadFailure{Reason: fleet.ReasonClusterChanged, Message: fmt.Sprintf("%s: it has the UID %s, and the one that was observed so far has %s: this is another cluster, or the namespace was made anew; nothing is done there. Correct the kubeconfig, or, if it is meant, run \"kurad cluster accept %s\"", where, uid, expected, c.cfg.Name)}
}

// checkIdentity asks the server whether the namespace is the expected one.
func (c *Cluster) checkIdentity(ctx context.Context, namespace string) *fleet.ReadFailure {
	cache := c.cache(namespace)
	expected := cache.state().expected
	if expected == "" {
		return nil
	}
	uid, err := c.NamespaceUID(ctx, namespace)
	if err != nil {
		f := c.readFailure(namespace, err)
		return &f
	}
	f := c.unexpected(namespace, uid, expected)
	if f != nil {
		cache.failed(*f)
		cache.hangUp() // the watch may stand where it stood: what is listed next says which it is
	}
	return f
}

// identify looks which namespace is about to be listed. Where kurad may not do so, and has not
// known it before, it is listed all the same: an older Role lacks that right.
func (r *reader) identify(ctx context.Context) error {
	uid, err := r.c.NamespaceUID(ctx, r.namespace)
	switch {
	case err != nil && apierrors.IsForbidden(err) && r.cache.state().expected == "":
		if !r.warned {
			r.warned = true
			r.c.log.Warn("kurad may not read which namespace this is, and could not tell it from one of the same name in another cluster: give its account the right to get namespaces (examples/kubernetes has the Role)", "namespace", r.namespace)
		}
		uid = ""
	case err != nil:
		r.failed(ctx, err)
		return err
	}
	if f := r.c.unexpected(r.namespace, uid, r.cache.identified(uid)); f != nil {
		r.unreadable(*f)
		return fmt.Errorf("%s", f.Message)
	}
	return nil
}
