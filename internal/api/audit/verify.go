package audit

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// maxLine bounds, in bytes, what is read as one line.
const maxLine = 1 << 20

// rotated names a closed file after its last line.
func rotated(path string, seq uint64) string { return fmt.Sprintf("%s.%012d", path, seq) }

var rotatedName = regexp.MustCompile(`\.[0-9]{12,}$`)

// Files returns the files of the log at a path, the oldest first; none where there are
// none.
func Files(path string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []string
	current := false
	for _, e := range entries {
		switch name := filepath.Join(filepath.Dir(path), e.Name()); {
		case name == filepath.Clean(path):
			current = true
		case rotatedName.MatchString(name) && rotatedName.ReplaceAllString(name, "") == filepath.Clean(path):
			files = append(files, name)
		}
	}
	slices.Sort(files)
	if current {
		files = append(files, filepath.Clean(path))
	}
	return files, nil
}

// Report is what Verify found.
type Report struct {
	Lines       int
	First, Last uint64    // numbers of the first and last line; the first is 1 unless older files were removed
	From, To    time.Time // their times
	Hash        string    // of the last line
	// Half is set where the newest file ends in half a line: kurad was killed while it
	// wrote it. Its next start says so in the log.
	Half bool

	after  uint64            // the number of a line: what is wrong up to it is known
	anchor fleet.AuditAnchor // zero: none is known
}

// Fault is the first line that is wrong.
type Fault struct {
	File string
	Line int // from 1, in the file
	Why  string
}

func (f *Fault) Error() string { return fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Why) }

// Verify checks the chain of the files of one log, in the order that their names say, and
// against the log's anchor, which was read before; the zero anchor: none is known. What is
// wrong up to the line with the number after is known and left out. Its error is a *Fault,
// unless a file cannot be read.
func Verify(anchor fleet.AuditAnchor, after uint64, files ...string) (Report, error) {
	r := Report{anchor: anchor, after: after}
	files = slices.Clone(files)
	slices.SortStableFunc(files, func(a, b string) int {
		x, y := rotatedName.FindString(a), rotatedName.FindString(b)
		if (x == "") != (y == "") { // the file that is written comes last
			return cmp.Compare(len(y), len(x))
		}
		return cmp.Compare(x, y)
	})
	for i, name := range files {
		if err := r.file(name, i == len(files)-1); err != nil {
			return r, err
		}
	}
	return r, r.missing(files)
}

// missing says which lines the anchor knows that are not there.
func (r *Report) missing(files []string) error {
	name := "the audit log"
	if len(files) > 0 {
		name = files[len(files)-1]
	}
	a := r.anchor
	switch {
	case a.Seq <= r.after || a.Seq == 0:
		return nil
	case r.Lines == 0:
		return &Fault{File: name, Line: 1, Why: fmt.Sprintf("lines %d to %d, which kurad has written, are gone", max(a.First, r.after+1), a.Seq)}
	case r.First > max(a.First, r.after+1):
		return &Fault{File: files[0], Line: 1, Why: fmt.Sprintf("lines %d to %d, which kurad has not removed, are gone", max(a.First, r.after+1), r.First-1)}
	case r.Last < a.Seq:
		return &Fault{File: name, Line: r.Lines + 1, Why: fmt.Sprintf("lines %d to %d, which kurad has written, are gone: the end was cut off", r.Last+1, a.Seq)}
	}
	return nil
}

func (r *Report) file(name string, newest bool) error {
	for l, err := range linesOf(name) {
		why := ""
		switch {
		case err != nil:
			return err
		case l.tooLong:
			why = errNoLine.Error() + ": it is too long"
		case !l.whole && newest:
			r.Half = true
		default:
			why = r.line(l.text)
		}
		if why != "" {
			return &Fault{File: name, Line: l.at, Why: why}
		}
	}
	return nil
}

