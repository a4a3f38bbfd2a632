package kubernetes

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// answer is an error of the API server.
func answer(code int, message string, details *metav1.StatusDetails) error {
	return fmt.Errorf("wrapped: %w", &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(code), Message: message, Details: details}})
}

func causes(t metav1.CauseType, fields ...string) *metav1.StatusDetails {
	d := &metav1.StatusDetails{}
	for _, f := range fields {
		d.Causes = append(d.Causes, metav1.StatusCause{Type: t, Field: f})
	}
	return d
}

// sent is the error of a request whose connection broke.
func sent(err error) error { return &url.Error{Op: "Patch", URL: "https://a", Err: err} }

func TestFailureClasses_whatEveryAnswerMeans(t *testing.T) {
	named := &metav1.StatusDetails{Group: "kura.tuist.dev", Kind: "kurainstances", Name: "a"}
	dial := sent(&net.OpError{Op: "dial", Err: errors.New("connection refused")})
	const transient, refused = fleet.ClassTransient, fleet.ClassRefused
	for name, c := range map[string]struct {
		err      error
		class    fleet.Class
		reason   fleet.Reason
		answered bool
		read     fleet.Reason // of a read; "": the same reason
	}{
		"nothing came back":           {sent(io.ErrUnexpectedEOF), transient, fleet.ReasonEndpointUnreachable, false, ""},
		"the time was over":           {context.DeadlineExceeded, transient, fleet.ReasonEndpointUnreachable, false, ""},
		"the connection was reset":    {sent(&net.OpError{Op: "read", Err: errors.New("reset")}), transient, fleet.ReasonEndpointUnreachable, false, ""},
		"nobody listens":              {dial, transient, fleet.ReasonEndpointUnreachable, true, ""},
		"our own limit":               {fmt.Errorf("client rate limiter Wait returned an error: %w", context.DeadlineExceeded), transient, fleet.ReasonEndpointUnreachable, true, ""},
		"TLS that is refused":         {sent(&net.OpError{Op: "remote error", Err: tls.AlertError(42)}), transient, fleet.ReasonRuntimeRefused, true, ""},
		"400":                         {answer(400, "", nil), refused, fleet.ReasonInvalid, true, fleet.ReasonRuntimeError},
		"401":                         {answer(401, "", nil), transient, fleet.ReasonRuntimeRefused, true, ""},
		"403":                         {answer(403, "", nil), refused, fleet.ReasonForbidden, true, fleet.ReasonRuntimeRefused},
		"403, the namespace goes":     {answer(403, "", causes("NamespaceTerminating", "metadata.namespace")), refused, fleet.ReasonNamespaceGone, true, fleet.ReasonRuntimeRefused},
		"404 of a namespace":          {answer(404, "", &metav1.StatusDetails{Kind: "namespaces", Name: "a"}), refused, fleet.ReasonNamespaceGone, true, fleet.ReasonTypeNotServed},
		"404 of the object":           {answer(404, "", named), transient, fleet.ReasonDrifted, true, fleet.ReasonTypeNotServed},
		"404 of another object":       {answer(404, "", &metav1.StatusDetails{Group: "kura.tuist.dev", Kind: "kurainstances", Name: "b"}), transient, fleet.ReasonTypeNotServed, true, ""},
		"404 of the type":             {answer(404, "404 page not found", &metav1.StatusDetails{}), transient, fleet.ReasonTypeNotServed, true, ""},
		"404 without details":         {answer(404, "", nil), transient, fleet.ReasonTypeNotServed, true, ""},
		"405":                         {answer(405, "", nil), refused, fleet.ReasonInvalid, true, fleet.ReasonRuntimeError},
		"408":                         {answer(408, "", nil), transient, fleet.ReasonRuntimeError, true, ""},
		"409 of fields":               {answer(409, "", causes(metav1.CauseTypeFieldManagerConflict, ".spec.replicas")), refused, fleet.ReasonFieldConflict, true, fleet.ReasonRuntimeError},
		"409 of a version":            {answer(409, "", nil), transient, fleet.ReasonDrifted, true, fleet.ReasonRuntimeError},
		"410":                         {answer(410, "", nil), transient, fleet.ReasonRuntimeError, true, ""},
		"413":                         {answer(413, "", nil), refused, fleet.ReasonInvalid, true, fleet.ReasonRuntimeError},
		"422":                         {answer(422, "", causes(metav1.CauseTypeFieldValueInvalid, "spec.replicas")), refused, fleet.ReasonInvalid, true, fleet.ReasonRuntimeError},
		"422 without details":         {answer(422, "", nil), refused, fleet.ReasonInvalid, true, fleet.ReasonRuntimeError},
		"422 of the UID":              {answer(422, "", causes(metav1.CauseTypeFieldValueInvalid, "metadata.uid", "metadata.uid")), transient, fleet.ReasonDrifted, true, fleet.ReasonRuntimeError},
		"429":                         {answer(429, "", nil), transient, fleet.ReasonRuntimeError, true, ""},
		"500":                         {answer(500, "etcd is away", nil), transient, fleet.ReasonRuntimeError, true, ""},
		"500, a field not declared":   {answer(500, "failed to create typed patch object (a): .spec.x: field not declared in schema", nil), refused, fleet.ReasonInvalid, true, fleet.ReasonRuntimeError},
		"500, it cannot be typed":     {answer(500, "failed to create typed patch object (a): the schema is not there", nil), transient, fleet.ReasonRuntimeError, true, ""},
		"500, no number":              {answer(500, "failed to create typed patch object (a): .spec.replicas: expected numeric (int or float), got string", nil), refused, fleet.ReasonInvalid, true, fleet.ReasonRuntimeError},
		"403, the type goes":          {answer(403, `kurainstances.kura.tuist.dev "a" is forbidden: create not allowed while custom resource definition is terminating`, named), transient, fleet.ReasonTypeNotServed, true, fleet.ReasonRuntimeRefused},
		"405, the type goes":          {answer(405, "create not allowed while custom resource definition is terminating", nil), transient, fleet.ReasonTypeNotServed, true, fleet.ReasonRuntimeError},
		"500, a value of wrong type":  {answer(500, ".spec.image: expected string, got &value.valueUnstructured{Value:7}", nil), refused, fleet.ReasonInvalid, true, fleet.ReasonRuntimeError},
		"502, 503 and what else came": {answer(503, "", nil), transient, fleet.ReasonRuntimeError, true, ""},
	} {
		m := classify(c.err, "a")
		if m.class != c.class || m.reason != c.reason || answeredBy(c.err) != c.answered {
			t.Errorf("%s: %s/%s, answered %t, want %s/%s, answered %t", name, m.class, m.reason, answeredBy(c.err), c.class, c.reason, c.answered)
		}
		if m.class == refused && m.advice == "" {
			t.Errorf("%s: no next step", name)
		}
		read := c.read
		if read == "" {
			read = c.reason
		}
		f := (&Cluster{cfg: Config{Name: "eu"}}).readFailure("kura", c.err)
		if f.Reason != read || !strings.HasPrefix(f.Message, `cluster "eu", namespace "kura": `) {
			t.Errorf("%s, of a read: %s: %s, want %s", name, f.Reason, f.Message, read)
		}
	}
}

