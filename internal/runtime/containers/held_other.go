//go:build !linux

package containers

// openWithoutLinks cannot keep a path open here: what may be mounted is checked by its name.
func openWithoutLinks(string) (h held, ok bool, err error) { return h, false, nil }

// mountedAt cannot look into containers here.
func mountedAt(int, string) (at inode, ok bool) { return at, false }
