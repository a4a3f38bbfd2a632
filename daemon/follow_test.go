package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/world/stopwatch"
)

// happen stores an event as a turn would.
func (p *inProcess) happen(t *testing.T, message string) {
	t.Helper()
	tx := p.records.Begin()
	tx.AddEvent(fleet.Event{Account: "acme", Region: "eu", At: time.Now(), Type: fleet.EventNormal, Reason: "Told", Message: message})
	if _, err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// background runs a command line until interrupt is called, which returns its error.
func background(t *testing.T, args ...string) (out, said *lockedBuffer, interrupt func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, said = &lockedBuffer{}, &lockedBuffer{}
	c := command()
	c.SetArgs(args)
	c.SetOut(out)
	c.SetErr(said)
	ended := make(chan error, 1)
	go func() { ended <- c.ExecuteContext(ctx) }()
	interrupt = func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(late):
			return errors.New("it does not end")
		}
	}
	t.Cleanup(cancel)
	return out, said, interrupt
}

func says(b *lockedBuffer, want string) func() error {
	return func() error {
		if !strings.Contains(b.String(), want) {
			return fmt.Errorf("it says %q, not %q", b.String(), want)
		}
		return nil
	}
}

func TestEventsFollow_goesOnOverARestartAndTellsEachOnce(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	p := startInProcess(t, o)
	p.happen(t, "first")
	lines, said, interrupt := background(t, "events", "--follow", "-o", "json", "--data-dir", o.dataDir)
	table, _, interruptTable := background(t, "events", "acme/eu", "-f", "--data-dir", o.dataDir)
	soon(t, "it tells the first", says(lines, "first"))
	soon(t, "it tells the first", says(table, "first"))
	p.happen(t, "second")
	soon(t, "it tells the second", says(lines, "second"))
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	soon(t, "it says that kurad is away", says(said, "trying again"))
	p = startInProcess(t, o) // at another address
	p.happen(t, "third")
	soon(t, "it tells the third", says(lines, "third"))
	soon(t, "it tells the third", says(table, "third"))
	for _, end := range []func() error{interrupt, interruptTable} {
		if err := end(); err != nil {
			t.Errorf("interrupted: %v", err)
		}
	}
	var messages []string
	for line := range strings.Lines(lines.String()) {
		var e fleet.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		messages = append(messages, e.Message)
	}
	if got := strings.Join(messages, " "); got != "first second third" {
		t.Errorf("told %q", got)
	}
	if n := strings.Count(said.String(), "trying again"); n != 1 || !strings.Contains(said.String(), "answers again") {
		t.Errorf("said %q, want once that it is away and once that it is back", said.String())
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestEventsFollow_saysWhereSomeMayBeMissing(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	p := startInProcess(t, o)
	p.happen(t, "first")
	out, said, interrupt := background(t, "events", "--follow", "--data-dir", o.dataDir)
	soon(t, "it tells the first", says(out, "first"))
	tx := p.records.Begin()
	for i := range store.MaxEvents + 1 {
		tx.AddEvent(fleet.Event{Account: "acme", Region: "eu", At: time.Now(), Type: fleet.EventNormal, Reason: "Told", Message: fmt.Sprintf("burst %d.", i)})
	}
	if _, err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	soon(t, "it tells the newest", says(out, fmt.Sprintf("burst %d.", store.MaxEvents)))
	if !strings.Contains(said.String(), "some may be missing") {
		t.Errorf("said %q", said.String())
	}
	if err := interrupt(); err != nil {
		t.Error(err)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestStatusWatch_outlivesARestart(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	p := startInProcess(t, o)
	declareAcme(t, p.client)
	unobserved(t, p.client)
	out, said, interrupt := background(t, "status", "--watch", "--data-dir", o.dataDir)
	soon(t, "it shows the server", says(out, "unobserved"))
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	soon(t, "it says that kurad is away", says(said, "trying again"))
	p = startInProcess(t, o)
	server := fleet.Server{Account: acme.Account, Region: acme.Region, ImageTag: "v2"}
	if _, err := p.client.PutServer(t.Context(), server, api.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	soon(t, "it shows the change", says(out, " v2 "))
	if err := interrupt(); err != nil {
		t.Error(err)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestExitCodes_areWhatTheHelpSays(t *testing.T) {
	noEnvironment(t)
	watch := stopwatch.Start(t)
	o := optionsFor(t)
	p := startInProcess(t, o)
	declareAcme(t, p.client)
	unobserved(t, p.client)
	t.Setenv("KURA_DATA_DIR", o.dataDir)
	bad := file(t, "kura_bad_bad")
	nobody, err := net.Listen("tcp", "127.0.0.1:0") // an address where nobody answers once it is closed
	if err != nil {
		t.Fatal(err)
	}
	nowhere := "http://" + nobody.Addr().String()
	socket, _, _ := strings.Cut(strings.TrimPrefix(o.endpoints[0], "local=unix://"), ",")
	nobody.Close()
	var text bytes.Buffer
	for _, tt := range []struct {
		code int
		args []string
	}{
		{0, []string{"status"}},
		{0, []string{"help", "exit-codes"}},
		{exitUsage, []string{"statsu"}},
		{exitUsage, []string{"token", "mint"}},
		{exitUsage, []string{"status", "--watsh"}},
		{exitUsage, []string{"status", "a/b", "c/d"}},
		{exitUsage, []string{"status", "acme"}},
		{exitUsage, []string{"status", "--output", "xml"}},
		{exitUsage, []string{"adopt", "acme/eu", "--image-tag", "v1", "--container", "cache=x", "--output", "xml"}},
		{exitUsage, []string{"adopt", "acme/eu"}},
		{exitUsage, []string{"adopt", "acme/eu", "--image-tag", "v1"}},
		{exitUsage, []string{"orphans", "--output", "xml"}},
		{exitUsage, []string{"wait"}},
		{exitUsage, []string{"wait", "acme/eu", "--timeout", "0s"}},
		{exitUsage, []string{"token", "create", "x", "--scope", "root"}},
		{exitNotFound, []string{"status", "acem/eu"}},
		{exitNotFound, []string{"wait", "umbra/mars"}},
		{exitNotFound, []string{"token", "revoke", "nosuch"}},
		{exitRefused, []string{"status", "--token-file", bad}},
		{exitNoAnswer, []string{"status", "--endpoint", nowhere}},
		{exitNoAnswer, []string{"events", "--follow", "--endpoint", nowhere}},
		{exitNotConverged, []string{"status", "--exit-code"}},
		{exitNotConverged, []string{"wait", "acme/eu", "--timeout", "100ms"}},
		{exitError, []string{"status", "--token-file", "/no/such/token"}},
	} {
		began := time.Now()
		_, _, err := kuradCommand(t, tt.args...)
		if got := exitCode(err); got != tt.code {
			t.Errorf("kurad %s ends with %d, want %d: %v", strings.Join(tt.args, " "), got, tt.code, err)
		}
		if took := watch.Since(began); took > 8*time.Second {
			t.Errorf("kurad %s took %s", strings.Join(tt.args, " "), took)
		}
		if err != nil {
			said := err.Error()
			for from, to := range map[string]string{nowhere: "http://127.0.0.1:1", bad: "TOKEN", socket: "/no.sock", strings.TrimPrefix(nowhere, "http://"): "127.0.0.1:1"} {
				said = strings.ReplaceAll(said, from, to)
			}
			fmt.Fprintf(&text, "$ kurad %s\nkurad: %s\n[%d]\n\n", strings.ReplaceAll(strings.ReplaceAll(strings.Join(tt.args, " "), nowhere, "http://127.0.0.1:1"), bad, "TOKEN"), said, tt.code)
		}
	}
	golden(t, "errors", text.String())
	t.Setenv("KURA_ENVIRONMENT", "production")
	_, _, err = kuradCommand(t, "status")
	if exitCode(err) != exitUsage || !strings.Contains(err.Error(), "staging") {
		t.Errorf("the wrong environment: %d, %v", exitCode(err), err)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestExitCode_ofWhatNoCommandLineCauses(t *testing.T) {
	for want, err := range map[int]error{
		0: nil, exitInterrupted: fmt.Errorf("status: %w", context.Canceled), exitNoAnswer: context.DeadlineExceeded,
		exitError: fleet.Errorf(fleet.CodeConflict, "no"), exitRefused: fleet.Errorf(api.CodeRateLimited, "too many logins failed"),
	} {
		if got := exitCode(err); got != want {
			t.Errorf("%v: %d, want %d", err, got, want)
		}
	}
}

func TestCompletion_namesWhatThereIs(t *testing.T) {
	noEnvironment(t)
	o := optionsFor(t)
	p := startInProcess(t, o)
	declareAcme(t, p.client)
	t.Setenv("KURA_DATA_DIR", o.dataDir)
	tokens, err := p.client.ListTokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ line, want string }{
		{"status ", "acme/eu\t"}, {"events ", "acme/eu\t"}, {"wait acme/eu ", "acme/eu\t"},
		{"status --region ", "eu\n"}, {"status --account ", "acme\n"}, {"status --output ", "table\njson\n"},
		{"token create x --scope ", "read\nwrite\nadmin\n"}, {"token revoke ", tokens[0].ID + "\tbootstrap"},
		{"sta", "status\t"}, {"completion ", "bash\t"},
	} {
		got := completed(t, tt.line)
		if !strings.HasPrefix(got, tt.want) {
			t.Errorf("kurad %s<tab>: %q, want %q", tt.line, got, tt.want)
		}
	}
	if got := completed(t, "status acme/eu "); strings.Contains(got, "acme") {
		t.Errorf("a second server is proposed: %q", got)
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if script := ok(t, "completion", shell); !strings.Contains(script, "__complete") {
			t.Errorf("the script for %s:\n%.200s", shell, script)
		}
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
	watch, began := stopwatch.Start(t), time.Now()
	if got := completed(t, "status "); !strings.HasPrefix(got, ":") || watch.Since(began) > 5*time.Second {
		t.Errorf("without a daemon: %q after %s, want nothing at once", got, time.Since(began))
	}
}

// completed is what the shell is told to propose.
func completed(t *testing.T, line string) string {
	t.Helper()
	words := strings.Split(line, " ")
	out, _, err := kuradCommand(t, append([]string{"__complete"}, words...)...)
	if err != nil {
		t.Errorf("complete %q: %v", line, err)
	}
	return out
}
