package store

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

const (
	snapshotFormat  = "kura-snapshot"
	snapshotVersion = 1
	snapshotLine    = 4 * kv.MaxBytes // more than any record takes
)

// KindOther counts what a snapshot holds besides the known kinds. No record is of it.
const KindOther = "other"

// ErrSnapshot says that a file is no snapshot, or not the one that was saved.
var ErrSnapshot = errors.New("the snapshot cannot be used")

// Snapshot says what a snapshot holds, without the values.
type Snapshot struct {
	Environment string
	StoreID     string // of the records that it was taken from
	Revision    int64  // at which all of them were read
	Schema      int
	TakenAt     time.Time
	Records     int
	Kinds       map[Kind]int
}

// A snapshot is a text file of JSON lines: one header, the records in the order of their
// keys, and one trailer, whose hash is that of everything before it. The schema record,
// who leads, who writes alone and where audit logs end are facts of one store and not part
// of it; nor are claims of tries, which name a revision of that store.
type (
	snapshotHeader struct {
		Format      string    `json:"format"`
		Version     int       `json:"version"`
		Environment string    `json:"environment"`
		Store       string    `json:"store"`
		Revision    int64     `json:"revision"`
		Schema      int       `json:"schema"`
		TakenAt     time.Time `json:"taken_at"`
	}
	snapshotRecord struct {
		Key   string `json:"key"` // below the environment's prefix
		Value []byte `json:"value"`
	}
	snapshotTrailer struct {
		Count  int    `json:"count"`
		SHA256 string `json:"sha256"`
	}
)

// kept reports whether a key, below the environment's prefix, is part of a snapshot.
func kept(key string) bool {
	return key != schemaKey && key != lockKey && key != restoringKey && !strings.HasPrefix(key, leaderFolder) && !strings.HasPrefix(key, anchorsFolder)
}

func kindOf(key string) Kind {
	if p, ok := parseKey(key); ok {
		return p.kind
	}
	return KindOther
}

// Save writes a snapshot of all records, as they are at one revision, to w.
func (r *Records) Save(ctx context.Context, w io.Writer) (Snapshot, error) {
	revision, err := r.Revision(ctx)
	if err != nil {
		return Snapshot{}, err
	}
	header := snapshotHeader{
		Format: snapshotFormat, Version: snapshotVersion, Environment: strings.TrimSuffix(strings.TrimPrefix(r.prefix, keyRoot), "/"),
		Store: r.storeID, Revision: revision, Schema: fleet.SchemaVersion, TakenAt: now().Truncate(time.Second),
	}
	out := snapshotWriter{w: bufio.NewWriter(w), hash: sha256.New()}
	s := header.info()
	out.line(header)
	if err := r.scan(ctx, "", &revision, func(key string, item kv.Item) {
		if kept(key) && kindOf(key) != KindTry { // it names a revision of this store
			out.line(snapshotRecord{key, item.Value})
			s.add(key)
		}
	}); err != nil {
		return Snapshot{}, err
	}
	out.line(snapshotTrailer{s.Records, hex.EncodeToString(out.hash.Sum(nil))})
	if err := errors.Join(out.err, out.w.Flush()); err != nil {
		return Snapshot{}, fmt.Errorf("write the snapshot: %w", err)
	}
	return s, nil
}

func (h snapshotHeader) info() Snapshot {
	return Snapshot{Environment: h.Environment, StoreID: h.Store, Revision: h.Revision, Schema: h.Schema, TakenAt: h.TakenAt, Kinds: map[Kind]int{}}
}

func (s *Snapshot) add(key string) {
	s.Records++
	s.Kinds[kindOf(key)]++
}

// snapshotWriter writes lines, hashes them, and keeps the first error.
type snapshotWriter struct {
	w    *bufio.Writer
	hash hash.Hash
	err  error
}

func (w *snapshotWriter) line(v any) {
	b, err := json.Marshal(v)
	if err == nil && w.err == nil {
		_, err = io.MultiWriter(w.w, w.hash).Write(append(b, '\n'))
	}
	if w.err == nil {
		w.err = err
	}
}

// Verify reads a snapshot to its end and says what it holds. It returns ErrSnapshot where
// a single byte is not as it was saved.
func Verify(r io.Reader) (Snapshot, error) {
	return readSnapshot(r, func(string, []byte) error { return nil })
}

// readSnapshot hands out the records, by key below the prefix; only when it returns nil
// were they what was saved.
func readSnapshot(r io.Reader, each func(key string, value []byte) error) (Snapshot, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, snapshotLine)
	lines.Split(wholeLines)
	hash := sha256.New()
	bad := func(format string, args ...any) (Snapshot, error) {
		if err := lines.Err(); err != nil && !errors.Is(err, bufio.ErrTooLong) {
			return Snapshot{}, fmt.Errorf("read the snapshot: %w", err)
		}
		return Snapshot{}, fmt.Errorf("%w: %s; take another copy of it, or another snapshot", ErrSnapshot, fmt.Sprintf(format, args...))
	}
	if !lines.Scan() {
		return bad("it is empty or no snapshot")
	}
	var header snapshotHeader
	if err := json.Unmarshal(lines.Bytes(), &header); err != nil || header.Format != snapshotFormat {
		return bad("it does not begin as a snapshot of kurad does")
	}
	if header.Version > snapshotVersion {
		return Snapshot{}, fmt.Errorf("%w: it has format %d and this kurad knows up to %d: use a kurad that is at least as new as the one that wrote it", ErrSnapshot, header.Version, snapshotVersion)
	}
	hash.Write(lines.Bytes())
	s := header.info()
	for lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), []byte(`{"count":`)) {
			want, err := json.Marshal(snapshotTrailer{s.Records, hex.EncodeToString(hash.Sum(nil))})
			if err != nil {
				return Snapshot{}, err
			}
			if !bytes.Equal(lines.Bytes(), append(want, '\n')) {
				return bad("its checksum does not fit what it holds")
			}
			if lines.Scan() || lines.Err() != nil {
				return bad("something follows after its end")
			}
			return s, nil
		}
		var record snapshotRecord
		if err := json.Unmarshal(lines.Bytes(), &record); err != nil || record.Key == "" || !kept(record.Key) {
			return bad("record %d cannot be read", s.Records+1)
		}
		hash.Write(lines.Bytes())
		s.add(record.Key)
		if err := each(record.Key, record.Value); err != nil {
			return Snapshot{}, err
		}
	}
	return bad("it ends after %d records, before its checksum", s.Records)
}

// wholeLines cuts after each newline and keeps it; what is left at the end is a line too,
// which no line of a snapshot is.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
