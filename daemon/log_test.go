package main

import (
	"bytes"
	"encoding/json"
	"errors"
	stdlog "log"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/go-hclog"
	"k8s.io/klog/v2"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// restoreLoggers undoes what newLogger did to the process.
func restoreLoggers() {
	klog.ClearLogger()
	stdlog.SetFlags(stdlog.LstdFlags)
	stdlog.SetOutput(os.Stderr)
}

func discardLog() hclog.Logger { return hclog.NewNullLogger() }

func regionOf(kind string) fleet.Region {
	if kind == "kubernetes" {
		return fleet.Region{Name: "eu", Kubernetes: &fleet.Kubernetes{Cluster: "prod-1"}}
	}
	return fleet.Region{Name: "eu", Containers: &fleet.Containers{Endpoint: "other"}}
}

func TestLog_whatKlogAndTheStandardLoggerPrintArrivesAsOurs(t *testing.T) {
	t.Cleanup(restoreLoggers)
	var b bytes.Buffer
	log, err := newLogger("info", "text", &b)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("own", "server", "acme/eu")
	klog.InfoS("from klog", "pod", "cache-0")
	klog.ErrorS(errors.New("refused"), "klog failed", "pod", "cache-0")
	klog.Info("plain klog")
	klog.V(2).Info("too much detail")
	klog.Background().WithName("queue").WithValues("shard", 3).Info("named")
	stdlog.Print("[WARN] from the standard logger")
	for _, want := range []string{
		"[INFO]  kurad: own: server=acme/eu",
		"[INFO]  kurad.client-go: from klog: pod=cache-0",
		"[ERROR] kurad.client-go: klog failed: error=refused pod=cache-0",
		"[INFO]  kurad.client-go: plain klog",
		"[INFO]  kurad.client-go: named: logger=queue shard=3",
		"[WARN]  kurad: from the standard logger",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no line %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(b.String(), "too much detail") {
		t.Errorf("details were logged at level info:\n%s", b.String())
	}
}

func TestLog_jsonIsOneObjectALine(t *testing.T) {
	t.Cleanup(restoreLoggers)
	var b bytes.Buffer
	log, err := newLogger("debug", "json", &b)
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("turn", "server", "acme/eu")
	klog.Warning("careful")
	stdlog.Print("hello")
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d lines, want 3:\n%s", len(lines), b.String())
	}
	for _, line := range lines {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil || got["@level"] == nil || got["@message"] == nil || got["@timestamp"] == nil {
			t.Errorf("line %q: %v, %v", line, got, err)
		}
	}
}
