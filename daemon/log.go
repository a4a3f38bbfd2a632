package main

import (
	"fmt"
	"io"
	stdlog "log"
	"strings"

	"github.com/go-logr/logr"
	"github.com/hashicorp/go-hclog"
	"k8s.io/klog/v2"
)

// newLogger returns the daemon's logger, and sends it what klog and the standard logger
// print. etcd and net/http have bridges of their own, where they are started.
func newLogger(level, format string, w io.Writer) (hclog.Logger, error) {
	l := hclog.LevelFromString(level)
	if l == hclog.NoLevel {
		return nil, fmt.Errorf("--log-level %q is not trace, debug, info, warn or error", level)
	}
	if format != "text" && format != "json" {
		return nil, fmt.Errorf("--log-format %q is neither text nor json", format)
	}
	log := hclog.New(&hclog.LoggerOptions{
		Name: "kurad", Level: l, Output: w, JSONFormat: format == "json", TimeFormat: "2006-01-02T15:04:05.000Z07:00",
	})
	klog.SetLogger(logr.New(klogSink{log.Named("client-go")}))
	stdlog.SetFlags(0)
	stdlog.SetOutput(log.StandardWriter(&hclog.StandardLoggerOptions{InferLevels: true}))
	return log, nil
}

// klogSink gives what klog prints to hclog. klog counts verbosity upwards: 0 is
// information, everything above is for debugging.
type klogSink struct{ log hclog.Logger }

func (klogSink) Init(logr.RuntimeInfo) {}

func (s klogSink) Enabled(level int) bool {
	return level == 0 && s.log.IsInfo() || s.log.IsTrace()
}

func (s klogSink) Info(level int, msg string, keysAndValues ...any) {
	if level == 0 {
		s.log.Info(strings.TrimSpace(msg), keysAndValues...)
		return
	}
	s.log.Trace(strings.TrimSpace(msg), keysAndValues...)
}

func (s klogSink) Error(err error, msg string, keysAndValues ...any) {
	s.log.Error(strings.TrimSpace(msg), append([]any{"error", err}, keysAndValues...)...)
}

func (s klogSink) WithValues(keysAndValues ...any) logr.LogSink {
	return klogSink{s.log.With(keysAndValues...)}
}

func (s klogSink) WithName(name string) logr.LogSink { return klogSink{s.log.Named(name)} }
