//go:build real

package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/process"
)

// kurad is a daemon of its own for one test: a process that can be killed.
type kurad struct {
	*outside
	t        *testing.T
	data     string
	endpoint string
	front    string   // of what stands before it; empty: nothing does
	runtime  []string // flags
	kube     *kubeRig // nil: it has an engine
	token    string
	api      *api.Client
	process  *exec.Cmd
	ended    chan error
}

// startKurad starts a daemon for staging. When the test ends the daemon must end in
// order, and no container or volume may be left.
func startKurad(t *testing.T, flags ...string) *kurad {
	t.Helper()
	requireCLI(t)
	k := &kurad{outside: theOutside(t), t: t, data: t.TempDir()}
	k.runtime = []string{"--container-endpoint", "edge=unix://" + k.engine.Socket() + ",address=127.0.0.1,ports=" + k.ports + ",mounts=" + filepath.Dir(k.files.CA)}
	k.runtime = append(k.runtime, flags...)
	return k.begin()
}

// begin starts a daemon for the first time.
func (k *kurad) begin() *kurad {
	k.t.Helper()
	k.t.Cleanup(k.end)
	address, err := process.FreeAddress() // that it is started again at
	if err != nil {
		k.t.Fatal(err)
	}
	k.start(address)
	k.login()
	return k
}

// login takes the token of the first start.
func (k *kurad) login() {
	k.t.Helper()
	token, err := os.ReadFile(filepath.Join(k.data, "token"))
	if err != nil {
		k.t.Fatal(err)
	}
	k.token = strings.TrimSpace(string(token))
	k.api, err = api.New(api.Config{Endpoint: k.endpoint, Token: api.NewSecret(k.token), Environment: "staging"})
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *kurad) start(listen string) {
	k.t.Helper()
	log, err := os.OpenFile(filepath.Join(k.data, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		k.t.Fatal(err)
	}
	defer log.Close()
	set := filepath.Join(k.data, "tracing")
	if err := os.WriteFile(set, []byte("TRACES=off\n"), 0o600); err != nil {
		k.t.Fatal(err)
	}
	at := filepath.Join(k.data, "endpoint")
	if err := os.Remove(at); err != nil && !errors.Is(err, os.ErrNotExist) {
		k.t.Fatal(err)
	}
	k.process = exec.Command(k.binary, append([]string{
		"serve", "--environment", "staging", "--data-dir", k.data, "--listen", listen, "--tick", "1s",
		"--resolver", k.dns.Addr(), "--probe-ca", k.files.CA, "--probe-allow-cidr", "127.0.0.0/8", "--env-set", "tracing=" + set, "--log-level", "debug",
	}, k.runtime...)...)
	k.process.Stdout, k.process.Stderr = log, log
	if err := k.process.Start(); err != nil {
		k.t.Fatal(err)
	}
	process, ended := k.process, make(chan error, 1)
	k.ended = ended
	go func() { ended <- process.Wait() }()
	k.eventually("kurad names its address", func() (bool, string) {
		select {
		case err := <-ended:
			k.process = nil
			k.t.Fatalf("kurad ended: %v\n%s", err, k.log())
		default:
		}
		b, err := os.ReadFile(at)
		k.endpoint = strings.TrimSpace(string(b))
		return k.endpoint != "", fmt.Sprint(err)
	})
}

// kill ends the daemon as a crash of its machine would.
func (k *kurad) kill() {
	k.t.Helper()
	if err := k.process.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	if err := <-k.ended; err == nil {
		k.t.Fatal("kurad ended in order instead of being killed")
	}
	k.process = nil
}

// again starts the daemon where it was.
func (k *kurad) again() {
	k.t.Helper()
	k.start(strings.TrimPrefix(k.endpoint, "http://"))
}

// end ends the daemon and sees that it left nothing.
func (k *kurad) end() {
	if k.process != nil {
		_ = k.process.Process.Signal(syscall.SIGTERM) // it may have ended, which its code tells
		select {
		case err := <-k.ended:
			if err != nil {
				k.t.Errorf("kurad did not end in order: %v", err)
			}
		case <-time.After(patience):
			k.t.Error("kurad does not end")
			k.kill()
		}
	}
	if log := k.log(); strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic:") {
		k.t.Errorf("kurad logged:\n%s", log)
	} else if k.t.Failed() {
		lines := strings.Split(log, "\n")
		k.t.Logf("kurad logged, at the end:\n%s", strings.Join(lines[max(0, len(lines)-60):], "\n"))
	}
	if k.kube != nil {
		return // its cluster ends with the test
	}
	if k.t.Failed() {
		// The next test is to begin with an empty engine, whatever this one left.
		k.podman(k.t, "rm", "--all", "--force", "--time", "0")
		k.podman(k.t, "volume", "prune", "--force")
		return
	}
	if left := k.left(); left != "" {
		k.t.Errorf("left on the engine: %s", left)
	}
}

