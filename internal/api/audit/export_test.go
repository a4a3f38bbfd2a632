package audit

import (
	"io/fs"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Fault is what the next use of the file fails with, if it fails.
type FaultyFile struct {
	file
	Half int   // bytes that a write brings to the file before it fails
	Err  error // nil: it works
}

func (f *FaultyFile) WriteAt(b []byte, off int64) (int, error) {
	if f.Err != nil {
		n, _ := f.file.WriteAt(b[:min(f.Half, len(b))], off)
		return n, f.Err
	}
	return f.file.WriteAt(b, off)
}

func (f *FaultyFile) Stat() (fs.FileInfo, error) { return f.file.Stat() }

// Break puts a file that can fail under the log.
func (l *Log) Break() *FaultyFile {
	f := &FaultyFile{file: l.f}
	l.f = f
	return f
}

// VerifyChain checks the chain of files whose anchor is not known.
func VerifyChain(files ...string) (Report, error) { return Verify(fleet.AuditAnchor{}, 0, files...) }
