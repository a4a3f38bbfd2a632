package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal opens a terminal of some size; what is written to it arrives in the buffer.
func terminal(t *testing.T, columns, rows uint16) (*os.File, *lockedBuffer) {
	t.Helper()
	user, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatalf("this machine gives no terminal (mount devpts on /dev/pts): %v", err)
	}
	t.Cleanup(func() { user.Close() })
	if err := unix.IoctlSetPointerInt(int(user.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(user.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatalf("this machine gives no terminal (mount devpts on /dev/pts): %v", err)
	}
	t.Cleanup(func() { program.Close() })
	resize(t, program, columns, rows)
	shown := &lockedBuffer{}
	go func() {
		var b [4096]byte
		for {
			n, err := user.Read(b[:])
			if err != nil {
				return
			}
			_, _ = shown.Write(b[:n])
		}
	}()
	return program, shown
}

func resize(t *testing.T, terminal *os.File, columns, rows uint16) {
	t.Helper()
	if err := unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Col: columns, Row: rows}); err != nil {
		t.Fatal(err)
	}
}

// frames are the frames that were drawn, each as its lines.
func frames(b *lockedBuffer) (all [][]string) {
	text := strings.ReplaceAll(b.String(), "\r\r\n", "\r\n") // a terminal makes that of a new line
	for _, f := range strings.Split(text, "\x1b[?2026h\x1b[H")[1:] {
		f, _, whole := strings.Cut(f, "\x1b[K\x1b[J\x1b[?2026l")
		if whole {
			all = append(all, strings.Split(f, "\x1b[K\r\n"))
		}
	}
	return all
}

// On a terminal the fleet stays in its place: ages go on, a window of another size is filled
// anew, a daemon that is away is said, and in the end the terminal is as it was.
func TestStatusWatch_drawsOnATerminal(t *testing.T) {
	noEnvironment(t)
	t.Setenv("NO_COLOR", "1")
	o := optionsFor(t)
	p := startInProcess(t, o)
	declareAcme(t, p.client)
	unobserved(t, p.client)
	window, shown := terminal(t, 120, 30)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	c := command()
	c.SetArgs([]string{"status", "--watch", "--data-dir", o.dataDir})
	c.SetOut(window)
	c.SetErr(&bytes.Buffer{})
	ended := make(chan error, 1)
	go func() { ended <- c.ExecuteContext(ctx) }()
	last := func(what string, is func(frame []string) bool) {
		t.Helper()
		soon(t, what, func() error {
			all := frames(shown)
			if len(all) == 0 || !is(all[len(all)-1]) {
				return fmt.Errorf("%d frames, in all %q", len(all), shown.String())
			}
			return nil
		})
	}
	last("it shows the fleet", func(f []string) bool {
		return f[0] == "1 server: 1 unobserved" && strings.Contains(strings.Join(f, "\n"), "RuntimeUnreachable")
	})
	drawn := len(frames(shown))
	last("it is drawn again though nothing changes", func([]string) bool { return len(frames(shown)) > drawn+1 })
	resize(t, window, 20, 4)
	last("a smaller window is filled", func(f []string) bool {
		return len(f) == 4 && strings.HasPrefix(f[3], " 2 more lines")
	})
	resize(t, window, 120, 30)
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	last("it says that kurad is away, and what was known", func(f []string) bool {
		return strings.HasPrefix(f[1], "kurad does not answer since ") && strings.Contains(strings.Join(f, "\n"), "acme/eu")
	})
	interrupt()
	if err := <-ended; err != nil {
		t.Errorf("interrupted: %v", err)
	}
	soon(t, "the terminal is as before", func() error {
		if b := shown.String(); !strings.HasPrefix(b, "\x1b[?1049h\x1b[?25l") || !strings.HasSuffix(b, "\x1b[?25h\x1b[?1049l") {
			return fmt.Errorf("%q", b)
		}
		return nil
	})
}
