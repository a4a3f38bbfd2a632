//go:build externaldns

package dns_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/dns/cloudflare"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	emulator "github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

// Who made a record, by the name of the token, or of who seeded it.
const (
	ours   = "staging"
	theirs = "external-dns/theirs"
)

// externalDNS is the program of internal/tools/external-dns.
type externalDNS struct {
	t   *testing.T
	in  io.Writer
	out *json.Decoder
}

// endpoint is what it is told to publish.
type endpoint struct {
	Name, Type string
	Targets    []string
}

func newExternalDNS(t *testing.T, api string, naming dns.Naming) *externalDNS {
	t.Helper()
	program := os.Getenv("KURA_EXTERNAL_DNS")
	if program == "" {
		t.Fatal("KURA_EXTERNAL_DNS does not name the program of internal/tools/external-dns: make test-external-dns builds and names it")
	}
	cmd := exec.CommandContext(t.Context(), program, "theirs", "kura.test", naming.Prefix, naming.Suffix)
	cmd.Env = append(os.Environ(), "CF_API_TOKEN=theirs", "CLOUDFLARE_BASE_URL="+api)
	cmd.Stderr = t.Output()
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if errIn != nil || errOut != nil {
		t.Fatal(errIn, errOut)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the test's context has ended it
	return &externalDNS{t, in, json.NewDecoder(out)}
}

// round has it publish exactly these, and returns what it said.
func (x *externalDNS) round(wishes []endpoint) []string {
	x.t.Helper()
	if err := json.NewEncoder(x.in).Encode(wishes); err != nil {
		x.t.Fatal(err)
	}
	var answer struct {
		Error string
		Said  []string
	}
	if err := x.out.Decode(&answer); err != nil {
		x.t.Fatal(err)
	}
	if answer.Error != "" {
		x.t.Errorf("external-dns failed: %s", answer.Error)
	}
	return answer.Said
}

// between is an API where another is quicker: do is done once, before the next change.
type between struct {
	dns.API
	do func()
}

func (b *between) Apply(ctx context.Context, batch dns.Batch) error {
	if do := b.do; do != nil {
		b.do = nil
		do()
	}
	return b.API.Apply(ctx, batch)
}

// shared is a zone that external-dns and kurad write to.
type shared struct {
	t         *testing.T
	cloud     *emulator.Emulator
	rand      *rand.Rand
	api       *between
	publisher *dns.Publisher
	peer      *externalDNS
	told      bool
	txt       map[string]string // hosts, by the names of their TXT records
	seen      int               // changes
	made      map[string]string // who made a record, by id
	wished    map[string]bool   // hosts that kurad was told to publish
	blocked   [2]int            // wishes of external-dns and of kurad
}

var sharedHosts = func() (hosts []string) {
	for i := range 16 {
		hosts = append(hosts, fmt.Sprintf("s%02d.kura.test", i))
	}
	return append(hosts, "a-s00.kura.test", "a-s01.kura.test", "aaaa-s02.kura.test") // TXT records have such names
}()

func newShared(t *testing.T, seed uint64, peers, kurads dns.Naming, old emulator.TXTForm) *shared {
	t.Helper()
	e, err := emulator.New(emulator.Options{
		Zones: []emulator.Zone{{Name: "kura.test"}}, Seed: seed,
		Tokens: []emulator.Token{{Value: "secret", Name: ours, User: "we"}, {Value: "theirs", Name: theirs, User: "they"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	t.Setenv("KURA_TEST_TOKEN", "secret")
	zone := dns.Zone{Domain: "kura.test", Token: "env:KURA_TEST_TOKEN", API: e.URL(), TXT: kurads}
	zones, err := cloudflare.Open([]dns.Zone{zone})
	if err != nil {
		t.Fatal(err)
	}
	s := &shared{
		t: t, cloud: e, rand: rand.New(rand.NewPCG(seed, 11)), api: &between{API: zones["kura.test"]}, peer: newExternalDNS(t, e.URL(), peers), told: peers == kurads,
		txt: map[string]string{}, made: map[string]string{}, wished: map[string]bool{},
	}
	s.publisher = &dns.Publisher{Zone: zone, Environment: fleet.Environment{Name: "staging", Suffix: "-staging"}, API: s.api}
	for _, host := range sharedHosts {
		for _, kind := range []string{"A", "AAAA", "CNAME"} {
			s.txt[peers.Name(host, kind)], s.txt[kurads.Name(host, kind)] = host, host
		}
	}
	var others []emulator.Record // so that half of a zone is never gone; and a host of nobody
	for i := range 120 {
		others = append(others, emulator.Record{Name: fmt.Sprintf("other-%d.kura.test", i), Type: "A", Content: "203.0.113.1"})
	}
	if err := e.Seed(emulator.ByHand, append(others, emulator.Record{Name: sharedHosts[15], Type: "A", Content: "203.0.113.1"})...); err != nil {
		t.Fatal(err)
	}
	for _, host := range sharedHosts[3:6] {
		if old != "" {
			s.txt[host] = host
			if err := e.SeedExternalDNS("theirs", "ingress/kura/test", old, emulator.Record{Name: host, Type: "A", Content: "192.0.2.1", TTL: 1}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// old reports whether an old external-dns published the host: nothing but A and AAAA can replace that.
func (s *shared) old(host string) bool { return s.txt[host] == host }

// look checks that nobody touched what another made, and says who has each host.
func (s *shared) look(when string) map[string]string {
	s.t.Helper()
	history := s.cloud.History()
	for _, c := range history[s.seen:] {
		if c.Before == "" {
			s.made[c.ID] = c.By
		} else if s.made[c.ID] != c.By {
			s.t.Errorf("%s: what %s made was touched by %s", when, s.made[c.ID], c)
		}
	}
	s.seen = len(history)
	has := map[string]string{}
	at := func(host string, records []emulator.Record) {
		for _, r := range records {
			if by := s.made[r.ID]; has[host] == "" {
				has[host] = by
			} else if has[host] != by {
				s.t.Errorf("%s: %s is of %s and of %s", when, host, has[host], by)
			}
		}
	}
	for _, host := range sharedHosts {
		for _, kind := range []string{"A", "AAAA", "CNAME"} {
			at(host, s.cloud.Records(host, kind))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.txt)) {
		at(s.txt[name], s.cloud.Records(name, "TXT"))
	}
	return has
}

// theirWishes draws what external-dns is to publish.
func (s *shared) theirWishes() (wishes []endpoint) {
	for _, host := range sharedHosts {
		ip := func(format string) []string {
			return []string{fmt.Sprintf(format, 1+s.rand.IntN(3)), fmt.Sprintf(format, 4+s.rand.IntN(3))}[:1+s.rand.IntN(2)]
		}
		switch n := s.rand.IntN(10); {
		case n < 2:
			wishes = append(wishes, endpoint{host, "A", ip("192.0.2.%d")})
		case n < 3:
			wishes = append(wishes, endpoint{host, "A", ip("192.0.2.%d")}, endpoint{host, "AAAA", ip("2001:db8:2::%d")})
		case n < 4:
			wishes = append(wishes, endpoint{host, "AAAA", ip("2001:db8:2::%d")})
		case n < 5 && strings.HasPrefix(host, "s") && !s.old(host):
			wishes = append(wishes, endpoint{host, "CNAME", []string{fmt.Sprintf("lb%d.their.test", s.rand.IntN(3))}})
		}
	}
	return wishes
}

// ourWishes draws what kurad is to publish; what it was told before it is to withdraw.
func (s *shared) ourWishes() (tasks []fleet.Effect) {
	for i, host := range sharedHosts {
		e := fleet.Effect{Kind: fleet.TaskPublish, Name: host, DNS: fleet.DNSChange{
			Owner: "kura-staging", Resource: fleet.ResourceOf("staging", fleet.ServerKey{Account: fmt.Sprintf("a%d", i), Region: "eu"}),
		}}
		switch n := s.rand.IntN(10); {
		case n < 3:
			e.DNS.Type, e.DNS.Content = "A", fmt.Sprintf("198.51.100.%d", 1+s.rand.IntN(3))
		case n < 4:
			e.DNS.Type, e.DNS.Content = "AAAA", fmt.Sprintf("2001:db8:1::%d", 1+s.rand.IntN(3))
		case n < 5 && strings.HasPrefix(host, "s"):
			e.DNS.Type, e.DNS.Content = "CNAME", fmt.Sprintf("lb%d.our.test", s.rand.IntN(3))
		case s.wished[host]:
			e.Kind = fleet.TaskWithdraw
		default:
			continue
		}
		s.wished[host] = e.Kind == fleet.TaskPublish
		tasks = append(tasks, e)
	}
	return tasks
}

// they do a round, and what they have and say afterwards is as it should be.
func (s *shared) they(when string, wishes []endpoint) {
	s.t.Helper()
	before := s.look(when)
	said := s.peer.round(wishes)
	has := s.look(when + ", external-dns")
	wanted := map[string]bool{}
	for _, w := range wishes {
		wanted[w.Name] = true
		if by := before[w.Name]; by != "" && by != theirs {
			s.blocked[0]++
			if has[w.Name] != by || !slices.ContainsFunc(said, func(line string) bool {
				return strings.Contains(line, w.Name) && strings.Contains(line, "owner id does not match")
			}) {
				s.t.Errorf("%s: external-dns wants %+v of %s, which is %s's afterwards, and says\n%s", when, w, by, has[w.Name], strings.Join(said, "\n"))
			}
		} else if is := contents(s.cloud.Records(w.Name, w.Type)); has[w.Name] != theirs || !slices.Equal(is, slices.Sorted(slices.Values(w.Targets))) {
			s.t.Errorf("%s: external-dns wants %+v, which was free, and there is %s of %s:\n%s", when, w, is, has[w.Name], strings.Join(said, "\n"))
		}
	}
	for host, by := range has {
		if by == theirs && !wanted[host] && !s.old(host) { // it leaves the old TXT record
			s.t.Errorf("%s: %s is still external-dns' own", when, host)
		}
	}
}

// we do a round, in which they do one if they are quicker.
func (s *shared) we(when string, tasks []fleet.Effect, meanwhile func()) {
	s.t.Helper()
	before := s.look(when)
	s.api.do = meanwhile
	answers := s.publisher.Run(s.t.Context(), tasks)
	if do := s.api.do; do != nil { // there was nothing to change
		s.api.do = nil
		do()
	}
	has := s.look(when + ", kurad")
	for i, e := range tasks {
		o := answers[i]
		others := before[e.Name] != "" && before[e.Name] != ours || has[e.Name] != "" && has[e.Name] != ours
		switch {
		case e.Kind == fleet.TaskWithdraw:
			if o.Class != fleet.ClassOK || has[e.Name] == ours {
				s.t.Errorf("%s: %s answered %+v, and it is of %s", when, e.Describe(), o, has[e.Name])
			}
		case others:
			s.blocked[1]++
			by := before[e.Name] + has[e.Name]
			named := !s.told || !strings.Contains(by, theirs) || strings.Contains(o.Message, `"theirs"`)
			if o.Class != fleet.ClassRefused || o.Reason != fleet.ReasonForeignOwner || has[e.Name] == ours || !named {
				s.t.Errorf("%s: %s, which is of %s, answered %+v", when, e.Describe(), by, o)
			}
		default:
			var is []emulator.Record
			for _, kind := range []string{"A", "AAAA", "CNAME"} {
				is = append(is, s.cloud.Records(e.Name, kind)...)
			}
			if txt := s.cloud.Records(s.publisher.Zone.TXT.Name(e.Name, e.DNS.Type), "TXT"); o.Class != fleet.ClassOK || len(is) != 1 || is[0].Type != e.DNS.Type || is[0].Content != e.DNS.Content || len(txt) == 0 {
				s.t.Errorf("%s: %s, which was free, answered %+v, and there is %v %v", when, e.Describe(), o, is, txt)
			}
		}
	}
}

func contents(records []emulator.Record) (all []string) {
	for _, r := range records {
		all = append(all, r.Content)
	}
	slices.Sort(all)
	return all
}

// external-dns and kurad in one zone, with wishes that change and overlap: neither touches what is
// the other's, what is free is whose comes first, and each says what it cannot have. In every third
// round external-dns writes between what kurad reads and what kurad writes.
func TestD4_externalDNSAndKuradShareAZone(t *testing.T) {
	for _, c := range []struct {
		name          string
		peers, kurads dns.Naming
		old           emulator.TXTForm
	}{
		{name: "as they come"},
		{name: "beside the form of before 0.12", old: emulator.TXTOld},
		{name: "beside both forms", old: emulator.TXTBoth},
		{name: "prefix", peers: dns.Naming{Prefix: "txt."}, kurads: dns.Naming{Prefix: "txt."}},
		{name: "prefix with type", peers: dns.Naming{Prefix: "own-%{record_type}-"}, kurads: dns.Naming{Prefix: "own-%{record_type}-"}},
		{name: "suffix", peers: dns.Naming{Suffix: "-txt"}, kurads: dns.Naming{Suffix: "-txt"}},
		{name: "a prefix that kurad was not told of", peers: dns.Naming{Prefix: "theirs-"}},
		{name: "a prefix of kurad's alone", kurads: dns.Naming{Prefix: "our-"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newShared(t, 1, c.peers, c.kurads, c.old)
			for round := range 20 {
				when, wishes, tasks := fmt.Sprintf("round %d", round), s.theirWishes(), s.ourWishes()
				they := func() { s.they(when, wishes) }
				switch s.rand.IntN(3) {
				case 0:
					they()
					s.we(when, tasks, nil)
				case 1:
					s.we(when, tasks, nil)
					they()
				case 2:
					s.we(when+", together", tasks, they)
				}
			}
			if s.blocked[0] < 20 || s.blocked[1] < 20 {
				t.Errorf("of external-dns %d wishes were blocked, of kurad's %d: they hardly met", s.blocked[0], s.blocked[1])
			}
			var back []fleet.Effect
			for i, host := range sharedHosts {
				back = append(back, fleet.Effect{Kind: fleet.TaskWithdraw, Name: host, DNS: fleet.DNSChange{
					Owner: "kura-staging", Resource: fleet.ResourceOf("staging", fleet.ServerKey{Account: fmt.Sprintf("a%d", i), Region: "eu"}),
				}})
			}
			s.we("at the end", back, nil)
			s.they("at the end", nil)
			for host, by := range s.look("at the end") {
				if by != emulator.ByHand && !s.old(host) {
					t.Errorf("%s is still of %s", host, by)
				}
			}
			t.Logf("%d changes; blocked wishes of external-dns %d, of kurad %d", len(s.cloud.History()), s.blocked[0], s.blocked[1])
		})
	}
}