// line checks the next line and says what is wrong with it.
func (r *Report) line(text []byte) string {
	l, err := parse(text)
	switch {
	case err != nil:
		return err.Error()
	case l.Seq <= r.after:
		return ""
	case l.Event == EventTampered:
		return fmt.Sprintf("line %d says that kurad found the log tampered with: %s", l.Seq, l.Reason)
	case l.Seq == r.anchor.Seq && l.Hash != r.anchor.Hash:
		return fmt.Sprintf("line %d of the chain is not the one that kurad wrote: it, or one before it, was written anew", l.Seq)
	case r.Lines > 0 && l.Seq != r.Last+1:
		return fmt.Sprintf("this is line %d of the chain, where line %d must be: lines are missing, added or swapped", l.Seq, r.Last+1)
	case r.Lines > 0 && l.Prev != r.Hash, r.Lines == 0 && l.Seq == 1 && l.Prev != "":
		return fmt.Sprintf("line %d of the chain does not follow the line before it: that one, or both, were written anew", l.Seq)
	}
	if r.Lines == 0 {
		r.First, r.From = l.Seq, l.Time
	}
	r.Lines, r.Last, r.To, r.Hash = r.Lines+1, l.Seq, l.Time, l.Hash
	return ""
}

// fileLine is a line as it is in a file.
type fileLine struct {
	at      int // from 1
	text    []byte
	whole   bool // false: it has no end
	tooLong bool // longer than maxLine, and text is not all of it
}

// linesOf reads the lines of a file, until an error.
func linesOf(name string) iter.Seq2[fileLine, error] {
	return func(yield func(fileLine, error) bool) {
		file, err := os.Open(name)
		if err != nil {
			yield(fileLine{}, err)
			return
		}
		defer file.Close()
		in := bufio.NewReaderSize(file, maxLine)
		for at := 1; ; at++ {
			text, err := in.ReadSlice('\n')
			tooLong := errors.Is(err, bufio.ErrBufferFull)
			for errors.Is(err, bufio.ErrBufferFull) {
				text, err = in.ReadSlice('\n')
			}
			last := err != nil
			if errors.Is(err, io.EOF) {
				if len(text) == 0 && !tooLong {
					return
				}
				err = nil
			}
			text, whole := bytes.CutSuffix(text, []byte("\n"))
			if !yield(fileLine{at, text, whole, tooLong}, err) || last {
				return
			}
		}
	}
}

// end is where a chain goes on.
type end struct {
	last  Line
	half  []byte // what follows the last whole line of the newest file
	wrong error  // the last line is none
}

// endOf finds the end of the chain in the files of a log.
func endOf(files []string) (e end, err error) {
	if len(files) == 0 {
		return end{}, nil
	}
	newest := files[len(files)-1]
	var last []byte // of the whole lines
	whole := 0
	for line, err := range linesOf(newest) {
		switch {
		case err != nil:
			return end{}, err
		case line.tooLong && !line.whole:
			return end{}, fmt.Errorf("%s is no audit log: its last line is longer than any that kurad writes", newest)
		case line.whole:
			last = append(last[:0], line.text...)
			whole++
		default:
			e.half = bytes.Clone(line.text)
		}
	}
	if whole == 0 { // an empty file, or one with half a line only: the one before has the end
		half := e.half
		e, err = endOf(files[:len(files)-1])
		e.half = half
		return e, err
	}
	if e.last, e.wrong = parse(last); e.wrong != nil {
		// Numbers go on, so that a later line is not taken for an earlier one, and a file that
		// is closed later is not named before an older one.
		e.last = Line{}
		e.last.Seq, err = lastNumber(files)
	}
	return e, err
}

// lastNumber returns the number of the last whole line where that cannot be read. They are
// numbered without gaps, and closed files are named after their last lines.
func lastNumber(files []string) (seq uint64, err error) {
	for _, name := range files {
		seq = max(seq, lastIn(name))
	}
	for line, err := range linesOf(files[len(files)-1]) {
		if err != nil {
			return 0, err
		}
		if l, err := parse(line.text); err == nil {
			seq = max(seq, l.Seq)
		} else if line.whole {
			seq++
		}
	}
	return seq, nil
}
