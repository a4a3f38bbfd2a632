package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// DNS is what the API asks of the DNS zones that this kurad was given. An error of a zone's
// provider that says when to come back is a *Later.
type DNS interface {
	// Audit compares the newest listing of each zone with what servers want now. It asks
	// no provider.
	Audit(ctx context.Context) ([]fleet.ZoneAudit, error)
	// Prune deletes the hosts of the request that are ours and wanted by nobody in a listing
	// that it makes itself; dry says what it would delete. What is deleted before an
	// error is in its answer.
	Prune(ctx context.Context, r fleet.PruneRequest, dry bool) (fleet.Pruned, error)
	// Take moves a host to the owner of the server that wants it, where that is exactly the
	// request's now; dry says what it would change.
	Take(ctx context.Context, r fleet.TakeRequest, dry bool) (fleet.Taken, error)
}

// Later is an error that says when to try again.
type Later struct {
	Err   error
	After time.Duration
}

func (e *Later) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e *Later) Unwrap() error { return e.Err }

// noDNS is of a kurad that was given none.
type noDNS struct{}

func (noDNS) Audit(context.Context) ([]fleet.ZoneAudit, error) { return nil, nil }

func (noDNS) Prune(context.Context, fleet.PruneRequest, bool) (out fleet.Pruned, err error) {
	return out, errNoZones
}

func (noDNS) Take(context.Context, fleet.TakeRequest, bool) (out fleet.Taken, err error) {
	return out, errNoZones
}

var errNoZones = fleet.Errorf(fleet.CodeConflict, "this kurad was given no DNS zone; start it with --zone")

// zonesWithin bounds what is asked of the providers of zones in one call: one that prunes lists
// a zone and changes it.
const zonesWithin = 45 * time.Second

// zonesTime is the time of one call. A change goes on though who asked for it is gone: it is
// written down what became of it.
func zonesTime(ctx context.Context, dry bool) (context.Context, context.CancelFunc) {
	if !dry {
		ctx = context.WithoutCancel(ctx)
	}
	return context.WithTimeout(ctx, zonesWithin)
}

type dnsAuditInput struct {
	PageInput
	Zone string            `query:"zone" maxLength:"253" doc:"Only this zone, by its domain." example:"kura.example.dev"`
	Kind fleet.FindingKind `query:"kind" enum:"wanted-ours,wanted-foreign,wanted-absent,wanted-unreadable,wanted-unread,unwanted-stale,unwanted,txt-without-record,record-without-txt-beside-foreign,two-owners,owner-in-two-environments,balancer-shadows-record,unwanted-balancer,unwanted-pool" doc:"Only this kind; without it all but wanted-ours, of which nothing is wrong."`
}

// auditDNS says what of the zones is not as the servers want it. A page's cursor names the whole
// answer: where that changes between two pages, the list begins again.
func (s *Server) auditDNS(ctx context.Context, in *dnsAuditInput) (out api.DNSAudit, err error) {
	if err := s.catchUp(ctx); err != nil {
		return out, err
	}
	zones, err := s.DNS.Audit(ctx)
	if err != nil {
		return out, err
	}
	token := caller(ctx)
	out = api.DNSAudit{Zones: []fleet.AuditedZone{}, Counts: map[fleet.FindingKind]int{}, Items: []fleet.Finding{}}
	var all []fleet.Finding
	for _, z := range zones {
		if in.Zone != "" && in.Zone != z.Zone {
			continue
		}
		out.Zones = append(out.Zones, audited(z))
		for _, f := range z.Findings {
			if !token.Sees(f.Account) {
				continue
			}
			out.Counts[f.Kind]++
			if f.Kind == in.Kind || in.Kind == "" && f.Kind != fleet.FindingOurs {
				all = append(all, f.Shown())
			}
		}
	}
	if in.Zone != "" && len(out.Zones) == 0 {
		return out, s.noZone(in.Zone, zones)
	}
	slices.SortFunc(out.Zones, func(a, b fleet.AuditedZone) int { return strings.Compare(a.Zone, b.Zone) })
	slices.SortFunc(all, fleet.CompareFindings)
	out.Items, out.Next, err = s.pageOfFindings(in.PageInput, all)
	return out, err
}

func audited(z fleet.ZoneAudit) fleet.AuditedZone {
	out := fleet.AuditedZone{Zone: z.Zone, Listed: timeOf(z.Listed)}
	switch {
	case z.Failure != nil:
		out.Reason, out.Message, out.Since = z.Failure.Reason, fleet.Printable(z.Failure.Message), timeOf(z.Failure.Since)
	case z.Listed.IsZero():
		out.Reason, out.Message = fleet.ReasonNotObservedYet, "it was not listed yet by the kurad that answers"
	}
	return out
}

func (s *Server) noZone(name string, zones []fleet.ZoneAudit) error {
	var have []string
	for _, z := range zones {
		have = append(have, z.Zone)
	}
	slices.Sort(have)
	return fleet.Errorf(fleet.CodeNotFound, "this kurad was given no DNS zone %q (it has: %s); start it with --zone, or correct the name", name, cmp.Or(strings.Join(have, ", "), "none"))
}

