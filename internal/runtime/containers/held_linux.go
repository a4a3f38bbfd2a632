package containers

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// openWithoutLinks opens a path, following no link. ok is false where it is not there, or where
// this system cannot tell.
func openWithoutLinks(path string) (h held, ok bool, err error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	switch {
	case errors.Is(err, unix.ELOOP):
		return h, false, err
	case err != nil: // not there, or an old system
		return h, false, nil
	}
	h.file = os.NewFile(uintptr(fd), path)
	if h.inode, err = inodeOf(fd); err != nil {
		_ = h.file.Close()
		return h, false, err
	}
	return h, true, nil
}

func inodeOf(fd int) (inode, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return inode{st.Dev, st.Ino}, err
}

// mountedAt returns what a process has mounted at a path. ok is false where that cannot be
// seen: the process has ended, or is none of this machine's or not kurad's to look at.
func mountedAt(pid int, target string) (at inode, ok bool) {
	if pid <= 0 {
		return at, false
	}
	mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", pid))
	if err != nil || !strings.Contains(string(mounts), " "+mountName.Replace(target)+" ") {
		return at, false
	}
	root, err := unix.Open(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return at, false
	}
	defer unix.Close(root)
	fd, err := unix.Openat2(root, strings.TrimPrefix(target, "/"), &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return at, false
	}
	defer unix.Close(fd)
	at, err = inodeOf(fd)
	return at, err == nil
}

// mountName is how mountinfo writes a path.
var mountName = strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`)
