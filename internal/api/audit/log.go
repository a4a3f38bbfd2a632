package audit

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
)

// Defaults of a Config.
const (
	DefaultMaxSize = 64 << 20 // bytes
	DefaultKeep    = 8        // files besides the one that is written
)

// maxPending bounds the lines of changes that wait for the log to work again. New
// changes are refused meanwhile, so only those that were under way are among them.
const maxPending = 4096

// Config says where and how a Log is kept.
type Config struct {
	Path    string
	MaxSize int64 // bytes after which a file is closed; 0: DefaultMaxSize
	Keep    int   // closed files that are kept; 0: DefaultKeep
	// Anchored says that somebody keeps the log's anchor (Mark): files are removed by Prune
	// alone, once the anchor says so.
	Anchored bool
	Logger   hclog.Logger
	Now      func() time.Time // nil: the clock
}

// Log is an audit log in a file. It is safe for concurrent use. One process may have a
// log open.
type Log struct {
	cfg  Config
	open func(path string) (file, error)

	mu       sync.Mutex
	f        file // nil where it could not be opened again
	size     int64
	dirty    bool   // behind size there may be half a line
	unsynced bool   // a line may not be on the disk yet
	first    uint64 // number of the oldest line, by what this kurad removed
	seq      uint64
	prev     string
	pending  []Entry // of changes that were made while the log did not work
	lost     int     // those there was no room for
	broken   error   // nil: the last line was written
	closed   bool
}

// file is what a Log needs of an *os.File.
type file interface {
	WriteAt(b []byte, off int64) (int, error)
	Truncate(size int64) error
	Sync() error
	Stat() (fs.FileInfo, error)
	Close() error
}

// openFile opens a file for this process alone: two would make two chains of it.
func openFile(path string) (file, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errors.New("another kurad writes it")
		}
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return f, nil
}

// Open opens the log and goes on with its chain. Half a line at its end, which a crash
// leaves, is replaced by one that holds it.
func Open(cfg Config) (*Log, error) {
	cfg.MaxSize, cfg.Keep = cmp.Or(cfg.MaxSize, DefaultMaxSize), cmp.Or(cfg.Keep, DefaultKeep)
	if cfg.Logger == nil {
		cfg.Logger = hclog.NewNullLogger()
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	l := &Log{cfg: cfg, open: openFile}
	if err := l.resume(); err != nil {
		if l.f != nil {
			_ = l.f.Close()
		}
		return nil, fmt.Errorf("open the audit log: %w; name another file with --audit-log, or see to it that kurad may write this one", err)
	}
	cfg.Logger.Info("the audit log goes on", "file", cfg.Path, "line", l.seq, "hash", l.prev)
	return l, nil
}

// resume finds the end of the chain and opens the file.
func (l *Log) resume() error {
	if err := os.MkdirAll(filepath.Dir(l.cfg.Path), 0o700); err != nil {
		return err
	}
	var err error
	if l.f, err = l.open(l.cfg.Path); err != nil {
		return err
	}
	files, err := Files(l.cfg.Path)
	if err != nil {
		return err
	}
	end, err := endOf(files)
	if err != nil {
		return err
	}
	l.seq, l.prev = end.last.Seq, end.last.Hash
	if l.first, err = firstOf(files); err != nil {
		return err
	}
	info, err := l.f.Stat()
	if err != nil {
		return err
	}
	l.size = info.Size()
	var note Entry
	switch {
	case end.wrong != nil:
		note = Entry{Event: EventBroken, Reason: "the chain begins anew, because its last line cannot be gone on with: " + end.wrong.Error()}
	case len(end.half) > 0:
		// The new line is longer than what it replaces, so that nothing of that is lost even if
		// writing it is cut off as well.
		l.size -= int64(len(end.half))
		note = Entry{Event: EventRecovered, Reason: "a crash had cut this line off: " + string(end.half)}
	default:
		return nil
	}
	l.cfg.Logger.Warn("the audit log was not ended in order", "file", l.cfg.Path, "reason", note.Reason)
	note.Time = l.cfg.Now().UTC()
	return l.append(note, true)
}

// Write keeps an entry. changed says that the call may have changed something: its line
// is on the disk when Write returns, and where it cannot be written now, it is kept in
// memory until it can.
func (l *Log) Write(e Entry, changed bool) error {
	e.truncate()
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.writePending()
	if err == nil {
		err = l.failed(l.append(e, changed))
	}
	if err != nil && changed {
		if len(l.pending) < maxPending {
			l.pending = append(l.pending, e)
		} else {
			l.lost++
		}
	}
	return err
}

// Ready returns an error while the log cannot be written: nothing may be changed then.
// It tries whether it can be again.
func (l *Log) Ready() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writePending()
}

// writePending writes what could not be written before.
func (l *Log) writePending() error {
	if l.closed {
		return errors.New("the audit log is closed")
	}
	if l.broken == nil {
		return nil
	}
	for len(l.pending) > 0 {
		if err := l.append(l.pending[0], true); err != nil {
			return l.failed(err)
		}
		l.pending = l.pending[1:]
	}
	note := Entry{Time: l.cfg.Now().UTC(), Event: EventBroken, Reason: fmt.Sprintf("the log could not be written before this line: %v", l.broken)}
	if l.lost > 0 {
		note.Event, note.Reason = EventLost, fmt.Sprintf("%d lines of changes are lost: %v", l.lost, l.broken)
	}
	if err := l.append(note, true); err != nil {
		return l.failed(err)
	}
	l.cfg.Logger.Info("the audit log can be written again", "file", l.cfg.Path, "lost", l.lost)
	l.broken, l.pending, l.lost = nil, nil, 0
	return nil
}

