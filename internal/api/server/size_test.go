package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// heavy is a server whose overrides take so many bytes.
func heavy(account string, bytes int) fleet.Server {
	s := srv(account, "eu", "v1")
	env := map[string]string{}
	for i := 0; bytes > 0; i++ {
		env[fmt.Sprint("V", i)] = strings.Repeat("x", min(bytes, 16<<10))
		bytes -= 16 << 10
	}
	s.Overrides = &fleet.Overrides{Containers: &fleet.ContainerOverrides{Services: map[string]fleet.ServiceOverride{"cache": {Env: env}}}}
	return s
}

func TestG8_aDeclarationIsBounded(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(heavy("acme", 60<<10))
	_, err := w.client.PutServer(t.Context(), heavy("acme", 64<<10), api.PutOptions{})
	wantFault(t, err, fleet.CodeInvalid, "/overrides", "at most 65536 are allowed", "variable set")
	r := region("eu")
	cache := r.Containers.Services["cache"]
	cache.Env = heavy("", 240<<10).Overrides.Containers.Services["cache"].Env
	r.Containers.Services["cache"] = cache
	w.must(w.client.PutRegion(t.Context(), r, api.PutOptions{}))
	cache.Env = heavy("", 256<<10).Overrides.Containers.Services["cache"].Env
	r.Containers.Services["cache"] = cache
	_, err = w.client.PutRegion(t.Context(), r, api.PutOptions{})
	wantFault(t, err, fleet.CodeInvalid, "/containers", "at most 262144 are allowed", "variable set")
}

// What is wrong with a body is said of the first few places, and none of it at length.
func TestG8_anErrorIsSmallerThanWhatItIsAbout(t *testing.T) {
	w := newWorld(t)
	w.viewed()
	var keys []string
	for i := range 30_000 {
		keys = append(keys, fmt.Sprintf(`"unknown-%d":1`, i))
	}
	long := strings.Repeat("x", 900<<10)
	for name, body := range map[string]string{
		"many unknown fields":  "{" + strings.Join(keys, ",") + "}",
		"one of a long name":   `{"` + long + `":1}`,
		"a long value":         `{"id":"` + long + `"}`,
		"a long number":        `{"labels":` + strings.Repeat("1", 900<<10) + `}`,
		"a label of long name": `{"id":"acme","labels":{"` + long + `":""}}`,
	} {
		resp, b := w.do("PUT", "/v1/accounts/acme", body, w.admin)
		if resp.StatusCode != 422 || len(b) > 16<<10 {
			t.Errorf("%s: %d with %d bytes: %.200s", name, resp.StatusCode, len(b), b)
		}
		if name == "many unknown fields" && !strings.Contains(string(b), "and 29980 more") {
			t.Errorf("it does not say how many there are: %s", b)
		}
	}
	if resp, b := w.do("GET", "/v1/servers?limit="+strings.Repeat("9", 10<<10), "", w.admin); resp.StatusCode != 422 || len(b) > 16<<10 {
		t.Errorf("a long parameter: %d with %d bytes", resp.StatusCode, len(b))
	}
}

// A page ends where it would become too large, and the list goes on behind it.
func TestG8_aPageIsBoundedInBytes(t *testing.T) {
	w := newWorld(t)
	var accounts, regions []string
	for i := range 40 {
		accounts = append(accounts, fmt.Sprintf("acme-%d", i))
	}
	for i := range 20 {
		regions = append(regions, fmt.Sprintf("eu-%d", i))
	}
	w.seed(append(regions, "eu"), accounts...)
	for _, a := range accounts {
		w.put(heavy(a, 60<<10))
	}
	for _, name := range regions {
		r := region(name)
		cache := r.Containers.Services["cache"]
		cache.Env = heavy("", 200<<10).Overrides.Containers.Services["cache"].Env
		r.Containers.Services["cache"] = cache
		w.must(w.client.PutRegion(t.Context(), r, api.PutOptions{}))
	}
	for path, most := range map[string]int{"/v1/servers": 1<<20 + 70<<10, "/v1/regions": 4 << 20} {
		seen, page := 0, ""
		for {
			var list api.List[map[string]any]
			resp, b := w.do("GET", path+"?page="+page, "", w.admin)
			if resp.StatusCode != 200 || len(b) > most {
				t.Fatalf("%s: %d with %d bytes", path, resp.StatusCode, len(b))
			}
			w.getJSON(path+"?page="+page, &list)
			if len(list.Items) == 0 {
				t.Fatalf("%s: an empty page", path)
			}
			seen += len(list.Items)
			if page = list.Next; page == "" {
				break
			}
		}
		if want := map[string]int{"/v1/servers": 40, "/v1/regions": 21}[path]; seen != want {
			t.Errorf("%s: %d items on all pages, want %d", path, seen, want)
		}
	}
	list, err := w.client.ListServers(t.Context(), api.ServerFilter{})
	if err != nil || len(list) != 40 {
		t.Errorf("a client lists %d servers, %v", len(list), err)
	}
}
