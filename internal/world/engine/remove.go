package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Remove removes what an engine of another process, ended or not, left in dir. A
// folder that does not exist or holds no engine is no error, and is left as it is.
func Remove(ctx context.Context, dir string) error {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	var errs []error
	found := false
	if b, err := os.ReadFile(pidFile(dir)); err == nil {
		found = true
		errs = append(errs, endService(string(b), dir))
	}
	state, err := os.ReadFile(stateFile(dir))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	for _, v := range variants() {
		s := settingsOf(v, dir, string(state))
		if _, err := os.Stat(filepath.Join(s.dir, "containers.conf")); err == nil {
			found = true
			errs = append(errs, s.clear(ctx))
		}
	}
	if len(state) > 0 {
		found = true
		errs = append(errs, removeTree(string(state)))
	}
	if found {
		errs = append(errs, removeTree(dir))
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("remove the engine left in %s: %w", dir, err)
	}
	return nil
}

// endService ends the process of a service file, if it still is that service.
func endService(pid, dir string) error {
	n, err := strconv.Atoi(strings.TrimSpace(pid))
	if err != nil {
		return nil
	}
	cmdline, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(n), "cmdline"))
	if err != nil || !strings.Contains(string(cmdline), dir+"/") || !strings.Contains(string(cmdline), "service") {
		return nil
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("end podman service %d: %w", n, err)
	}
	return nil
}

// removeTree unmounts what is mounted below dir, the deepest first, and deletes it.
func removeTree(dir string) error {
	if dir == "" {
		return nil
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	defer f.Close()
	var points []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		// Field 5 is the mount point, with blanks as \040.
		if fields := strings.Fields(lines.Text()); len(fields) > 4 {
			point := strings.ReplaceAll(fields[4], `\040`, " ")
			if point == dir || strings.HasPrefix(point, dir+"/") {
				points = append(points, point)
			}
		}
	}
	slices.SortFunc(points, func(a, b string) int { return len(b) - len(a) })
	for _, point := range points {
		if err := syscall.Unmount(point, syscall.MNT_DETACH); err != nil && !errors.Is(err, syscall.EINVAL) {
			return fmt.Errorf("unmount %s: %w", point, err)
		}
	}
	return deleteTree(dir)
}

// deleteTree deletes dir. Podman's clean-up after a container that ended runs by itself
// and may still write below dir, which is then not empty: it is deleted again.
func deleteTree(dir string) error {
	for tries := 1; ; tries++ {
		err := os.RemoveAll(dir)
		if !errors.Is(err, syscall.ENOTEMPTY) || tries == 50 {
			return err
		}
		<-time.After(100 * time.Millisecond)
	}
}