func (s *Server) pageOfFindings(in PageInput, all []fleet.Finding) (items []fleet.Finding, next string, err error) {
	text, err := json.Marshal(all)
	if err != nil {
		return nil, "", err
	}
	sum := sha256.Sum256(text)
	whole, from := hex.EncodeToString(sum[:16]), 0
	if in.Page != "" {
		f, ok := s.parseCursor(in.Page, 2)
		if !ok || f[0] != whole {
			return nil, "", errPageExpired
		}
		if from, err = strconv.Atoi(f[1]); err != nil || from < 0 || from > len(all) {
			return nil, "", errPageExpired
		}
	}
	to, size := from, 0
	for ; to < len(all) && to < from+in.Limit && size < maxPage; to++ {
		size += sizeOf(all[to])
	}
	if to < len(all) {
		next = s.cursor(whole, strconv.Itoa(to))
	}
	return append([]fleet.Finding{}, all[from:to]...), next, nil
}

// DNSWrite is what a change of a zone takes besides its body.
type DNSWrite struct {
	DryRun bool `query:"dry_run" doc:"Say what would be changed, and change nothing."`
}

type pruneInput struct {
	DNSWrite
	Body[fleet.PruneRequest]
}

// pruneDNS deletes what is ours and wanted by nobody, of the hosts that were shown to whoever asks.
func (s *Server) pruneDNS(ctx context.Context, in *pruneInput) (out fleet.Pruned, err error) {
	r, err := in.value()
	if err != nil {
		return out, err
	}
	var v fleet.Invalid
	if len(r.Hosts) == 0 && !in.DryRun {
		v.Add("/hosts", "name the hosts to delete; dry_run=true without any shows which can be")
	}
	if len(r.Hosts) > api.MaxPage {
		v.Add("/hosts", "holds %d hosts, and a call takes %d at most; send the others in another one", len(r.Hosts), api.MaxPage)
	}
	for i, host := range r.Hosts {
		if len(host) > 253 {
			v.Add(fmt.Sprintf("/hosts/%d", i), "is longer than any host")
		}
	}
	if err := v.Err("prune"); err != nil {
		return out, err
	}
	within, cancel := zonesTime(ctx, in.DryRun)
	defer cancel()
	out, err = s.DNS.Prune(within, r, in.DryRun)
	out.Items = append([]fleet.Finding{}, out.Items...)
	for i, f := range out.Items {
		out.Items[i] = f.Shown()
	}
	slices.SortFunc(out.Items, fleet.CompareFindings)
	if !in.DryRun {
		for _, f := range out.Items {
			s.record(ctx, f.Server(), "DNSPruned", fmt.Sprintf("deleted host %s of zone %s (%s): %s", f.Host, f.Zone, strings.Join(f.Contents, ", "), f.Why))
		}
	}
	if err != nil && len(out.Items) > 0 && !in.DryRun {
		err = &fleet.Error{Code: fleet.CodeOf(err), Message: fmt.Sprintf("%d hosts were deleted before it failed; ask again for the others", len(out.Items)), Err: err}
	}
	return out, s.later(ctx, err)
}

type takeInput struct {
	DNSWrite
	Body[fleet.TakeRequest]
}

// takeHost moves a host from another owner to the one of the server that wants it.
func (s *Server) takeHost(ctx context.Context, in *takeInput) (out fleet.Taken, err error) {
	r, err := in.value()
	if err != nil {
		return out, err
	}
	var v fleet.Invalid
	if err := fleet.CheckHost(r.Host); err != nil {
		v.Add("/host", "%v", err)
	}
	if r.From == "" {
		v.Add("/from", "is required: the owner whose it is now, as kurad dns audit shows it")
	}
	if err := v.Err("take"); err != nil {
		return out, err
	}
	within, cancel := zonesTime(ctx, in.DryRun)
	defer cancel()
	out, err = s.DNS.Take(within, r, in.DryRun)
	if err == nil && out.Changed && !in.DryRun {
		s.record(ctx, fleet.ServerKey{Account: out.Account, Region: out.Region}, "DNSTaken", fmt.Sprintf("host %s was moved from owner %s to owner %s on purpose", out.Host, out.From, out.To))
	}
	return out, s.later(ctx, err)
}

// record writes down what was changed in a zone: a line of the audit log, and an event of the
// server, where one is known. It is done all the same if they cannot be written.
func (s *Server) record(ctx context.Context, key fleet.ServerKey, reason, text string) {
	c := callOf(ctx)
	s.Logger.Info("a DNS zone was changed by a call", "request", c.id, "token", c.token.ID, "what", text)
	err := s.Audit.Write(audit.Entry{
		Time: s.Now().UTC(), Event: audit.EventDNS, RequestID: c.id, TokenID: c.token.ID, TokenName: withoutSecret(c.token.Name), Scope: string(c.token.Scope), Reason: text,
	}, true)
	if _, unknown := fleet.ParseServerKey(key.String()); err == nil && unknown == nil {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
		defer cancel()
		err = s.Records.Note(end, fleet.Event{Account: key.Account, Region: key.Region, At: s.Now().UTC(), Type: fleet.EventNormal, Reason: reason, Message: text})
	}
	if err != nil {
		s.Logger.Error("what a call changed in a DNS zone could not be written down", "request", c.id, "what", text, "error", err)
	}
}

// later notes with a call when it may be tried again.
func (s *Server) later(ctx context.Context, err error) error {
	if l, ok := errors.AsType[*Later](err); ok && l.After > 0 {
		callOf(ctx).retryAfter = int(math.Ceil(l.After.Seconds()))
	}
	return err
}
