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
)

// operation is what was asked of the engine.
type operation string

const (
	opInspect operation = "inspect"
	opPull    operation = "pull"
	opCreate  operation = "create"
	opStart   operation = "start"
	opStop    operation = "stop"
	opRename  operation = "rename"
	opRemove  operation = "remove"
)

// Statuses that are no HTTP answer.
const (
	unanswered = 0 // nothing came back: the effect may still land
	unreadable = 1 // something came back that is no answer of this API
)

// meaning is what an answer to a change means.
type meaning struct {
	class  fleet.Class
	reason fleet.Reason
}

// classify is the one table of failure classes of the container runtime
// (behaviour.md, "Failure classes"). A missing object is for the task to interpret
// before it comes here.
func classify(op operation, status int) meaning {
	switch status {
	case unanswered:
		return meaning{fleet.ClassTransient, fleet.ReasonEndpointUnreachable}
	case http.StatusUnauthorized:
		return meaning{fleet.ClassTransient, fleet.ReasonRuntimeRefused}
	case http.StatusForbidden:
		return meaning{fleet.ClassRefused, fleet.ReasonForbidden}
	case unreadable, http.StatusRequestTimeout, http.StatusTooManyRequests,
		http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return meaning{fleet.ClassTransient, fleet.ReasonRuntimeError}
	}
	switch op {
	// Podman answers 500 with the reason to whatever it cannot do, Docker 4xx or 500.
	case opPull:
		return meaning{fleet.ClassRefused, fleet.ReasonImagePullFailed}
	case opCreate:
		return meaning{fleet.ClassRefused, fleet.ReasonCreateFailed}
	case opStart:
		return meaning{fleet.ClassRefused, fleet.ReasonStartFailed}
	case opStop:
		return sorted(status, fleet.ReasonStopFailed)
	case opRemove:
		return sorted(status, fleet.ReasonRemoveFailed)
	case opInspect, opRename:
		return sorted(status, fleet.ReasonRuntimeError)
	default:
		return meaning{fleet.ClassTransient, fleet.ReasonRuntimeError}
	}
}

// sorted is the meaning of an answer to an operation that a healthy engine does not
// refuse: what cannot be asked so is refused, everything else is tried again.
func sorted(status int, reason fleet.Reason) meaning {
	switch status {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return meaning{fleet.ClassRefused, fleet.ReasonInvalid}
	default:
		return meaning{fleet.ClassTransient, reason}
	}
}

// ReadFailure tells why a List did not answer (P2). Since and Count are the caller's.
func ReadFailure(err error) fleet.ReadFailure {
	f := fleet.ReadFailure{Reason: fleet.ReasonRuntimeError, Message: shorten(err.Error())}
	if refusedByTLS(err) {
		f.Reason = fleet.ReasonRuntimeRefused
		return f
	}
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

// refusedByTLS reports whether the engine ended the handshake with an alert: it does not
// accept our certificate, or asks for one. What of its own certificate does not verify
// is our refusal, and it counts as not reached.
func refusedByTLS(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// maxMessage bounds what is stored and shown of an engine's answer.
const maxMessage = 400

// shorten makes an engine's answer fit to be shown: one line, without the client's
// preface, cut in the middle, since its beginning and its end say most.
func shorten(s string) string {
	s = strings.ReplaceAll(s, "Error response from daemon: ", "")
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > maxMessage {
		s = string(r[:maxMessage/2]) + " … " + string(r[len(r)-maxMessage/2:])
	}
	return s
}
