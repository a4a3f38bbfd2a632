package cloudflare_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

func TestSocketless_anHourCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := cloudflare.New(cloudflare.Options{
			Zones: []cloudflare.Zone{{Name: zoneName}}, Tokens: []cloudflare.Token{{Value: "secret"}}, Limit: cloudflare.Limit{Calls: 2}, Socketless: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		call := func(ctx context.Context, method, path, body string) (int, string, error) {
			request, err := http.NewRequestWithContext(ctx, method, e.URL()+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "Bearer secret")
			response, err := e.Client().Do(request)
			if err != nil {
				return 0, "", err
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			return response.StatusCode, string(text), err
		}
		records := zonePath + "/dns_records"
		if status, text, err := call(t.Context(), "POST", records, `{"type":"A","name":"a","content":"192.0.2.1"}`); status != 200 || err != nil {
			t.Errorf("%d %s %v", status, text, err)
		}
		if answer, err := e.DNS().Exchange(t.Context(), new(dns.Msg).SetQuestion("a.kura.test.", dns.TypeA), "udp"); err != nil || len(answer.Answer) != 1 {
			t.Errorf("%v %v", answer, err)
		}
		began := time.Now()
		in, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		e.Break(cloudflare.Fault{Kind: cloudflare.Hang, Times: 1})
		if _, _, err := call(in, "GET", records, ""); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Hour {
			t.Errorf("hangs: %v after %s", err, time.Since(began))
		}
		e.Break(cloudflare.Fault{Kind: cloudflare.Reset, Times: 1})
		if _, _, err := call(t.Context(), "GET", records, ""); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("reset: %v", err)
		}
		e.Break(cloudflare.Fault{Kind: cloudflare.Slow, Delay: time.Minute, Times: 1})
		if status, _, err := call(t.Context(), "GET", records, ""); status != 200 || err != nil || time.Since(began) != time.Hour+time.Minute {
			t.Errorf("slow: %d %v after %s", status, err, time.Since(began))
		}
		for i, want := range []int{200, http.StatusTooManyRequests} { // the slow one was the first of a new window
			if status, _, err := call(t.Context(), "GET", records, ""); status != want || err != nil {
				t.Errorf("call %d of a budget of 2: %d %v, want %d", i+2, status, err, want)
			}
		}
		time.Sleep(5 * time.Minute) // the bubble's
		if status, _, _ := call(t.Context(), "GET", records, ""); status != 200 {
			t.Errorf("five minutes later: %d", status)
		}
		e.DNS().SetFault(world.DNSFault{Drop: true})
		in, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.DNS().Exchange(in, new(dns.Msg).SetQuestion("a.kura.test.", dns.TypeA), "udp"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a question that is dropped: %v", err)
		}
		e.DNS().SetFault(world.DNSFault{})
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if _, _, err := call(t.Context(), "GET", records, ""); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("closed: %v", err)
		}
	})
}
