//go:build real

package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// published records every url that a server publishes, as whoever polls sees them, until
// stop returns them.
func (k *kurad) published(key fleet.ServerKey) (stop func() []string) {
	ctx, cancel := context.WithCancel(k.t.Context())
	var urls []string
	see := func(v fleet.ServerView) {
		if len(urls) == 0 || urls[len(urls)-1] != v.PublishedURL {
			urls = append(urls, v.PublishedURL)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil { // once for each life of the daemon
			c, err := (&target{dataDir: k.dir}).impatient()
			for cursor := ""; err == nil; {
				var change api.ServerChange
				if change, err = c.WaitServer(ctx, key, cursor, api.MaxWait); err == nil && change.Server != nil {
					see(*change.Server)
				}
				cursor = change.Cursor
			}
			kv.Pause(ctx, 50*time.Millisecond)
		}
	})
	return func() []string {
		cancel()
		wg.Wait()
		see(k.until(key, "is there", func(fleet.ServerView) bool { return true })) // where it lagged behind
		return urls
	}
}

// moving is a server that a test moves, as it was before.
type moving struct {
	key    fleet.ServerKey
	before fleet.ServerView
	box    box
	host   string // that it moves to
	stop   func() []string
}

// fleetOfTwo starts a kurad with a region of two accounts, both live.
func fleetOfTwo(t *testing.T, region fleet.Region, accounts [2]string, pattern string, flags ...string) (*kurad, []*moving) {
	k := startKurad(t, flags...)
	k.declare(region, accounts[:]...)
	if pattern != "" {
		k.putTemplate("public", pattern)
	}
	var list []*moving
	for _, a := range accounts {
		k.put(fleet.ServerKey{Account: a, Region: region.Name}, "v1")
	}
	for _, a := range accounts {
		m := &moving{key: fleet.ServerKey{Account: a, Region: region.Name}}
		m.before = k.converged(m.key, "v1")
		list = append(list, m)
	}
	for _, b := range boxes(t, region.Name) {
		for _, m := range list {
			if strings.HasPrefix(b.name(), m.before.Instance+"-") {
				m.box = b
			}
		}
	}
	return k, list
}

func (k *kurad) putTemplate(name, pattern string, opts ...api.PutOptions) api.Written[api.HostTemplate] {
	k.t.Helper()
	w, err := k.client.PutHostTemplate(k.t.Context(), fleet.HostTemplate{Name: name, Pattern: pattern}, append(opts, api.PutOptions{})[0])
	if err != nil {
		k.t.Fatal(err)
	}
	return w
}

func (k *kurad) putAccount(a fleet.Account, opts ...api.PutOptions) api.Written[api.Account] {
	k.t.Helper()
	w, err := k.client.PutAccount(k.t.Context(), a, append(opts, api.PutOptions{})[0])
	if err != nil {
		k.t.Fatal(err)
	}
	return w
}

// wantMoves checks that warnings say what moves where, and that nothing else is meant.
func wantMoves(t *testing.T, warnings []fleet.Warning, moves ...*moving) {
	t.Helper()
	var codes []fleet.WarningCode
	text := ""
	for _, w := range warnings {
		codes = append(codes, w.Code)
		text += w.Detail + "\n"
	}
	if d := cmp.Diff([]fleet.WarningCode{fleet.WarnHostsMove, fleet.WarnNoAlias}, codes); d != "" {
		t.Errorf("warnings (-want +got):\n%s\n%s", d, text)
	}
	for _, m := range moves {
		if want := fmt.Sprintf("server %s moves from %s to %s", m.key, m.before.Hosts.Public, m.host); !strings.Contains(text, want) {
			t.Errorf("the warnings do not say %q:\n%s", want, text)
		}
	}
	if !strings.Contains(text, "containers route no old hosts") {
		t.Errorf("the warnings do not say that containers route no old hosts:\n%s", text)
	}
}

// waits checks that a server stays published where it was while its new host does not resolve.
func (m *moving) waits(k *kurad) {
	t := k.t
	t.Helper()
	v := k.until(m.key, "waits for its new host", func(v fleet.ServerView) bool {
		return v.Reason == fleet.ReasonURLMove && slices.ContainsFunc(v.Conditions, func(c fleet.Condition) bool {
			return c.Type == fleet.ConditionURLConverged && c.Status == fleet.False && strings.Contains(c.Message, string(fleet.ReasonNotResolvable))
		})
	})
	if v.PublishedURL != m.before.PublishedURL || v.Hosts.Public != m.host || v.Status != fleet.StatusActive || v.Plan != nil {
		t.Errorf("%s while it waits: %s", m.key, brief(v))
	}
	k.ticks(m.key, 3)
	if version, err := up(t, m.before.PublishedURL); err != nil || version != "v1" {
		t.Errorf("the old url %s answers %q, %v", m.before.PublishedURL, version, err)
	}
}

