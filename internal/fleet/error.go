package fleet

import (
	"errors"
	"fmt"
	"slices"
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

// Bounds of an error, which may quote what was sent (G8): how many fields it names, and how
// many bytes of each pointer and each text.
const (
	maxFaults      = 20
	maxFaultAt     = 256
	maxFaultDetail = 2 << 10
)

// Cut shortens a text to so many bytes.
func Cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Invalid collects the field errors of one object while it is validated: the first of them,
// and how many more there are.
type Invalid struct {
	fields []FieldError
	more   int
}

// Add notes that the field at pointer is wrong.
func (v *Invalid) Add(pointer, format string, args ...any) {
	if len(v.fields) == maxFaults {
		v.more++
		return
	}
	v.fields = append(v.fields, FieldError{Pointer: Cut(pointer, maxFaultAt), Detail: Cut(fmt.Sprintf(format, args...), maxFaultDetail)})
}

// Err returns nil if nothing was added, else an Error with all fields; what names
// the object, for example `region "eu"`.
func (v *Invalid) Err(what string) error {
	if len(v.fields) == 0 {
		return nil
	}
	fields := v.fields
	if v.more > 0 {
		fields = append(slices.Clone(fields), FieldError{Detail: fmt.Sprintf("and %d more", v.more)})
	}
	return &Error{Code: CodeInvalid, Message: Cut(what, maxFaultAt) + " is not valid", Fields: fields}
}
