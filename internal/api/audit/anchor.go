package audit

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Mark returns what an anchor of the log is to say now: all of it is on the disk, and of
// the oldest files those are left out that Prune is to remove afterwards.
func (l *Log) Mark() (a fleet.AuditAnchor, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.unsynced && l.f != nil {
		if err := l.f.Sync(); err != nil {
			return a, err
		}
		l.unsynced = false
	}
	first, err := l.kept()
	return fleet.AuditAnchor{First: first, Seq: l.seq, Hash: l.prev}, err
}

// Prune removes the files whose lines are all older than the line with the number.
func (l *Log) Prune(first uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.prune(first)
}

// kept returns the number of the oldest line that is kept beside the newest files.
func (l *Log) kept() (uint64, error) {
	files, err := Files(l.cfg.Path)
	if err != nil {
		return 0, err
	}
	first := max(l.first, 1)
	for _, name := range files[:max(0, len(files)-l.cfg.Keep-1)] {
		first = max(first, lastIn(name)+1)
	}
	return first, nil
}

func (l *Log) prune(first uint64) error {
	files, err := Files(l.cfg.Path)
	if err != nil {
		return err
	}
	for _, name := range files {
		if last := lastIn(name); last != 0 && last < first {
			if err := os.Remove(name); err != nil {
				return err
			}
		}
	}
	l.first = max(l.first, first)
	return nil
}

// lastIn is the number of the last line of a closed file, 0 of the one that is written.
func lastIn(name string) uint64 {
	n, _ := strconv.ParseUint(strings.TrimPrefix(rotatedName.FindString(name), "."), 10, 64)
	return n
}

// Compare compares the log, as it was opened, with its anchor (G10). Where lines are
// missing that the anchor knows, or are others, the log says so in its next line, and the
// chain goes on behind the anchor: so the break stays visible.
func (l *Log) Compare(a fleet.AuditAnchor) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	why, rewritten, err := l.tampering(a)
	if err != nil || why == "" {
		return err
	}
	l.cfg.Logger.Error("THE AUDIT LOG WAS TAMPERED WITH while kurad was stopped, or its disk lost what it had kept", "file", l.cfg.Path, "reason", why,
		"next", "compare with a copy of yours; kurad audit verify names the place")
	if rewritten {
		l.seq, l.prev = max(l.seq, a.Seq), a.Hash
		if l.first == 0 {
			l.first = l.seq + 1 // nothing is left
		}
	}
	return l.append(Entry{Time: l.cfg.Now().UTC(), Event: EventTampered, Reason: why}, true)
}

// tampering says what the anchor knows and the log does not. rewritten is false where the
// log has the anchor's line.
func (l *Log) tampering(a fleet.AuditAnchor) (why string, rewritten bool, err error) {
	if a.Seq == 0 {
		return "", false, nil
	}
	files, err := Files(l.cfg.Path)
	if err != nil {
		return "", false, err
	}
	hash, err := hashOfLine(files, a.Seq)
	if err != nil {
		return "", false, err
	}
	switch first := max(l.first, 1); {
	case l.seq == 0:
		return fmt.Sprintf("lines %d to %d are gone", a.First, a.Seq), true, nil
	case l.seq < a.Seq:
		return fmt.Sprintf("lines %d to %d are gone: it was cut off behind line %d", l.seq+1, a.Seq, l.seq), true, nil
	case hash != a.Hash:
		return fmt.Sprintf("line %d is not the one that kurad wrote: it, or one before it, was written anew", a.Seq), true, nil
	case first > a.First:
		return fmt.Sprintf("lines %d to %d are gone at its beginning", a.First, first-1), false, nil
	}
	return "", false, nil
}

// firstOf is the number of the first line of the files, 0 where there is none.
func firstOf(files []string) (uint64, error) {
	for _, name := range files {
		for line, err := range linesOf(name) {
			if err != nil {
				return 0, err
			}
			if l, err := parse(line.text); err == nil {
				return l.Seq, nil
			}
			break
		}
	}
	return 0, nil
}

// hashOfLine finds a line by its number, from the newest file on, and returns its hash, ""
// where it is not there.
func hashOfLine(files []string, seq uint64) (string, error) {
	begin := fmt.Appendf(nil, `{"seq":%d,`, seq) // most lines need not be parsed
	for _, name := range slices.Backward(files) {
		if last := lastIn(name); last != 0 && last < seq {
			break
		}
		for line, err := range linesOf(name) {
			if err != nil {
				return "", err
			}
			if !bytes.HasPrefix(line.text, begin) {
				continue
			}
			if l, err := parse(line.text); err == nil {
				return l.Hash, nil
			}
		}
	}
	return "", nil
}
