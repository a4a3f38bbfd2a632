package containers

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/containerd/errdefs/pkg/errhttp"
	"github.com/moby/moby/api/types/jsonstream"
	"github.com/moby/moby/client"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// Statuses that are no HTTP answer.
const (
	unanswered = 0 // nothing came back: the effect may still land
	unreadable = 1 // something came back that is no answer of this API
)

// classify is the one table of failure classes of the container runtime
// (docs/design/rules.md, below P23): what the answer to a change of that kind means, or to a
// look, whose kind is "". A missing object is for the task to interpret before it comes here.
func classify(kind fleet.TaskKind, status int) (fleet.Class, fleet.Reason) {
	switch status {
	case unanswered:
		return fleet.ClassTransient, fleet.ReasonEndpointUnreachable
	case http.StatusUnauthorized:
		return fleet.ClassTransient, fleet.ReasonRuntimeRefused
	case http.StatusForbidden:
		return fleet.ClassRefused, fleet.ReasonForbidden
	case unreadable, http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fleet.ClassTransient, fleet.ReasonRuntimeError
	}
	reason := fleet.ReasonRuntimeError
	switch kind {
	// Podman answers 500 with the reason to whatever it cannot do, Docker 4xx or 500.
	case fleet.TaskPull:
		return fleet.ClassRefused, fleet.ReasonImagePullFailed
	case fleet.TaskCreate:
		return fleet.ClassRefused, fleet.ReasonCreateFailed
	case fleet.TaskStart:
		return fleet.ClassRefused, fleet.ReasonStartFailed
	case fleet.TaskStop:
		reason = fleet.ReasonStopFailed
	case fleet.TaskRemove, fleet.TaskRemoveVolumes:
		reason = fleet.ReasonRemoveFailed
	case fleet.TaskRename, fleet.TaskApply, fleet.TaskDelete, fleet.TaskPublish, fleet.TaskWithdraw, fleet.TaskJoin, fleet.TaskLeave:
	}
	// A healthy engine does not refuse these: what cannot be asked so is refused, everything
	// else is tried again.
	if status == http.StatusBadRequest || status == http.StatusUnprocessableEntity {
		return fleet.ClassRefused, fleet.ReasonInvalid
	}
	return fleet.ClassTransient, reason
}

// ReadFailure tells why a List did not answer (P2). Since and Count are the caller's.
func ReadFailure(err error) fleet.ReadFailure {
	f := fleet.ReadFailure{Reason: fleet.ReasonRuntimeError, Message: shorten(err.Error())}
	switch statusOf(err) {
	case unanswered:
		f.Reason = fleet.ReasonEndpointUnreachable
	case http.StatusUnauthorized, http.StatusForbidden:
		f.Reason = fleet.ReasonRuntimeRefused
	}
	return f
}

// statusOf returns the HTTP status that err stands for, unanswered or unreadable.
func statusOf(err error) int {
	if runtime.RefusedByTLS(err) {
		return http.StatusUnauthorized
	}
	for status := http.StatusBadRequest; status < 600; status++ {
		if errors.Is(err, errhttp.ToNative(status)) {
			return status
		}
	}
	if _, ok := errors.AsType[*jsonstream.Error](err); ok {
		return http.StatusInternalServerError // said within a stream that began well
	}
	_, isNet := errors.AsType[net.Error](err)
	switch {
	case isNet, client.IsErrConnectionFailed(err),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return unanswered
	}
	return unreadable
}

// maxMessage bounds what is stored and shown of an engine's answer.
const maxMessage = 400

// shorten makes an engine's answer fit to be shown, without the client's preface.
func shorten(s string) string {
	return fleet.Shorten(strings.ReplaceAll(s, "Error response from daemon: ", ""), maxMessage)
}
