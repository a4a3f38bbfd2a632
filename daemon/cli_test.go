package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// ok runs a command that must succeed and returns what it printed.
func ok(t *testing.T, args ...string) string {
	t.Helper()
	out, said, err := kuradCommand(t, args...)
	if err != nil {
		t.Fatalf("kurad %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	return out
}

// refused runs a command that must fail with an error that holds all parts.
func refused(t *testing.T, args []string, parts ...string) {
	t.Helper()
	_, _, err := kuradCommand(t, args...)
	if err == nil {
		t.Errorf("kurad %s was not refused", strings.Join(args, " "))
		return
	}
	for _, p := range parts {
		if !strings.Contains(err.Error(), p) {
			t.Errorf("kurad %s: error %q does not say %q", strings.Join(args, " "), err, p)
		}
	}
}

func TestCLI_asAnOperatorUsesIt(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	p := startInProcess(t, o)
	t.Setenv("KURA_DATA_DIR", o.dataDir)
	if got := ok(t, "status"); !strings.HasPrefix(got, "no servers are declared here\n") {
		t.Errorf("status of an empty fleet: %q", got)
	}
	declareAcme(t, p.client)
	unobserved(t, p.client)

	t.Run("status", func(t *testing.T) {
		table := ok(t, "status")
		for _, want := range []string{"acme/eu", "unobserved", "RuntimeUnreachable", "v1", " never, ", " failed\n", "endpoint local cannot be read for "} {
			if !strings.Contains(table, want) {
				t.Errorf("the table does not say %q:\n%s", want, table)
			}
		}
		var list []fleet.ServerView
		if err := json.Unmarshal([]byte(ok(t, "status", "--region", "eu", "--output", "json")), &list); err != nil || len(list) != 1 || list[0].Verdict != fleet.VerdictUnobserved {
			t.Errorf("as json: %+v, %v", list, err)
		}
		var one struct {
			fleet.ServerView
			Events []fleet.Event `json:"events"`
		}
		if err := json.Unmarshal([]byte(ok(t, "status", "acme/eu", "-o", "json")), &one); err != nil || one.Account != "acme" || one.Verdict != fleet.VerdictUnobserved {
			t.Errorf("one server as json: %+v, %v", one, err)
		}
		if story := ok(t, "status", "acme/eu", "--fresh"); !strings.Contains(story, "unobserved RuntimeUnreachable") || !strings.Contains(story, "seen        never, ") {
			t.Errorf("one server:\n%s", story)
		}
		if got := ok(t, "status", "--account", "umbra"); !strings.Contains(got, "no servers") {
			t.Errorf("of an account without servers: %q", got)
		}
		refused(t, []string{"status", "acme/us"}, "acme/us", "does not exist", "kurad status")
		refused(t, []string{"status", "acme"}, `"acme"`, "<account>/<region>")
		refused(t, []string{"status", "--output", "xml"}, "xml", "json")
		refused(t, []string{"status", "acme/eu", "--region", "eu"}, "acme/eu", "--region")
	})

	t.Run("events", func(t *testing.T) {
		if got := ok(t, "events"); !strings.Contains(got, "nothing has happened yet") && !strings.Contains(got, "acme/eu") {
			t.Errorf("events: %q", got)
		}
		var events []fleet.Event
		if err := json.Unmarshal([]byte(ok(t, "events", "acme/eu", "-o", "json")), &events); err != nil {
			t.Error(err)
		}
		for i := 1; i < len(events); i++ {
			if events[i].At.Before(events[i-1].At) {
				t.Errorf("event %d is older than the one before: the newest are last: %+v", i, events)
			}
		}
		refused(t, []string{"events", "--limit", "0"}, "--limit 0")
		refused(t, []string{"events", "--output", "xml"}, "xml")
		refused(t, []string{"events", "acme"}, "<account>/<region>")
	})

	t.Run("token", func(t *testing.T) {
		secret, said, err := kuradCommand(t, "token", "create", "terraform", "--scope", "write", "--expires", "2160h")
		id := regexp.MustCompile(`^token (\w+) \(terraform\), scope write; it is shown this once\n$`).FindStringSubmatch(said)
		if err != nil || id == nil || strings.Count(secret, "\n") != 1 || strings.Contains(said, strings.TrimSpace(secret)) {
			t.Fatalf("token create printed %q and said %q, %v; want the token alone, and its id", secret, said, err)
		}
		list := ok(t, "token", "list")
		if !regexp.MustCompile(id[1]+` +terraform +write +until 20`).MatchString(list) || !strings.Contains(list, "bootstrap") || strings.Contains(list, strings.TrimSpace(secret)) {
			t.Errorf("token list:\n%s", list)
		}
		path := file(t, secret)
		ok(t, "status", "--token-file", path)
		refused(t, []string{"token", "list", "--token-file", path}, "admin")
		if got := ok(t, "token", "revoke", id[1]); got != "token "+id[1]+" is revoked\n" {
			t.Errorf("token revoke: %q", got)
		}
		if got := ok(t, "token", "list"); !regexp.MustCompile(id[1] + ` +terraform +write +revoked \d+s ago`).MatchString(got) {
			t.Errorf("token list:\n%s", got)
		}
		refused(t, []string{"status", "--token-file", path}, "token")
		refused(t, []string{"token", "revoke", "nosuch"}, `"nosuch"`, "kurad token list")
		refused(t, []string{"token", "create", "x", "--scope", "root"}, `"root"`, "read, write or admin")
	})

	t.Run("version", func(t *testing.T) {
		if got := ok(t, "version"); !strings.HasPrefix(got, "kurad dev (go") || strings.Count(got, "\n") != 1 {
			t.Errorf("version: %q", got)
		}
		if got := ok(t, "version", "--daemon"); !strings.Contains(got, `environment staging, hosts end in "-staging"`) {
			t.Errorf("version --daemon: %q", got)
		}
	})
	if err := p.end(); err != nil {
		t.Error(err)
	}
	refused(t, []string{"status", "--endpoint", p.url()}, p.url(), "does not answer", "is it running")
}

func TestStatusWatch_showsEveryRegionUntilItIsInterrupted(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	p := startInProcess(t, o)
	declareAcme(t, p.client)
	unobserved(t, p.client)
	for _, args := range [][]string{{}, {"--region", "eu"}, {"acme/eu"}} {
		ctx, interrupt := context.WithCancel(t.Context())
		var out lockedBuffer
		c := command()
		c.SetArgs(append([]string{"status", "--watch", "--data-dir", o.dataDir}, args...))
		c.SetOut(&out)
		ended := make(chan error, 1)
		go func() { ended <- c.ExecuteContext(ctx) }()
		soon(t, "it shows the server", func() error {
			select {
			case err := <-ended:
				t.Fatalf("status --watch %v ended by itself: %v", args, err)
			default:
			}
			if !strings.Contains(out.String(), "unobserved") {
				return fmt.Errorf("it shows %q", out.String())
			}
			return nil
		})
		if len(args) == 0 { // a change is shown, in whatever region
			key := fleet.Server{Account: acme.Account, Region: acme.Region, ImageTag: "v2"}
			if _, err := p.client.PutServer(t.Context(), key, api.PutOptions{}); err != nil {
				t.Fatal(err)
			}
			soon(t, "it shows the change", func() error {
				if !strings.Contains(out.String(), " v2 ") {
					return fmt.Errorf("it shows %q", out.String())
				}
				return nil
			})
		}
		interrupt()
		if err := <-ended; err != nil {
			t.Errorf("status --watch %v, interrupted: %v, want no error", args, err)
		}
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// lockedBuffer is written by a command while a test reads it.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestTarget_flagsBeforeTheEnvironmentBeforeTheDataDirectory(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	p := startInProcess(t, o)
	token, err := os.ReadFile(filepath.Join(o.dataDir, tokenFile))
	if err != nil {
		t.Fatal(err)
	}
	good, bad := file(t, string(token)), file(t, "kura_bad_bad\n")
	const nowhere = "http://127.0.0.1:1"
	empty := t.TempDir()
	for name, tt := range map[string]struct {
		env  map[string]string
		args []string
		want string // a part of the error; empty: it works
	}{
		"data directory by flag":           {nil, []string{"--data-dir", o.dataDir}, ""},
		"data directory by environment":    {map[string]string{"KURA_DATA_DIR": o.dataDir}, nil, ""},
		"endpoint by environment wins":     {map[string]string{"KURA_ENDPOINT": nowhere}, []string{"--data-dir", o.dataDir}, "does not answer"},
		"endpoint by flag wins":            {map[string]string{"KURA_ENDPOINT": nowhere}, []string{"--data-dir", o.dataDir, "--endpoint", p.url()}, ""},
		"token file by environment wins":   {map[string]string{"KURA_TOKEN_FILE": bad}, []string{"--data-dir", o.dataDir}, "token"},
		"token by environment wins":        {map[string]string{"KURA_TOKEN": "kura_bad_bad", "KURA_TOKEN_FILE": good}, []string{"--data-dir", o.dataDir}, "token"},
		"token file by flag wins":          {map[string]string{"KURA_TOKEN": "kura_bad_bad", "KURA_TOKEN_FILE": bad}, []string{"--data-dir", o.dataDir, "--token-file", good}, ""},
		"no data directory":                {nil, []string{"--data-dir", empty, "--endpoint", p.url()}, "--token-file"},
		"all by environment":               {map[string]string{"KURA_ENDPOINT": p.url(), "KURA_TOKEN": strings.TrimSpace(string(token))}, []string{"--data-dir", empty}, ""},
		"an endpoint that is no URL":       {nil, []string{"--data-dir", o.dataDir, "--endpoint", "kurad:7433"}, "endpoint"},
		"a token in the clear on the wire": {nil, []string{"--data-dir", o.dataDir, "--endpoint", "http://kurad.example.dev:7433"}, "https"},
	} {
		t.Run(name, func(t *testing.T) {
			noEnvironment(t)
			for k, v := range tt.env {
				t.Setenv(k, v)
			}
			_, _, err := kuradCommand(t, append([]string{"token", "list"}, tt.args...)...)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestDataDir_isTheUsersWhereNothingElseIsSaid(t *testing.T) {
	noEnvironment(t)
	t.Setenv("XDG_CONFIG_HOME", "/home/ada/.config")
	if got := defaultDataDir(); got != "/home/ada/.config/kurad" {
		t.Errorf("default data directory %q", got)
	}
	t.Setenv("KURA_DATA_DIR", "/srv/kurad")
	if got := defaultDataDir(); got != "/srv/kurad" {
		t.Errorf("data directory by KURA_DATA_DIR %q", got)
	}
}

func TestAge_inTheTwoUnitsThatMatter(t *testing.T) {
	for ago, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 59500 * time.Millisecond: "59s", 61500 * time.Millisecond: "1m01s",
		2*time.Hour + 3*time.Minute + 30*time.Second: "2h03m", 50*time.Hour + time.Minute: "2d02h",
	} {
		if got := age(time.Now().Add(-ago)); got != want {
			t.Errorf("age of %s is %q, want %q", ago, got, want)
		}
	}
}
