package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/client/pkg/v3/fileutil"
)

// openDir makes the data directory ready: only its owner may look into it, and only
// one process uses it. etcd has locks of its own but waits for them without end.
func openDir(dir string) (*fileutil.LockedFile, error) {
	if dir == "" {
		return nil, errors.New("no data directory was given")
	}
	switch info, err := os.Stat(dir); {
	case errors.Is(err, fs.ErrNotExist):
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory", dir)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("others may look into it (mode %04o): run \"chmod 700 %s\"", info.Mode().Perm(), dir)
	}
	lock, err := fileutil.TryLockFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if errors.Is(err, fileutil.ErrLocked) {
		return nil, errors.New("another process uses it: stop the other kurad, or give this one a data directory of its own")
	}
	if err != nil {
		return nil, fmt.Errorf("lock it: %w", err)
	}
	return lock, nil
}
