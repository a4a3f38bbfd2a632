package cloudflare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// refusal is an answer that is not the one that was asked for. It is an error.
type refusal struct {
	status   int // HTTP's
	header   http.Header
	failures []failure // of the envelope; none: the answer is not the API's
	text     string    // the answer, where it is not
}

// failure is one entry of an envelope's errors.
type failure struct {
	Code    int       `json:"code"`
	Message string    `json:"message"`
	Chain   []failure `json:"error_chain"`
}

// newRefusal reads what was answered instead.
func newRefusal(status int, header http.Header, body string) *refusal {
	r := &refusal{status: status, header: header}
	var said struct {
		Errors []failure `json:"errors"`
	}
	if json.Unmarshal([]byte(body), &said) == nil && len(said.Errors) > 0 {
		r.failures = said.Errors
		return r
	}
	r.text = body
	if title := htmlTitle.FindStringSubmatch(body); title != nil {
		r.text = "a page: " + title[1]
	}
	return r
}

var htmlTitle = regexp.MustCompile(`(?is)<title>(.{0,200}?)</title>`)

// Error tells what was answered in Cloudflare's own words.
func (r *refusal) Error() string {
	var said []string
	for f := range r.all {
		said = append(said, fmt.Sprintf("%s (code %d)", cmp.Or(f.Message, "no message"), f.Code))
	}
	if said == nil {
		said = []string{cmp.Or(strings.TrimSpace(r.text), "nothing")}
	}
	return fmt.Sprintf("Cloudflare answers %d: %s", r.status, strings.Join(said, "; "))
}

// all yields the failures with those that caused them.
func (r *refusal) all(yield func(failure) bool) {
	for _, f := range r.failures {
		if !yield(f) {
			return
		}
		for _, cause := range f.Chain {
			if !yield(cause) {
				return
			}
		}
	}
}

// meaning is what an answer means.
type meaning struct {
	class    fleet.Class
	reason   fleet.Reason
	notFound bool
	conflict bool
	advice   string // the next step; %s is the permission that the call needs
}

var (
	limited       = meaning{class: fleet.ClassTransient, reason: fleet.ReasonRateLimited}
	quota         = meaning{class: fleet.ClassRefused, reason: fleet.ReasonQuotaExceeded, advice: "raise the quota at Cloudflare, or remove what nobody needs"}
	notSubscribed = meaning{class: fleet.ClassRefused, reason: fleet.ReasonNotSubscribed, advice: "enable load balancing for the zone and its account at Cloudflare"}
	badToken      = meaning{class: fleet.ClassTransient, reason: fleet.ReasonZoneForbidden, advice: "put a valid token where kurad reads it; it is read again with each call"}
	forbidden     = meaning{class: fleet.ClassRefused, reason: fleet.ReasonZoneForbidden, advice: "give the token the permission %s"}
	gone          = meaning{class: fleet.ClassTransient, reason: fleet.ReasonDrifted, notFound: true}
	goneZone      = meaning{class: fleet.ClassTransient, reason: fleet.ReasonZoneForbidden} // not notFound: it says nothing of what is in it
	inTheWay      = meaning{class: fleet.ClassTransient, reason: fleet.ReasonDrifted, conflict: true}
	mistaken      = meaning{class: fleet.ClassRefused, reason: fleet.ReasonInvalid}
	outage        = meaning{class: fleet.ClassTransient, reason: fleet.ReasonZoneUnreachable}
)

// rule is one row of the table: what it is true of, what that means, and where that was read.
type rule struct {
	meaning
	from, to int            // HTTP status; to 0: from only
	codes    []int          // any of them; nil: whichever
	text     *regexp.Regexp // of any message; nil: whichever
	source   string
}

