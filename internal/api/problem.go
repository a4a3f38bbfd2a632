package api

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// ContentTypeProblem is the media type of a Problem.
const ContentTypeProblem = "application/problem+json"

// Codes of the API itself, besides those of the domain.
const (
	// CodeNoRoute says that the daemon has no such route: it is older than its client.
	// It is not not_found, which speaks of an object.
	CodeNoRoute fleet.Code = "no_such_route"
	// CodeWrongEnvironment says that the request is for another environment.
	CodeWrongEnvironment fleet.Code = "wrong_environment"
	// CodeCursorExpired says that the list of a page is no longer kept: list again.
	CodeCursorExpired fleet.Code = "cursor_expired"
	// CodeRateLimited says that too many logins from the client's address failed, or that its
	// token has used up a share: try again after Retry-After.
	CodeRateLimited fleet.Code = "rate_limited"
)

// Problem is an error on the wire (RFC 9457).
type Problem struct {
	Type      string             `json:"type"`
	Title     string             `json:"title"`
	Status    int                `json:"status"`
	Detail    string             `json:"detail"`
	Code      fleet.Code         `json:"code"`
	Errors    []fleet.FieldError `json:"errors,omitempty"`
	RequestID string             `json:"request_id,omitempty"`
}

// Status returns the HTTP status of an error code. An unknown code is a fault.
func Status(code fleet.Code) int {
	switch code {
	case fleet.CodeInvalid:
		return http.StatusUnprocessableEntity
	case fleet.CodeNotFound:
		return http.StatusNotFound
	case fleet.CodeConflict:
		return http.StatusConflict
	case fleet.CodePrecondition:
		return http.StatusPreconditionFailed
	case fleet.CodeUnauthorized:
		return http.StatusUnauthorized
	case fleet.CodeForbidden:
		return http.StatusForbidden
	case fleet.CodeTooLarge:
		return http.StatusRequestEntityTooLarge
	case fleet.CodeUnavailable:
		return http.StatusServiceUnavailable
	case fleet.CodeInternal:
		return http.StatusInternalServerError
	case CodeNoRoute:
		return http.StatusNotFound
	case CodeWrongEnvironment:
		return http.StatusMisdirectedRequest
	case CodeCursorExpired:
		return http.StatusGone
	case CodeRateLimited:
		return http.StatusTooManyRequests
	}
	return http.StatusInternalServerError
}

// NewProblem returns err as a problem. What is no *fleet.Error is a fault of the
// daemon, whose text stays in its log.
func NewProblem(err error, requestID string) Problem {
	fault, ok := errors.AsType[*fleet.Error](err)
	if !ok {
		fault = fleet.Errorf(fleet.CodeInternal, "kurad failed to answer; its log says why under request %s", requestID)
	}
	status := Status(fault.Code)
	detail := (&fleet.Error{Message: fault.Message, Err: fault.Err}).Error()
	return Problem{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: detail,
		Code: fault.Code, Errors: fault.Fields, RequestID: requestID,
	}
}

// Err returns the problem as the domain's error.
func (p Problem) Err() *fleet.Error {
	return &fleet.Error{Code: p.Code, Message: p.Detail, Fields: p.Errors}
}

// Error is what every method of Client returns: the domain's error (by Unwrap), and
// where it came from.
type Error struct {
	Status     int // of the answer; 0: there was none
	RequestID  string
	RetryAfter time.Duration // what the daemon asked for, 0 where it did not
	Err        *fleet.Error
}

func (e *Error) Error() string {
	if e.RequestID != "" && e.Err.Code == fleet.CodeInternal {
		return fmt.Sprintf("%v (request %s)", e.Err, e.RequestID)
	}
	return e.Err.Error()
}

// Unwrap returns the domain's error.
func (e *Error) Unwrap() error { return e.Err }
