package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// meaning is what an answer to a change means.
type meaning struct {
	class  fleet.Class
	reason fleet.Reason
	advice string // the next step, where it is not to wait
}

const (
	advisePermission = "give kurad's account the right to do so (examples/kubernetes has the Role)"
	adviseDefinition = "install its CustomResourceDefinition; what was last seen stays as it was"
	adviseConflict   = "take the field out of the region or out of what applies it there, or set force_conflicts = true in the region's kubernetes block to take it over"
)

// classify is the one table of failure classes of the Kubernetes runtime
// (docs/design/rules.md, below P23). name is of the object that was to be changed.
func classify(err error, name string) meaning {
	transient := func(r fleet.Reason) meaning { return meaning{class: fleet.ClassTransient, reason: r} }
	refused := func(r fleet.Reason, advice string) meaning { return meaning{fleet.ClassRefused, r, advice} }
	st := statusOf(err)
	switch {
	case st == nil && runtime.RefusedByTLS(err):
		return transient(fleet.ReasonRuntimeRefused)
	case st == nil:
		return transient(fleet.ReasonEndpointUnreachable)
	case conflicts(st):
		return refused(fleet.ReasonFieldConflict, adviseConflict)
	case undeclared(st):
		return refused(fleet.ReasonInvalid, "upgrade the CustomResourceDefinition, or let kurad read /openapi/v3 (ClusterRole system:discovery), so that it leaves out what the schema lacks")
	case untyped(st):
		return refused(fleet.ReasonInvalid, "write a value of the type that the schema asks for")
	case terminating(st):
		return meaning{fleet.ClassTransient, fleet.ReasonTypeNotServed, adviseDefinition}
	}
	switch st.Code {
	case http.StatusUnauthorized:
		return transient(fleet.ReasonRuntimeRefused)
	case http.StatusForbidden:
		if hasCause(st, metav1.CauseType("NamespaceTerminating")) {
			return refused(fleet.ReasonNamespaceGone, "create the namespace again when it is gone, or name another one in the region")
		}
		return refused(fleet.ReasonForbidden, advisePermission)
	case http.StatusNotFound:
		switch {
		case st.Details != nil && st.Details.Kind == "namespaces":
			return refused(fleet.ReasonNamespaceGone, "create the namespace, or name another one in the region")
		case absent(err, name):
			return transient(fleet.ReasonDrifted)
		default:
			return meaning{fleet.ClassTransient, fleet.ReasonTypeNotServed, adviseDefinition}
		}
	case http.StatusConflict:
		return transient(fleet.ReasonDrifted)
	case http.StatusUnprocessableEntity:
		// A UID in what is applied is a precondition; of another object it is also immutable.
		if st.Details != nil && len(st.Details.Causes) > 0 && !slices.ContainsFunc(st.Details.Causes, func(c metav1.StatusCause) bool { return c.Field != "metadata.uid" }) {
			return transient(fleet.ReasonDrifted)
		}
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusGone:
		return transient(fleet.ReasonRuntimeError)
	}
	if st.Code >= 400 && st.Code < 500 {
		return refused(fleet.ReasonInvalid, "change what the region or the server declares")
	}
	return transient(fleet.ReasonRuntimeError)
}

// readFailure tells why a list, a watch or a read of a namespace did not answer (P2).
func (c *Cluster) readFailure(namespace string, err error) fleet.ReadFailure {
	f := fleet.ReadFailure{Reason: fleet.ReasonRuntimeError}
	text, advice := shorten(err.Error()), ""
	st := statusOf(err)
	switch {
	case st == nil && runtime.RefusedByTLS(err):
		f.Reason = fleet.ReasonRuntimeRefused
	case st == nil:
		f.Reason = fleet.ReasonEndpointUnreachable
	case st.Code == http.StatusUnauthorized:
		f.Reason, advice = fleet.ReasonRuntimeRefused, "renew the credentials that kurad was given for it"
	case st.Code == http.StatusForbidden:
		f.Reason, advice = fleet.ReasonRuntimeRefused, advisePermission
	case st.Code == http.StatusNotFound:
		f.Reason, text = fleet.ReasonTypeNotServed, "it does not serve "+gvr.GroupResource().String()+" in version "+gvr.Version
		advice = adviseDefinition
	}
	f.Message = fmt.Sprintf("cluster %q, namespace %q: %s", c.cfg.Name, namespace, text)
	if advice != "" {
		f.Message += "; " + advice
	}
	return f
}

// statusOf returns what the server answered; nil: nothing came back.
func statusOf(err error) *metav1.Status {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return nil
	}
	st := answer.Status()
	return &st
}

// absent reports whether err says that this very object does not exist. A type that is
// not served answers 404 as well, and names nothing.
func absent(err error, name string) bool {
	st := statusOf(err)
	return st != nil && st.Code == http.StatusNotFound && st.Details != nil &&
		st.Details.Group == gvr.Group && st.Details.Kind == gvr.Resource && st.Details.Name == name
}

// expired reports whether err says that a version is too old to go on from.
func expired(err error) bool { return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) }

// conflicts reports whether other managers hold fields with other values.
func conflicts(st *metav1.Status) bool {
	return st != nil && st.Code == http.StatusConflict && hasCause(st, metav1.CauseTypeFieldManagerConflict)
}

func hasCause(st *metav1.Status, t metav1.CauseType) bool {
	return st.Details != nil && slices.ContainsFunc(st.Details.Causes, func(c metav1.StatusCause) bool { return c.Type == t })
}

// undeclared reports whether the schema lacks a field that was applied, or created.
func undeclared(st *metav1.Status) bool {
	return st != nil && (st.Code == http.StatusInternalServerError && strings.Contains(st.Message, "field not declared in schema") ||
		st.Code == http.StatusBadRequest && strings.Contains(st.Message, `strict decoding error: unknown field "`))
}

// terminating reports whether the type is about to go: until then nothing is created.
func terminating(st *metav1.Status) bool {
	return (st.Code == http.StatusForbidden || st.Code == http.StatusMethodNotAllowed) &&
		strings.Contains(st.Message, "custom resource definition is terminating")
}

// untyped reports whether a value that was applied is of another type than the schema's.
func untyped(st *metav1.Status) bool {
	return st.Code == http.StatusInternalServerError && typeMismatch.MatchString(st.Message)
}

var typeMismatch = regexp.MustCompile(`\bexpected [\w ()]+, got `)

// answeredBy reports whether nothing of a change can land any more: the server answered,
// or was never sent it.
func answeredBy(err error) bool {
	if statusOf(err) != nil || runtime.RefusedByTLS(err) {
		return true
	}
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial" || strings.Contains(err.Error(), "client rate limiter Wait returned an error") &&
		(errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled))
}