// moved checks that a server has moved, in one write, and that nothing else happened to it.
func (m *moving) moved(k *kurad) fleet.ServerView {
	t := k.t
	t.Helper()
	v := k.until(m.key, "moves", func(v fleet.ServerView) bool { return isConverged(v) && strings.Contains(v.PublishedURL, m.host+":") })
	if version, err := up(t, v.PublishedURL); err != nil || version != "v1" {
		t.Errorf("the new url %s answers %q, %v", v.PublishedURL, version, err)
	}
	if version, err := up(t, m.before.PublishedURL); err != nil || version != "v1" {
		t.Errorf("the old url %s answers %q, %v", m.before.PublishedURL, version, err)
	}
	if d := cmp.Diff([]string{m.before.PublishedURL, v.PublishedURL}, m.stop()); d != "" {
		t.Errorf("%s: what was published (-want +got):\n%s", m.key, d)
	}
	if len(v.Aliases) != 1 || v.Aliases[0].Host != m.before.Hosts.Public || v.Aliases[0].Until == nil {
		t.Errorf("%s: aliases %+v, want %s with its time", m.key, v.Aliases, m.before.Hosts.Public)
	}
	m.untouched(k)
	return v
}

// untouched checks that the container and the deployments are those from before.
func (m *moving) untouched(k *kurad) {
	t := k.t
	t.Helper()
	found := false
	for _, b := range boxes(t, m.key.Region) {
		if b.name() == m.box.name() {
			found = true
			if d := cmp.Diff(m.box, b); d != "" {
				t.Errorf("%s: the container (-before +after):\n%s", m.key, d)
			}
		}
	}
	if !found {
		t.Errorf("%s: container %s is gone", m.key, m.box.name())
	}
	if list := k.deployments(m.key); len(list) != 1 {
		t.Errorf("%s: %d deployments, want the one from before: %+v", m.key, len(list), list)
	}
	v := k.until(m.key, "is there", func(fleet.ServerView) bool { return true })
	if d := cmp.Diff(m.before.Ports, v.Ports); d != "" || v.Instance != m.before.Instance {
		t.Errorf("%s: instance %s, ports (-before +after):\n%s", m.key, v.Instance, d)
	}
}

// to says where a server will move, and hides that host from resolvers for now.
func (m *moving) to(k *kurad, host string) {
	m.host = host
	real.dns.Hide(host)
	k.t.Cleanup(func() { real.dns.Remove(host) })
	m.stop = k.published(m.key)
}

func TestH8_L33_aRenamedAccountMovesOnceItsNewHostAnswers(t *testing.T) {
	t.Parallel()
	const period = 40 * time.Second // far above what the test does while the alias lives
	k, two := fleetOfTwo(t, region("eu-rename"), [2]string{"ren", "stays"}, "", "--alias-period", period.String())
	m, other := two[0], two[1]
	m.to(k, "renewed-eu-rename-staging.kura.test")
	renamed := fleet.Account{ID: "ren", Handle: "renewed"}

	wantMoves(t, k.putAccount(renamed, api.PutOptions{DryRun: true}).Warnings, m)
	wantMoves(t, k.putAccount(renamed).Warnings, m)
	m.waits(k)

	// Another one cannot have the host that is still published.
	k.putTemplate("bare", "{account_handle}{env_suffix}.kura.test")
	bare := region("bare", func(r *fleet.Region) { r.Hosts.Public = "bare" })
	k.putRegion(bare)
	thief := fleet.ServerKey{Account: "thief", Region: bare.Name}
	k.putAccount(fleet.Account{ID: "thief", Handle: strings.TrimSuffix(m.before.Hosts.Public, "-staging.kura.test")})
	refuse := func(when string) {
		t.Helper()
		_, err := k.client.PutServer(t.Context(), fleet.Server{Account: thief.Account, Region: thief.Region, ImageTag: "v1"}, api.PutOptions{})
		if fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), thief.String()) || !strings.Contains(err.Error(), m.key.String()) || !strings.Contains(err.Error(), m.before.Hosts.Public) {
			t.Errorf("%s, a server that renders the old host got %v; want a conflict that names both and the host", when, err)
		}
	}
	refuse("while the old host is published")

	real.dns.Remove(m.host)
	moved := m.moved(k)
	if left := time.Until(*moved.Aliases[0].Until); left <= 0 || left > period {
		t.Errorf("the alias is kept for another %s, want at most %s", left, period)
	}
	refuse("while the old host is an alias")

	// Back within the period, and forth again.
	back := k.putAccount(fleet.Account{ID: "ren"})
	if len(back.Warnings) == 0 || back.Warnings[0].Code != fleet.WarnHostsMove {
		t.Errorf("warnings of the way back: %+v", back.Warnings)
	}
	k.until(m.key, "moves back", func(v fleet.ServerView) bool {
		return isConverged(v) && v.PublishedURL == m.before.PublishedURL && len(v.Aliases) == 1 && v.Aliases[0].Host == m.host
	})
	k.putAccount(renamed)
	k.until(m.key, "moves again", func(v fleet.ServerView) bool { return isConverged(v) && v.PublishedURL == moved.PublishedURL })
	m.untouched(k)

	k.until(m.key, "gives the old host up", func(v fleet.ServerView) bool { return len(v.Aliases) == 0 })
	if reasons, said := k.events(m.key); !slices.Contains(reasons, "HostFreed") {
		t.Errorf("no event says that the host is free:\n%s", said)
	}
	k.put(thief, "v1")
	if v := k.converged(thief, "v1"); v.Hosts.Public != m.before.Hosts.Public {
		t.Errorf("the host that is free again was given as %s", v.Hosts.Public)
	}
	other.host = other.before.Hosts.Public
	other.untouched(k)
	if v := k.converged(other.key, "v1"); v.PublishedURL != other.before.PublishedURL || len(v.Aliases) != 0 {
		t.Errorf("the other server moved: %s", brief(v))
	}
}

