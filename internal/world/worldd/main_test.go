package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

func TestRun_printsWhereTheWorldIsOnceItAnswers(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	dir := filepath.Join(t.TempDir(), "world")
	printed, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, []string{"--dir", dir, "--address", "127.0.0.9"}, out)
		out.Close()
		ended <- err
	}()
	var where struct{ DNS, CA, Cert, Key string }
	if err := json.NewDecoder(printed).Decode(&where); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{where.CA, where.Cert, where.Key} {
		if content, err := os.ReadFile(file); err != nil || !bytes.Contains(content, []byte("-----BEGIN")) {
			t.Errorf("%s: %v, want a PEM file", file, err)
		}
	}
	answer, err := dns.Exchange(new(dns.Msg).SetQuestion("acme-eu.kura.test.", dns.TypeA), where.DNS)
	if err != nil || len(answer.Answer) != 1 || !strings.HasSuffix(answer.Answer[0].String(), "127.0.0.9") {
		t.Errorf("DNS: %v %v, want 127.0.0.9", answer, err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("run ended with %v, want nil", err)
	}
}

func TestRun_namesTheFlagThatIsWrong(t *testing.T) {
	for flag, args := range map[string][]string{"--dir": nil, "--address": {"--dir", t.TempDir(), "--address", "home"}} {
		if err := run(t.Context(), args, io.Discard); err == nil || !strings.Contains(err.Error(), flag) {
			t.Errorf("run %v: %v, want an error that names %s", args, err, flag)
		}
	}
}
