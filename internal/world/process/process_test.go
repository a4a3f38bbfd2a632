package process_test

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/kurafleet/terraform-provider-kura/internal/world/process"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestProcess_isKilledAndStartedAgainAndKeepsItsLog(t *testing.T) {
	p := &process.Process{Args: []string{"/bin/sh", "-c", "echo up; exec sleep 600"}, Log: filepath.Join(t.TempDir(), "log")}
	if err := p.Signal(syscall.SIGCONT); err == nil || !strings.Contains(err.Error(), "sh: it does not run") {
		t.Errorf("a signal before the start: %v", err)
	}
	for range 2 {
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		if err := p.Signal(syscall.SIGCONT); err != nil {
			t.Error(err)
		}
		select {
		case <-p.Ended():
			t.Error("it has ended")
		default:
		}
		p.Kill()
		<-p.Ended()
		p.Kill()
	}
	p.Args = []string{"/bin/sh", "-c", "echo " + strings.Repeat("x", 9000) + " end"}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	<-p.Ended()
	p.Kill()
	if said := p.Said(); len(said) != 4<<10 || !strings.HasSuffix(said, " end\n") {
		t.Errorf("it said %d bytes, …%q", len(said), said[max(0, len(said)-10):])
	}
	p = &process.Process{Args: []string{"/no/such/program"}, Log: p.Log}
	if err := p.Start(); err == nil || !strings.Contains(err.Error(), "/no/such/program") {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestFreeAddress_isFreeAndGivenOnce(t *testing.T) {
	seen := map[string]bool{}
	for range 50 {
		address, err := process.FreeAddress()
		if err != nil {
			t.Fatal(err)
		}
		if seen[address] {
			t.Fatalf("%s was given twice", address)
		}
		seen[address] = true
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
	}
}