func (k *kurad) log() string {
	b, err := os.ReadFile(filepath.Join(k.data, "log"))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// left lists the containers and volumes of the engine, or the instances of the cluster.
func (k *kurad) left() string {
	if k.kube != nil {
		return k.kube.left()
	}
	return strings.TrimSpace(k.podman(k.t, "ps", "--all", "--format", "{{.Names}}") + k.podman(k.t, "volume", "ls", "--format", "{{.Name}}"))
}

// cli runs a command of kurad against the daemon and returns what it printed.
func (k *kurad) cli(args ...string) string {
	k.t.Helper()
	c := exec.CommandContext(k.t.Context(), k.binary, args...)
	c.Env = append(os.Environ(), "KURA_ENDPOINT="+k.endpoint, "KURA_TOKEN="+k.token)
	out, err := c.CombinedOutput()
	if err != nil {
		k.t.Fatalf("kurad %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// patience is how long what must come may take on a busy machine.
const patience = 2 * time.Minute

// eventually waits until the condition holds; got says what is there instead.
func (k *kurad) eventually(what string, holds func() (ok bool, got string)) {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, got := holds()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			k.t.Fatalf("%s: not within %s; got %s", what, patience, got)
		}
	}
}

// until follows a server until the daemon's record of it is as wanted; the record is nil
// once the server is gone.
func (k *kurad) until(key fleet.ServerKey, what string, is func(*fleet.ServerView) bool) *fleet.ServerView {
	k.t.Helper()
	ctx, cancel := context.WithTimeout(k.t.Context(), patience)
	defer cancel()
	var seen *fleet.ServerView
	for cursor := ""; ; {
		change, err := k.api.WaitServer(ctx, key, cursor, 5*time.Second)
		if err != nil {
			k.t.Fatalf("server %s: %s: %v; it is %s", key, what, err, standing(seen))
		}
		if cursor == "" || change.Changed {
			seen = change.Server
		}
		if cursor = change.Cursor; is(seen) {
			return seen
		}
	}
}

func standing(v *fleet.ServerView) string {
	if v == nil {
		return "not there"
	}
	return fmt.Sprintf("%s (%s) %q, serving %q, observed %q, holds %v", v.Verdict, v.Reason, v.Message, v.ServingImageTag, v.ObservedImageTag, v.Holds)
}

// stands waits for a verdict on a server.
func (k *kurad) stands(key fleet.ServerKey, want fleet.Verdict) *fleet.ServerView {
	k.t.Helper()
	return k.until(key, string(want), func(v *fleet.ServerView) bool { return v != nil && v.Verdict == want })
}

// gone waits until a server does not exist any more.
func (k *kurad) gone(key fleet.ServerKey) {
	k.t.Helper()
	k.until(key, "gone", func(v *fleet.ServerView) bool { return v == nil })
}

// answers503 waits until the version of acme/eu has started and says that it is not ready,
// so that nothing of an older one is in the way any more.
func (k *kurad) answers503(version string, verdict fleet.Verdict) {
	k.t.Helper()
	k.until(acmeEU, version+" answers 503", func(v *fleet.ServerView) bool {
		return v != nil && len(v.Containers) == 1 && v.ObservedImageTag == version && v.Verdict == verdict && v.Reason == fleet.ReasonEndpointNotReady &&
			slices.ContainsFunc(v.Conditions, func(c fleet.Condition) bool {
				return c.Type == fleet.ConditionEndpointReady && c.Reason == fleet.ReasonHTTPNotReady
			})
	})
}

// behave switches how the server behaves that answers for the key right now.
func (k *kurad) behave(key fleet.ServerKey, mode string) {
	k.t.Helper()
	k.eventually("the server takes the mode "+mode, func() (bool, string) {
		code, body, err := k.ask(k.t.Context(), "POST", k.server(key.Account, key.Region).DeclaredURL+"/control?mode="+mode)
		return code == 200, fmt.Sprint(code, body, err)
	})
}

// answers checks that the declared url answers with the version.
func (k *kurad) answers(key fleet.ServerKey, version string) error {
	return k.answersAt(k.server(key.Account, key.Region).DeclaredURL, version)
}

// answersAt checks that a url answers with the version.
func (k *kurad) answersAt(url, version string) error {
	code, body, err := k.ask(k.t.Context(), "GET", url+"/up")
	if want := fmt.Sprintf("%q", version); err != nil || code != 200 || !strings.Contains(body, want) {
		return fmt.Errorf("%s/up says %d %s %w, want version %s", url, code, body, err, version)
	}
	return nil
}

// write declares a server past Terraform, as somebody else would.
func (k *kurad) write(key fleet.ServerKey, version string) {
	k.t.Helper()
	if _, err := k.api.PutServer(k.t.Context(), fleet.Server{Account: key.Account, Region: key.Region, ImageTag: version}, api.PutOptions{}); err != nil {
		k.t.Fatal(err)
	}
}

// newToken makes a token that lives for the time given; 0: until revoked.
func (k *kurad) newToken(name string, scope fleet.Scope, lives time.Duration) api.CreatedToken {
	k.t.Helper()
	made, err := k.api.CreateToken(k.t.Context(), api.TokenRequest{Name: name, Scope: scope, ExpiresIn: fleet.Duration(lives)})
	if err != nil {
		k.t.Fatal(err)
	}
	return made
}

// server returns the daemon's own record; nil where there is none.
func (k *kurad) server(account, region string) *fleet.ServerView {
	k.t.Helper()
	v, err := k.api.GetServer(k.t.Context(), fleet.ServerKey{Account: account, Region: region}, api.GetOptions{})
	if fleet.CodeOf(err) == fleet.CodeNotFound {
		return nil
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return &v
}

// nothingLeft checks that a destroy left no record in the daemon, and nothing on the
// engine.
func (k *kurad) nothingLeft() error {
	ctx := context.WithoutCancel(k.t.Context())
	servers, err1 := k.api.ListServers(ctx, api.ServerFilter{})
	regions, err2 := k.api.ListRegions(ctx)
	accounts, err3 := k.api.ListAccounts(ctx)
	templates, err4 := k.api.ListHostTemplates(ctx)
	if n := len(servers) + len(regions) + len(accounts) + len(templates); n > 0 {
		return fmt.Errorf("%d objects are left in the daemon", n)
	}
	if left := k.left(); left != "" {
		return fmt.Errorf("left on the engine or the cluster: %s", left)
	}
	return errors.Join(err1, err2, err3, err4)
}

// config is a whole configuration: the provider block, the neighbours of a server, and
// what the test adds.
func (k *kurad) config(more ...string) string { return k.configWith("", more...) }

// configWith is config with further attributes of the region.
func (k *kurad) configWith(region string, more ...string) string {
	return k.provider("staging") + neighbours + k.region("eu", "public", region) + strings.Join(slices.Concat(more), "\n")
}

func (k *kurad) provider(environment string) string {
	return fmt.Sprintf("terraform {\n  required_providers {\n    kura = { source = \"hashicorp/kura\" }\n  }\n}\n\nprovider \"kura\" {\n  endpoint    = %q\n  token       = %q\n  environment = %q\n}\n", cmp.Or(k.front, k.endpoint), k.token, environment)
}

const neighbours = `
resource "kura_account" "acme" {
  id = "acme"
}

resource "kura_host_template" "public" {
  name    = "public"
  pattern = "{account_handle}-{cluster_id}{env_suffix}.kura.test"
}
`

// region is a region of the cache server, over TLS, with a volume.
func (k *kurad) region(name, template, more string) string {
	return fmt.Sprintf(`
resource "kura_region" %[1]q {
  name      = %[1]q
  hosts     = { public = kura_host_template.%[2]s.name }
  readiness = { timeout = "2s" }
  %[3]s
  containers = {
    endpoint = "edge"
    services = {
      cache = {
        image        = "localhost/kura-cache:{image_tag}"
        grace_period = "2s"
        env          = { KURA_ACCOUNT = "{account}", KURA_TLS_CERT = "/tls/server.pem", KURA_TLS_KEY = "/tls/server-key.pem" }
        volumes      = [{ name = "data", path = "/var/lib/kura" }, { host_path = %[4]q, path = "/tls", read_only = true }]
        ports        = { https = { container = 8443, endpoint = "public" } }
      }
    }
  }
}
`, name, template, more, filepath.Dir(k.files.CA))
}

// serverHCL is the server acme/eu with a version and further attributes.
func serverHCL(version string, more ...string) string { return serverAs("acme", version, more...) }

// serverAs is the server of an account in the region eu.
func serverAs(account, version string, more ...string) string {
	return fmt.Sprintf("resource \"kura_server\" %[1]q {\n  account   = kura_account.%[1]s.id\n  region    = kura_region.eu.name\n  image_tag = %[2]q\n  %[3]s\n}\n", account, version, strings.Join(more, "\n  "))
}

// bravo is a second account, and its server in the region eu.
func bravo(version string, more ...string) string {
	return "resource \"kura_account\" \"bravo\" {\n  id = \"bravo\"\n}\n" + serverAs("bravo", version, more...)
}
