package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/miekg/dns"

	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

func TestRunCloudflare_isOneForOtherProcesses(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	printed, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"cloudflare", "--zone", "kura.test=pro", "--zone", "other.test", "--token", "kurad=secret"}, out)
		out.Close()
		ended <- err
	}()
	var where struct{ DNS, URL, Control string }
	if err := json.NewDecoder(printed).Decode(&where); err != nil {
		t.Fatal(err)
	}
	call := func(method, url, body string) string {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer secret")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	records := where.URL + "/zones/" + cloudflare.ZoneID("kura.test") + "/dns_records"
	if text := call("POST", records, `{"type":"A","name":"a.kura.test","content":"192.0.2.1"}`); !strings.Contains(text, `"success":true`) {
		t.Error(text)
	}
	if text := call("GET", where.Control+"/table", ""); text != "a.kura.test  A 192.0.2.1 ttl=1\n" {
		t.Error(text)
	}
	if answer, err := dns.Exchange(new(dns.Msg).SetQuestion("a.kura.test.", dns.TypeA), where.DNS); err != nil || len(answer.Answer) != 1 {
		t.Errorf("DNS: %v %v", answer, err)
	}
	if text := call("GET", where.URL+"/zones?name=kura.test", ""); !strings.Contains(text, `"legacy_id":"pro"`) {
		t.Error(text)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("run ended with %v, want nil", err)
	}
}

func TestRunCloudflare_namesTheFlagThatIsWrong(t *testing.T) {
	if err := run(t.Context(), []string{"cloudflare", "--token", "secret"}, io.Discard); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("%v, want an error that names --token", err)
	}
}