// failed notes that a line could not be written, and says so once.
func (l *Log) failed(err error) error {
	if err == nil {
		return nil
	}
	if l.broken == nil {
		l.cfg.Logger.Error("the audit log cannot be written; changes are refused until it can", "file", l.cfg.Path, "error", err)
	}
	l.broken = err
	return err
}

// append writes the next line of the chain.
func (l *Log) append(e Entry, sync bool) error {
	cut, err := l.reopenIfMoved()
	if err != nil {
		return err
	}
	if cut != "" {
		if err := l.append(Entry{Time: l.cfg.Now().UTC(), Event: EventBroken, Reason: cut}, true); err != nil {
			return err
		}
	}
	text, hash, err := Line{Seq: l.seq + 1, Entry: e, Prev: l.prev}.encode()
	if err != nil {
		return fmt.Errorf("encode a line: %w", err)
	}
	if l.size > 0 && l.size+int64(len(text)) > l.cfg.MaxSize {
		if err := l.rotate(); err != nil {
			return fmt.Errorf("begin a new file: %w", err)
		}
	}
	if l.dirty {
		if err := l.f.Truncate(l.size); err != nil {
			return fmt.Errorf("remove half a line: %w", err)
		}
		l.dirty = false
	}
	if _, err := l.f.WriteAt(text, l.size); err != nil {
		l.dirty = true
		return fmt.Errorf("write a line: %w", err)
	}
	if sync {
		if err := l.f.Sync(); err != nil {
			l.dirty = true // it is written again
			return fmt.Errorf("bring a line to the disk: %w", err)
		}
	}
	l.unsynced = !sync
	l.size, l.seq, l.prev = l.size+int64(len(text)), l.seq+1, hash
	return nil
}

// reopenIfMoved opens the file anew where it is not the one at the path any more: somebody
// moved or removed it, and lines written into it would be seen by nobody. cut says that,
// or that somebody cut it off, as logrotate does with copytruncate.
func (l *Log) reopenIfMoved() (cut string, err error) {
	if l.f != nil {
		there, err := os.Stat(l.cfg.Path)
		if err == nil {
			if ours, err := l.f.Stat(); err == nil && os.SameFile(there, ours) {
				if ours.Size() < l.size {
					return l.shorten(ours.Size())
				}
				return "", nil
			}
		} else if !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		l.cfg.Logger.Warn("the audit log was moved away; its chain goes on in a new file", "file", l.cfg.Path, "line", l.seq, "hash", l.prev)
		_ = l.f.Close()
		l.f = nil
		cut = fmt.Sprintf("somebody moved the file away, or removed it, behind line %d; the chain goes on", l.seq)
	}
	f, err := l.open(l.cfg.Path)
	if err != nil {
		return "", err
	}
	info, err := f.Stat()
	if err != nil {
		_ = f.Close()
		return "", err
	}
	l.f, l.size, l.dirty = f, info.Size(), false
	return cut, nil
}

// shorten goes on behind the last whole line of a file that was cut off, and says so: to
// go on where it ended before would leave a hole.
func (l *Log) shorten(size int64) (cut string, err error) {
	left, err := endOf([]string{l.cfg.Path})
	if err != nil {
		return "", err
	}
	cut = fmt.Sprintf("somebody cut the file off at byte %d of %d, behind line %d; the chain goes on", size, l.size, l.seq)
	l.cfg.Logger.Warn("the audit log was cut off; its chain goes on", "file", l.cfg.Path, "line", l.seq, "hash", l.prev, "from", l.size, "to", size)
	l.size, l.dirty = size-int64(len(left.half)), true
	return cut, nil
}

// rotate closes the file, under the number of its last line, and begins another.
func (l *Log) rotate() error {
	if err := l.f.Truncate(l.size); err != nil { // of half a line, which the new file is to begin with
		return err
	}
	if err := l.f.Sync(); err != nil {
		return err
	}
	l.unsynced = false
	if err := os.Rename(l.cfg.Path, rotated(l.cfg.Path, l.seq)); err != nil {
		return err
	}
	_ = l.f.Close()
	l.f = nil
	if _, err := l.reopenIfMoved(); err != nil { // a new file is not cut off
		return err
	}
	if err := syncDir(filepath.Dir(l.cfg.Path)); err != nil {
		return err
	}
	l.cfg.Logger.Info("the audit log goes on in a new file", "file", l.cfg.Path, "line", l.seq, "hash", l.prev)
	if l.cfg.Anchored {
		return nil
	}
	first, err := l.kept()
	if err != nil {
		return err
	}
	return l.prune(first)
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// Close ends the log; what is written is on the disk.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	if l.f == nil {
		return l.broken
	}
	err := errors.Join(l.f.Sync(), l.f.Close())
	l.unsynced = l.unsynced && err != nil
	return err
}
