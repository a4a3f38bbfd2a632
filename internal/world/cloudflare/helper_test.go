package cloudflare_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/miekg/dns"

	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

// clock is a time that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

const zoneName = "kura.test"

var zonePath = "/zones/" + cloudflare.ZoneID(zoneName)

type rig struct {
	*cloudflare.Emulator
	t     *testing.T
	clock *clock
}

// start starts an emulator with the zone kura.test and the token "secret"; change adapts its options.
func start(t *testing.T, change func(*cloudflare.Options)) *rig {
	t.Helper()
	clock := &clock{now: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)}
	options := cloudflare.Options{
		Zones:  []cloudflare.Zone{{Name: zoneName}},
		Tokens: []cloudflare.Token{{Value: "secret", Name: "kurad"}},
		Seed:   1, Now: clock.Now,
	}
	if change != nil {
		change(&options)
	}
	e, err := cloudflare.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return &rig{Emulator: e, t: t, clock: clock}
}

func TestNew_namesWhatIsWrongOfAZone(t *testing.T) {
	for _, zones := range [][]cloudflare.Zone{nil, {{}}, {{Name: zoneName, Plan: "gold"}}} {
		if _, err := cloudflare.New(cloudflare.Options{Zones: zones}); err == nil || !strings.Contains(err.Error(), "zone") {
			t.Errorf("%v: %v, want an error", zones, err)
		}
	}
}

// answer is what a call got.
type answer struct {
	Status   int
	Header   http.Header
	Success  bool
	Errors   []problem
	Messages []problem
	Result   json.RawMessage
	Info     struct {
		Page, Count int
		PerPage     int `json:"per_page"`
		TotalCount  int `json:"total_count"`
		TotalPages  int `json:"total_pages"`
	} `json:"result_info"`
	Text string `json:"-"`
}

type problem struct {
	Code    int
	Message string
	Chain   []problem `json:"error_chain"`
}

func (a answer) code() int {
	if len(a.Errors) == 0 {
		return 0
	}
	return a.Errors[0].Code
}

// as returns the result.
func as[T any](t *testing.T, a answer) T {
	t.Helper()
	var result T
	if err := json.Unmarshal(a.Result, &result); err != nil || !a.Success {
		t.Fatalf("answer %d %s: %v", a.Status, a.Text, err)
	}
	return result
}

// try calls with the token; the error is that of a call without an answer.
func (r *rig) try(token, method, path string, body any) (answer, error) {
	r.t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			r.t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.URL()+path, bytes.NewReader(text))
	if err != nil {
		r.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	a := answer{Status: response.StatusCode, Header: response.Header, Text: string(read)}
	if err == nil && response.Header.Get("Content-Type") == "application/json" {
		err = json.Unmarshal(read, &a)
	}
	return a, err
}

// call calls with the token "secret".
func (r *rig) call(method, path string, body any) answer {
	r.t.Helper()
	a, err := r.try("secret", method, path, body)
	if err != nil {
		r.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// record is a body.
func record(kind, name, content string) map[string]any {
	return map[string]any{"type": kind, "name": name, "content": content}
}

// made is a record that was created.
func (r *rig) made(body map[string]any) cloudflare.Record {
	r.t.Helper()
	return as[cloudflare.Record](r.t, r.call("POST", zonePath+"/dns_records", body))
}

// ask asks the DNS server; subnet is that of an EDNS client subnet, or "".
func (r *rig) ask(network, name string, kind uint16, subnet string) *dns.Msg {
	r.t.Helper()
	question := new(dns.Msg).SetQuestion(dns.Fqdn(name), kind)
	if subnet != "" {
		prefix := netip.MustParsePrefix(subnet)
		family := uint16(1)
		if prefix.Addr().Is6() {
			family = 2
		}
		question.SetEdns0(1232, false)
		opt := question.IsEdns0()
		opt.Option = append(opt.Option, &dns.EDNS0_SUBNET{
			Code: dns.EDNS0SUBNET, Family: family, SourceNetmask: uint8(prefix.Bits()), Address: net.IP(prefix.Addr().AsSlice()),
		})
	}
	client := &dns.Client{Net: network, Timeout: time.Minute}
	reply, _, err := client.Exchange(question, r.DNS().Addr())
	if err != nil {
		r.t.Fatalf("%s %s: %v", name, dns.TypeToString[kind], err)
	}
	return reply
}
