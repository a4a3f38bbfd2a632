package etcd

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/hashicorp/go-hclog"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// etcdNoise are warnings and errors of etcd that say nothing here: about the ticks of
// 10 ms that only a single member can have, about a server of its own that this is not,
// and about a new store that has made no snapshot yet.
var etcdNoise = []string{
	"Running http and grpc server on single port",
	"simple token is not cryptographically signed",
	"leader failed to send out heartbeat on time",
	"failed to send out heartbeat on time",
	"apply request took too long",
	"request stats",
	"prober detected unhealthy status",
	"waiting for ReadIndex response took too long, retrying",
	"cannot campaign at term",
	"Failed to detect schema version",
	"failed to update storage version",
}

// etcdLog sends what etcd logs to ours: one level down, because its info is our debug.
// While the store closes everything is debug: etcd reports its own end as errors.
type etcdLog struct {
	zapcore.LevelEnabler
	log     hclog.Logger
	closing *atomic.Bool
	fields  []zapcore.Field
}

// newEtcdLog returns a logger for etcd. Where etcd would end the process, because it
// cannot go on without losing writes, fatal is called and the goroutine ends: the
// daemon hears of it through Failed and exits in order.
func newEtcdLog(log hclog.Logger, closing *atomic.Bool, fatal func(error)) *zap.Logger {
	core := &etcdLog{LevelEnabler: zapcore.InfoLevel, log: log, closing: closing}
	return zap.New(core, zap.WithFatalHook(fatalHook(fatal)))
}

type fatalHook func(error)

// OnWrite implements zapcore.CheckWriteHook.
func (f fatalHook) OnWrite(e *zapcore.CheckedEntry, fields []zapcore.Field) {
	cause := errors.New("etcd: " + e.Message)
	for _, field := range fields {
		if err, ok := field.Interface.(error); ok && field.Type == zapcore.ErrorType {
			cause = errors.Join(cause, err)
		}
	}
	f(cause)
	runtime.Goexit()
}

// With implements zapcore.Core.
func (l *etcdLog) With(fields []zapcore.Field) zapcore.Core {
	c := *l
	c.fields = append(append([]zapcore.Field{}, l.fields...), fields...)
	return &c
}

// Check implements zapcore.Core.
func (l *etcdLog) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if l.level(e) >= l.log.GetLevel() || e.Level >= zapcore.DPanicLevel {
		return ce.AddCore(e, l)
	}
	return ce
}

// Write implements zapcore.Core.
func (l *etcdLog) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	args := make([]any, 0, 2*(len(l.fields)+len(fields)))
	for _, set := range [][]zapcore.Field{l.fields, fields} {
		for _, f := range set {
			f.AddTo(enc)
			if v, ok := enc.Fields[f.Key]; ok {
				args = append(args, f.Key, v)
			}
		}
	}
	l.log.Log(l.level(e), e.Message, args...)
	return nil
}

// Sync implements zapcore.Core.
func (l *etcdLog) Sync() error { return nil }

func (l *etcdLog) level(e zapcore.Entry) hclog.Level {
	switch {
	case l.closing.Load() && e.Level < zapcore.DPanicLevel, e.Level <= zapcore.InfoLevel:
		return hclog.Debug
	case e.Level <= zapcore.ErrorLevel && isNoise(e.Message):
		return hclog.Debug
	case e.Level == zapcore.WarnLevel:
		return hclog.Warn
	default:
		return hclog.Error
	}
}

func isNoise(message string) bool {
	for _, noise := range etcdNoise {
		if strings.Contains(message, noise) {
			return true
		}
	}
	return false
}