func TestP3_onlyAnAnswerThatNamesTheObjectSaysThatItIsAbsent(t *testing.T) {
	for _, c := range []struct {
		code    int
		details *metav1.StatusDetails
		want    bool
	}{
		{404, &metav1.StatusDetails{Group: "kura.tuist.dev", Kind: "kurainstances", Name: "a"}, true},
		{404, &metav1.StatusDetails{Group: "kura.tuist.dev", Kind: "kurainstances", Name: "b"}, false},
		{404, &metav1.StatusDetails{Group: "kura.tuist.dev", Kind: "kurainstances"}, false},
		{404, &metav1.StatusDetails{Kind: "namespaces", Name: "a"}, false},
		{404, &metav1.StatusDetails{}, false},
		{404, nil, false},
		{410, &metav1.StatusDetails{Group: "kura.tuist.dev", Kind: "kurainstances", Name: "a"}, false},
	} {
		if got := absent(answer(c.code, "", c.details), "a"); got != c.want {
			t.Errorf("%d %+v: absent %t", c.code, c.details, got)
		}
	}
	if absent(nil, "a") || absent(io.EOF, "a") {
		t.Error("no answer says that something is absent")
	}
}

// roundTrip answers a request.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestP2_clientGoRepeatsNothingByItself(t *testing.T) {
	closed := 0
	a := &answers{unauthorized: func() { closed++ }}
	for _, code := range []int{200, 401, 429, 503} {
		a.next = roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: code, Header: http.Header{"Retry-After": {"1"}}, Body: http.NoBody}, nil
		})
		resp, err := a.RoundTrip(&http.Request{})
		if err != nil || resp.StatusCode != code || resp.Header.Get("Retry-After") != "" {
			t.Errorf("%d: %+v, %v", code, resp, err)
		}
		resp.Body.Close()
	}
	if closed != 1 {
		t.Errorf("connections were ended %d times, want once: for the 401", closed)
	}
	a.next = roundTrip(func(*http.Request) (*http.Response, error) { return nil, io.EOF })
	if _, err := a.RoundTrip(&http.Request{}); !errors.Is(err, io.EOF) {
		t.Errorf("no answer: %v", err)
	}
}
