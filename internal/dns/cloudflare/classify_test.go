package cloudflare

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func TestClassify_everyAnswerHasOneMeaning(t *testing.T) {
	var (
		over     = rateLimited
		quota    = dns.Error{Class: fleet.ClassRefused, Reason: fleet.ReasonQuotaExceeded, Answered: true}
		none     = dns.Error{Class: fleet.ClassRefused, Reason: fleet.ReasonNotSubscribed, Answered: true}
		notFound = dns.Error{Class: fleet.ClassTransient, Reason: fleet.ReasonDrifted, NotFound: true, Answered: true}
		conflict = dns.Error{Class: fleet.ClassTransient, Reason: fleet.ReasonDrifted, Conflict: true, Answered: true}
		invalid  = dns.Error{Class: fleet.ClassRefused, Reason: fleet.ReasonInvalid, Answered: true}
	)
	for _, row := range []struct {
		status, code int
		message      string
		want         dns.Error
	}{
		{429, 971, "Please wait and consider throttling your request speed", over},
		{429, -1, "<html><title>429</title>", over}, // without an envelope
		{400, 10100, "More than 1200 requests per 300 seconds reached.", over},
		{403, 10300, "rate limit exceeded", over},
		{403, 4711, "You have exceeded the rate limit", over},
		{400, 81045, "Record quota exceeded.", quota},
		{400, 1002, "the origin list length must be in range [1, 0]: validation failed", quota},
		{403, 1002, "the load balancer quota of the zone is exceeded: validation failed", quota},
		{403, 1002, "load balancing not enabled for zone: validation failed", none},
		{400, 1002, "Probing from every data centre is not allowed with this subscription.", none},
		{400, 1002, `Host header "x.test" not allowed for origin domain "y.test": validation failed`, invalid},
		{400, 1002, "the origin list length must be in range [1, 20]: validation failed", invalid},
		{401, 1000, "Invalid API Token", invalidNow},
		{400, 6003, "Invalid request headers", invalidNow},
		{403, 9109, "Invalid access token", invalidNow},
		{403, 9109, "Unauthorized to access requested resource", mayNot},
		{403, 10000, "Authentication error", mayNot},
		{400, 10000, "Authentication error", mayNot},
		{403, 0, "Actor 'com.cloudflare.api.token.x' requires permission 'com.cloudflare.api.account.zone.list' to list zones", mayNot},
		{404, 81044, "Record does not exist.", notFound},
		{400, 81044, "Record does not exist.", notFound},
		{404, 1001, "pool not found", notFound},
		{400, 7003, "Could not route to /zones/x, perhaps your object identifier is invalid?", invalidNow},
		{404, 7000, "No route for that URI", invalidNow},
		{400, 81053, "An A, AAAA, or CNAME record with that host already exists.", conflict},
		{400, 81057, "Record already exists.", conflict},
		{403, 81058, "An identical record already exists.", conflict},
		{412, 1005, "This object is referenced by other objects, delete them first.", conflict},
		{400, 1005, "This object is referenced by other objects, delete them first.", conflict},
		{400, 1003, "value not unique", conflict},
		{400, 1003, "Invalid zone", invalid},
		{400, 9005, "Content for A record must be a valid IPv4 address.", invalid},
		{422, 1, "", invalid},
		{200, 9, "success: false", invalid},
		{408, 9, "slow", unreachable},
		{500, 10001, "Internal server error", unanswered},
		{502, -1, "<html><title>api.cloudflare.com | 502: Bad gateway</title>", unanswered},
		{503, -1, "", unanswered},
		{200, -1, "<html>a captive portal", unanswered},
		{302, -1, "", unanswered},
		{403, -1, "<html><title>Attention Required!</title>", unreachable},
		{404, -1, "nginx", unreachable},
	} {
		body := row.message
		if row.code >= 0 {
			body = fmt.Sprintf(`{"success": false, "errors": [{"code": %d, "message": %q}]}`, row.code, row.message)
		}
		c := &call{zone: domain, what: "create A a.kura.test", need: dnsEdit, write: true}
		e := c.classify(fmt.Errorf("wrapped: %w", newRefusal(row.status, http.Header{}, body)))
		wantError(t, e, row.want)
		said := strings.Contains(e.Message, row.message) || row.code < 0
		if !said || !strings.HasPrefix(e.Message, "zone kura.test: create A a.kura.test: ") || !strings.Contains(e.Message, fmt.Sprint(row.status)) {
			t.Errorf("%d %d: message %q", row.status, row.code, e.Message)
		}
		if e.Class == fleet.ClassRefused && e.Reason == fleet.ReasonZoneForbidden && !strings.HasSuffix(e.Message, "; give the token the permission DNS:Edit") {
			t.Errorf("%d %d: message %q does not name the permission", row.status, row.code, e.Message)
		}
	}
}

func TestClassify_everyRuleIsReached(t *testing.T) {
	for i, r := range rules {
		said := &refusal{status: r.from}
		if r.codes != nil {
			said.failures = append(said.failures, failure{Code: r.codes[0]})
		}
		if r.text != nil {
			continue // by the table above
		}
		for j, before := range rules[:i] {
			if before.of(said) {
				t.Errorf("rule %d (%s) is hidden by rule %d (%s)", i, r.source, j, before.source)
			}
		}
		if !r.of(said) || r.source == "" {
			t.Errorf("rule %d: not true of %d %v, or without a source", i, said.status, r.codes)
		}
	}
}

func TestClassify_whatWasNeverSentTakesNoEffect(t *testing.T) {
	write := &call{write: true}
	refused := fmt.Errorf("Post: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")})
	wantError(t, write.classify(refused), unreachable)
	wantError(t, write.classify(&net.OpError{Op: "read", Err: errors.New("connection reset")}), unanswered)
	wantError(t, (&call{}).classify(&net.OpError{Op: "read", Err: errors.New("connection reset")}), unreachable)
	wantError(t, write.classify(noToken{errors.New("open /none: no such file")}), invalidNow)
}

func TestG11_whatCloudflareSaysIsShownWithoutControlCharactersAndBounded(t *testing.T) {
	c := &call{zone: domain, what: "list its records"}
	e := c.classify(newRefusal(400, nil, `{"errors": [{"code": 1, "message": "a\u001b[2J\u202eb\r\nc`+strings.Repeat("x", 100000)+`"}]}`))
	if strings.ContainsAny(e.Message, "\x1b\r\n\u202e") || len(e.Message) > 2*maxText || !strings.Contains(e.Message, "a [2Jb c") {
		t.Errorf("message of %d bytes: %.200q", len(e.Message), e.Message)
	}
}