func TestH8_P15_aChangedPatternMovesEveryServerOnce(t *testing.T) {
	t.Parallel()
	k, two := fleetOfTwo(t, region("eu-pattern"), [2]string{"pata", "patb"}, "")
	const pattern = "c-{account_handle}-{cluster_id}{env_suffix}.kura.test"
	for _, m := range two {
		m.to(k, "c-"+m.before.Hosts.Public)
	}
	wantMoves(t, k.putTemplate("public", pattern, api.PutOptions{DryRun: true}).Warnings, two...)
	wantMoves(t, k.putTemplate("public", pattern).Warnings, two...)
	for _, m := range two {
		m.waits(k)
	}
	k.kill() // the move goes on in another life of the daemon
	k.start()
	for _, m := range two {
		real.dns.Remove(m.host)
	}
	for _, m := range two {
		v := m.moved(k)
		if left := time.Until(*v.Aliases[0].Until); left < 7*24*time.Hour-time.Hour || left > 7*24*time.Hour {
			t.Errorf("the alias is kept for another %s, want 7 days", left)
		}
	}
}

func TestH8_aRegionThatNamesAnotherTemplateMovesItsServers(t *testing.T) {
	t.Parallel()
	k, two := fleetOfTwo(t, region("eu-hosts"), [2]string{"hosta", "hostb"}, "")
	k.putTemplate("other", "o-{account_handle}-{cluster_id}{env_suffix}.kura.test")
	for _, m := range two {
		m.to(k, "o-"+m.before.Hosts.Public)
	}
	wantMoves(t, k.putRegion(region("eu-hosts", func(r *fleet.Region) { r.Hosts.Public = "other" })).Warnings, two...)
	for _, m := range two {
		m.waits(k)
		real.dns.Remove(m.host)
	}
	for _, m := range two {
		m.moved(k)
	}
}

// A document that names the host is another document under another handle: the server is
// replaced, and the plan says so.
func TestH8_aDocumentThatNamesTheHostIsReplacedByARename(t *testing.T) {
	t.Parallel()
	named := region("eu-named", cache(func(s *fleet.Service) { s.Env["KURA_URL"] = "https://{public_host}" }))
	k, two := fleetOfTwo(t, named, [2]string{"nam", "namb"}, "")
	m := two[0]
	w := k.putAccount(fleet.Account{ID: "nam", Handle: "named"}, api.PutOptions{DryRun: true})
	var replaced string
	for _, warning := range w.Warnings {
		if warning.Code == fleet.WarnReplace {
			replaced = warning.Detail
		}
	}
	if !strings.Contains(replaced, "1 server is replaced") || !strings.Contains(replaced, m.key.String()) {
		t.Errorf("the plan does not warn that %s is replaced: %+v", m.key, w.Warnings)
	}
	k.putAccount(fleet.Account{ID: "nam", Handle: "named"})
	v := k.until(m.key, "is replaced and moves", func(v fleet.ServerView) bool {
		return isConverged(v) && strings.HasPrefix(v.PublishedURL, "https://named-")
	})
	if v.Containers[0].ID == m.before.Containers[0].ID {
		t.Error("its container is the old one, which has the old host in its environment")
	}
	if list := k.deployments(m.key); len(list) != 1 {
		t.Errorf("a rename made a deployment: %+v", list)
	}
}
