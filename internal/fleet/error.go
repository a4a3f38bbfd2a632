package fleet

import (
	"errors"
	"fmt"
	"strings"
)

// Code is what an error means to a caller of the API; the API maps each code to
// one HTTP status.
type Code string

// Error codes.
const (
	CodeInvalid      Code = "invalid"             // the request is wrong; Fields says where
	CodeNotFound     Code = "not_found"           // this very object does not exist
	CodeConflict     Code = "conflict"            // exists already, is being destroyed, name or host taken
	CodePrecondition Code = "precondition_failed" // If-Match named another generation
	CodeUnauthorized Code = "unauthorized"        // no, expired, revoked or unknown token
	CodeForbidden    Code = "forbidden"           // the token's scope does not cover the call
	CodeTooLarge     Code = "too_large"           // the body is over the limit
	CodeUnavailable  Code = "unavailable"         // try again later
	CodeInternal     Code = "internal"            // a fault of kurad
)

// FieldError says what is wrong with one field of a request.
type FieldError struct {
	// Pointer names the field as a JSON pointer (RFC 6901) into the object, for
	// example /containers/services/cache/image.
	Pointer string `json:"pointer"`
	// Detail says what is wrong and what to do.
	Detail string `json:"detail"`
}

// Error is the one error type that users see: what was attempted on what, why it
// cannot be, and what to do next.
type Error struct {
	Code    Code
	Message string
	Fields  []FieldError
	Err     error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for i, f := range e.Fields {
		switch {
		case i > 0:
			b.WriteString("; ")
		case e.Message != "":
			b.WriteString(": ")
		}
		if f.Pointer != "" {
			b.WriteString(f.Pointer + ": ")
		}
		b.WriteString(f.Detail)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an Error of the code.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of the first Error in err's chain, CodeInternal for
// every other error and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return CodeInternal
}

// Invalid collects the field errors of one object while it is validated.
type Invalid struct{ fields []FieldError }

// Add notes that the field at pointer is wrong.
func (v *Invalid) Add(pointer, format string, args ...any) {
	v.fields = append(v.fields, FieldError{Pointer: pointer, Detail: fmt.Sprintf(format, args...)})
}

// Err returns nil if nothing was added, else an Error with all fields; what names
// the object, for example `region "eu"`.
func (v *Invalid) Err(what string) error {
	if len(v.fields) == 0 {
		return nil
	}
	return &Error{Code: CodeInvalid, Message: what + " is not valid", Fields: v.fields}
}
