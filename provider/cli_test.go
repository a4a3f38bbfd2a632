//go:build real

package provider

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6/tf6server"
)

// cli is a working directory in which a person would type: what is tested through it is
// the text that people read.
type cli struct {
	t      *testing.T
	binary string
	dir    string
	env    []string
}

// providerAddress is where the CLI under test looks for the provider: OpenTofu and
// Terraform have hosts of their own.
func providerAddress() string {
	return cmp.Or(os.Getenv("TF_ACC_PROVIDER_HOST"), "registry.terraform.io") + "/" + cmp.Or(os.Getenv("TF_ACC_PROVIDER_NAMESPACE"), "hashicorp") + "/kura"
}

func newCLI(t *testing.T) *cli {
	t.Helper()
	binary, address := requireCLI(t), providerAddress()
	attach, closed, served := make(chan *plugin.ReattachConfig, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		served <- tf6server.Serve(address, func() tfprotov6.ProviderServer { return providerserver.NewProtocol6(New("test")())() },
			tf6server.WithDebug(t.Context(), attach, closed), tf6server.WithoutLogStderrOverride(), tf6server.WithLoggingSink(t), tf6server.WithGoPluginLogger(hclog.NewNullLogger()))
	}()
	t.Cleanup(func() {
		<-closed
		if err := <-served; err != nil {
			t.Errorf("serve the provider: %v", err)
		}
	})
	var at *plugin.ReattachConfig
	select {
	case at = <-attach:
	case err := <-served:
		t.Fatalf("serve the provider: %v", err)
	}
	reattach, err := json.Marshal(map[string]any{address: map[string]any{
		"Protocol": string(at.Protocol), "ProtocolVersion": at.ProtocolVersion, "Pid": at.Pid, "Test": true,
		"Addr": map[string]string{"Network": at.Addr.Network(), "String": at.Addr.String()},
	}})
	if err != nil {
		t.Fatal(err)
	}
	c := &cli{t: t, binary: binary, dir: t.TempDir()}
	c.env = append(os.Environ(), "TF_REATTACH_PROVIDERS="+string(reattach), "TF_IN_AUTOMATION=1", "TF_INPUT=0")
	return c
}

// write replaces the configuration.
func (c *cli) write(config string) {
	c.t.Helper()
	if err := os.WriteFile(filepath.Join(c.dir, "main.tf"), []byte(config), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(c.dir, ".terraform")); errors.Is(err, os.ErrNotExist) {
		if out, code := c.run("init", "-no-color"); code != 0 {
			c.t.Fatalf("init: %s", out)
		}
	}
}

// longestCommand is what the slowest apply takes on a busy machine, several times over:
// one that hangs is to be told with what it said.
const longestCommand = 5 * time.Minute

// run runs a command and returns what it printed, as one line without the CLI's frames.
func (c *cli) run(args ...string) (text string, code int) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), longestCommand)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.binary, args...)
	cmd.Dir, cmd.Env = c.dir, c.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	if ctx.Err() != nil {
		c.t.Fatalf("%s does not end within %s; it said: %s", strings.Join(args, " "), longestCommand, flat(out.String()))
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		c.t.Fatalf("%s %s: %v", c.binary, strings.Join(args, " "), err)
	}
	return flat(out.String()), cmd.ProcessState.ExitCode()
}

// flat joins the lines that the CLI has wrapped.
func flat(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '\n' || r == '│' || r == '╷' || r == '╵' }), " ")
}

// plan returns the text of a plan, and whether it has changes.
func (c *cli) plan() (text string, changes bool) {
	c.t.Helper()
	text, code := c.run("plan", "-no-color", "-detailed-exitcode", "-lock=false")
	if code == 1 {
		c.t.Fatalf("plan failed: %s", text)
	}
	return text, code == 2
}

func (c *cli) apply() string {
	c.t.Helper()
	text, code := c.run("apply", "-no-color", "-auto-approve")
	if code != 0 {
		c.t.Fatalf("apply failed: %s", text)
	}
	return text
}

// refused runs a command that must fail, and checks that its text holds all of want,
// in upper or lower case.
func (c *cli) refused(want []string, args ...string) {
	c.t.Helper()
	text, code := c.run(args...)
	if code == 0 {
		c.t.Errorf("%v succeeded: %s", args, text)
	}
	for _, w := range want {
		if !strings.Contains(strings.ToLower(text), strings.ToLower(w)) {
			c.t.Errorf("%v: %q is missing in: %s", args, w, text)
		}
	}
}

// destroy ends everything, so that the test leaves nothing.
func (c *cli) destroy() {
	c.t.Helper()
	if text, code := c.run("destroy", "-no-color", "-auto-approve"); code != 0 {
		c.t.Fatalf("destroy failed: %s", text)
	}
}

// in returns the same directory for a part of the test.
func (c *cli) in(t *testing.T) *cli { return &cli{t: t, binary: c.binary, dir: c.dir, env: c.env} }

// start starts a command, which ends by itself or by a signal; text is what it printed
// once it ended.
func (c *cli) start(args ...string) (cmd *exec.Cmd, text func() string) {
	c.t.Helper()
	cmd = exec.CommandContext(c.t.Context(), c.binary, args...)
	var out bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = c.dir, c.env, &out, &out
	if err := cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
	return cmd, func() string {
		_ = cmd.Wait() // its code is the caller's to judge
		return flat(out.String())
	}
}
