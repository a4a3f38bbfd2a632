package readiness

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const (
	maxBody   = 4 << 10  // what is read of a body; the rest does not matter
	maxAnswer = 64 << 10 // of everything that is read, header and framing included
	maxHints  = 5        // informational answers before the real one
)

// get asks for u on a connection that nothing else uses, and judges the answer.
// There is no http.Transport in between: it would pool, dial on after a timeout
// and follow the environment's proxy.
func get(conn net.Conn, u *url.URL, foreign bool) *failure {
	request := &http.Request{
		Method: http.MethodGet,
		URL:    u,
		Host:   hostHeader(u),
		Header: http.Header{"User-Agent": {"kurad-probe"}, "Accept": {"*/*"}},
		Close:  true,
	}
	notReady := func(format string, args ...any) *failure {
		return failed(fleet.ReasonHTTPNotReady, "GET "+strings.ReplaceAll(u.Redacted(), "%", "%%")+" "+format, args...)
	}
	if err := request.Write(conn); err != nil {
		return notReady("could not be sent: %s", errno(err))
	}
	limit := &io.LimitedReader{R: conn, N: maxAnswer}
	reader := bufio.NewReader(limit)
	var answer *http.Response
	for range maxHints {
		var err error
		answer, err = http.ReadResponse(reader, request) //nolint:bodyclose // closing it could mean to read it to its end: the connection is closed
		if err != nil {
			if limit.N <= 0 {
				return notReady("was answered with a header over %d KiB", maxAnswer>>10)
			}
			if _, ok := errors.AsType[net.Error](err); ok || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
				return notReady("was not answered: %s", errno(err))
			}
			return notReady("was answered with something that is not HTTP") // its text would repeat what was sent
		}
		if answer.StatusCode >= 200 || answer.StatusCode == http.StatusSwitchingProtocols {
			break
		}
	}
	switch {
	case foreign && answer.StatusCode >= 200 && answer.StatusCode < 500:
	case answer.StatusCode >= 300 && answer.StatusCode < 400:
		return notReady("answered %d; redirects are not followed: the path must answer 2xx itself", answer.StatusCode)
	case answer.StatusCode < 200 || answer.StatusCode > 299:
		return notReady("answered %d %s", answer.StatusCode, http.StatusText(answer.StatusCode))
	}
	// An answer that stops half way is none, but nobody needs more than its beginning.
	if _, err := io.CopyN(io.Discard, answer.Body, maxBody); err != nil && !errors.Is(err, io.EOF) {
		return notReady("answered %d, but its body broke off: %s", answer.StatusCode, errno(err))
	}
	return nil
}

// hostHeader leaves the scheme's own port out, as clients do.
func hostHeader(u *url.URL) string {
	if (u.Scheme == fleet.SchemeHTTPS && u.Port() == "443") || (u.Scheme == fleet.SchemeHTTP && u.Port() == "80") {
		return strings.TrimSuffix(u.Host, ":"+u.Port())
	}
	return u.Host
}
