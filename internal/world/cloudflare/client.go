package cloudflare

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"syscall"
)

// Client calls the API in the process, without a socket, whatever host its requests name. Faults are the same: a
// connection that is cut is ECONNRESET.
func (e *Emulator) Client() *http.Client { return &http.Client{Transport: inProcess{e}} }

type inProcess struct{ e *Emulator }

// RoundTrip implements http.RoundTripper.
func (p inProcess) RoundTrip(r *http.Request) (response *http.Response, err error) {
	served := r.Clone(r.Context())
	if served.Body == nil {
		served.Body = http.NoBody
	}
	defer served.Body.Close()
	select {
	case <-p.e.closed:
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL, syscall.ECONNREFUSED)
	default:
	}
	defer func() {
		cut := recover()
		if why, ok := cut.(error); ok && errors.Is(why, http.ErrAbortHandler) {
			response, err = nil, fmt.Errorf("%s %s: %w", r.Method, r.URL, syscall.ECONNRESET)
		} else if cut != nil {
			panic(cut)
		}
	}()
	out := &recorder{header: http.Header{}}
	p.e.api.ServeHTTP(out, served)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if out.status == 0 { // the handler hung until the emulator was closed
		return nil, fmt.Errorf("%s %s: %w", r.Method, r.URL, io.ErrUnexpectedEOF)
	}
	return &http.Response{
		StatusCode: out.status, Status: fmt.Sprintf("%d %s", out.status, http.StatusText(out.status)),
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: out.header,
		Body: io.NopCloser(&out.body), ContentLength: int64(out.body.Len()), Request: r,
	}, nil
}

// recorder keeps an answer. It cannot be hijacked: handlers that cut a connection panic with http.ErrAbortHandler.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(b []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(b)
}