// rules is the one table of failures: the first that is true decides. Those without an envelope are
// decided before it: they are not the API's.
var rules = []rule{
	{limited, 429, 0, nil, nil, "API documentation, rate limits"},
	{limited, 400, 499, []int{971, 10100, 10300}, nil, "issue 2135 of external-dns; issue 153 of cloud-inquisitor"},
	{limited, 400, 499, nil, regexp.MustCompile(`(?i)\brate limit|throttling your request`), "the same, whose codes differ"},

	{quota, 400, 499, []int{81045}, nil, "API answer: Record quota exceeded."},
	{quota, 400, 403, []int{1002}, regexp.MustCompile(`(?i)range \[\d+, 0\]|\bquota\b|exceeded`), "hashicorp/terraform 17948; load balancing, common error codes: exceeded quota"},
	{notSubscribed, 400, 403, []int{1002}, regexp.MustCompile(`(?i)not enabled|subscription|not entitled`), "ingress-controller 18; load balancing, common error codes: not enabled"},

	{badToken, 401, 0, nil, nil, "API behaviour: code 1000, Invalid API Token"},
	{badToken, 400, 0, []int{6003, 6111}, nil, "cloudflare-cli 58; ultimate-multisite 73"},
	{badToken, 403, 0, []int{9109, 9103, 9106}, regexp.MustCompile(`(?i)invalid (access|api) token|token .*(expired|disabled)|unknown x-auth`), "API behaviour: code 9109, Invalid access token"},

	{goneZone, 400, 404, []int{7000, 7003}, nil, "API behaviour: Could not route to …, perhaps your object identifier is invalid?"},
	{gone, 404, 0, nil, nil, "API answers: 81044, Record does not exist; 1001, pool not found"},
	{gone, 400, 499, []int{81044}, nil, "the same, by its code"},

	{inTheWay, 400, 499, []int{81053, 81054, 81055, 81056, 81057, 81058}, nil, "API answers: a record of that host, or an identical one, exists"},
	{inTheWay, 400, 499, []int{1005}, regexp.MustCompile(`(?i)referenced`), "terraform-provider-cloudflare 66; cloudflare-docs 3686: a pool in use"},
	{inTheWay, 400, 499, []int{1003}, regexp.MustCompile(`(?i)not unique`), "terraform-provider-cloudflare 6275: a name that is taken"},
	{inTheWay, 409, 0, nil, nil, "RFC 9110"},
	{inTheWay, 412, 0, nil, nil, "terraform-provider-cloudflare 66"},

	{forbidden, 403, 0, nil, nil, "wrangler-action 112: code 10000; cloudflare-cli 58: no code"},
	{forbidden, 400, 0, []int{9109, 10000}, nil, "the same codes with 400"},

	{outage, 408, 0, nil, nil, "RFC 9110"},
	{mistaken, 400, 499, nil, nil, "API documentation: all other 4xx"},
	{outage, 500, 599, nil, nil, "API documentation"},
	{mistaken, 200, 299, nil, nil, "an envelope that says success: false"},
	{outage, 0, 999, nil, nil, "no answer of the API's"},
}

func (r rule) of(said *refusal) bool {
	if to := cmp.Or(r.to, r.from); said.status < r.from || said.status > to {
		return false
	}
	coded, worded := r.codes == nil, r.text == nil
	for f := range said.all {
		coded = coded || slices.Contains(r.codes, f.Code)
		worded = worded || r.text.MatchString(f.Message)
	}
	return coded && worded
}

// maxText is the characters of what is shown of an answer.
const maxText = 400

// classify tells what a call's error means. Its text is one line that can be shown (G11).
func (c *call) classify(err error) *dns.Error {
	if e, ok := errors.AsType[*dns.Error](err); ok {
		return e
	}
	m, answered := outage, !c.write || neverSent(err)
	if errors.Is(err, context.DeadlineExceeded) {
		err = errors.New("no answer in time")
	}
	said, ok := errors.AsType[*refusal](err)
	if ok && (len(said.failures) > 0 || said.status == http.StatusTooManyRequests) {
		m = rules[slices.IndexFunc(rules, func(r rule) bool { return r.of(said) })].meaning
	}
	if ok && said.status >= 400 && said.status < 500 || ok && said.status < 300 && len(said.failures) > 0 {
		answered = true
	}
	if _, ok := errors.AsType[noToken](err); ok {
		m, answered = badToken, true
	}
	e := &dns.Error{Class: m.class, Reason: m.reason, NotFound: m.notFound, Conflict: m.conflict, Answered: answered}
	e.Message = fmt.Sprintf("%s: %s", c, fleet.Shorten(fleet.Printable(err.Error()), maxText))
	if m.advice != "" {
		e.Message += "; " + strings.ReplaceAll(m.advice, "%s", c.need)
	}
	return e
}

// neverSent reports whether no connection was made, so that nothing can take effect later.
func neverSent(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
