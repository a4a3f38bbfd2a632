package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

const (
	// watchWait is how long a poll waits for a change. After a quiet one everything is read
	// again, for the time of the last observation is no change.
	watchWait = 10 * time.Second
	// glance is how often the window's size is looked at.
	glance = 200 * time.Millisecond
)

// frame is what a watch shows: the newest answer, and since when there is none newer.
type frame struct {
	value any
	err   error
	since time.Time
}

// follow shows every change until ctx ends: on a terminal in place, elsewhere line by
// line, and only what changed.
func (o statusOptions) follow(ctx context.Context, w, said io.Writer, first any) error {
	ctx, cancel := context.WithCancel(ctx)
	frames, ended := make(chan frame), make(chan error, 1)
	go func() { ended <- o.feed(ctx, frames) }()
	var err error
	if file, ok := w.(*os.File); ok && isTerminal(w) && o.output == "table" {
		err = o.draw(ctx, file, frame{value: first}, frames, ended)
	} else {
		err = o.append(ctx, w, said, first, frames, ended)
	}
	cancel()
	return err
}

// feed sends what it reads until ctx ends, or until an error that does not pass.
func (o statusOptions) feed(ctx context.Context, frames chan<- frame) error {
	var (
		c       *api.Client
		poll    poller
		f       frame
		connect = func() (err error) {
			if c == nil {
				c, err = o.impatient()
				poll = poller{o: o, c: c}
			}
			return err
		}
	)
	for {
		err := connect()
		if err == nil {
			var v any
			if v, err = poll.next(ctx); err == nil {
				f = frame{value: v}
			}
		}
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !passes(err) {
			return err
		}
		if err != nil {
			if f.err == nil {
				f.since = time.Now()
			}
			f.err, c = err, nil // a daemon that starts again may have another address
		}
		select {
		case frames <- f:
		case <-ctx.Done():
			return nil
		}
		if err != nil && !kv.Pause(ctx, time.Second) {
			return nil
		}
	}
}

// poller reads what changed, and keeps the rest.
type poller struct {
	o      statusOptions
	c      *api.Client
	cursor string
	fleet  map[fleet.ServerKey]fleet.ServerView
}

func (p *poller) next(ctx context.Context) (any, error) {
	if key := p.o.server; key != nil {
		changes, err := p.c.WaitServer(ctx, *key, p.cursor, watchWait)
		if err != nil {
			return nil, err
		}
		p.cursor = changes.Cursor
		return readServer(ctx, p.c, *key, false)
	}
	changes, err := p.c.WaitServers(ctx, p.o.region, p.cursor, watchWait)
	if err == nil && !changes.Full && len(changes.Items)+len(changes.Gone) == 0 {
		changes, err = p.c.WaitServers(ctx, p.o.region, "", 0)
	}
	if err != nil {
		return nil, err
	}
	if p.cursor = changes.Cursor; changes.Full {
		p.fleet = map[fleet.ServerKey]fleet.ServerView{}
	}
	for _, s := range changes.Items {
		if p.o.account == "" || p.o.account == s.Account {
			p.fleet[fleet.ServerKey{Account: s.Account, Region: s.Region}] = s
		}
	}
	for _, k := range changes.Gone {
		delete(p.fleet, k)
	}
	return slices.Collect(maps.Values(p.fleet)), nil
}

// append prints every state below the one before.
func (o statusOptions) append(ctx context.Context, w, said io.Writer, first any, frames <-chan frame, ended <-chan error) error {
	last, lost := "", false
	show := func(v any) error {
		state, err := json.Marshal(timeless(v))
		if err != nil || last == string(state) {
			return err
		}
		last = string(state)
		return o.print(w, v)
	}
	if err := show(first); err != nil {
		return err
	}
	for {
		select {
		case f := <-frames:
			if f.err != nil && !lost {
				fmt.Fprintf(said, "kurad: %v; trying again until it answers\n", f.err)
			}
			if lost = f.err != nil; lost {
				continue
			}
			if err := show(f.value); err != nil {
				return err
			}
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// draw keeps the newest frame on the terminal's other screen, whose content comes back at
// the end. Ages go on, and a window of another size is filled anew.
func (o statusOptions) draw(ctx context.Context, w *os.File, f frame, frames <-chan frame, ended <-chan error) error {
	fmt.Fprint(w, "\x1b[?1049h\x1b[?25l") // the other screen, without a cursor
	defer fmt.Fprint(w, "\x1b[?25h\x1b[?1049l")
	ticks := time.NewTicker(glance)
	defer ticks.Stop()
	var width, height int
	var drawn time.Time
	redraw := func() {
		lines := o.lines(f, width, height)
		// Nothing is cleared before it is written over, and all of it is one write: no flicker.
		fmt.Fprint(w, "\x1b[?2026h\x1b[H"+strings.Join(lines, "\x1b[K\r\n")+"\x1b[K\x1b[J\x1b[?2026l")
		drawn = time.Now()
	}
	for {
		if x, y, err := term.GetSize(int(w.Fd())); err == nil && (x != width || y != height) {
			width, height = x, y
			redraw()
		}
		select {
		case next := <-frames:
			if next.value == nil {
				next.value = f.value
			}
			f = next
			redraw()
		case <-ticks.C:
			if time.Since(drawn) >= time.Second {
				redraw()
			}
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// canvas is a text that will be on a terminal.
type canvas struct{ bytes.Buffer }

// lines is a frame in a window of a size.
func (o statusOptions) lines(f frame, width, height int) []string {
	var top, body []string
	hidden := ""
	if list, ok := f.value.([]fleet.ServerView); ok {
		top = append(top, tally(list))
		rows := max(height-5, 1) // the tally, an empty line, the header, its line, and what is hidden
		if f.err != nil {
			rows = max(rows-1, 1)
		}
		shown, more := list, 0
		sortServers(shown)
		if len(list) > rows+1 {
			shown, more = urgent(list)[:rows], len(list)-rows
			hidden = fmt.Sprintf(" and %d more, for which the window is too small", more)
			if quiet := converged(urgent(list)[rows:]); quiet == more {
				hidden = fmt.Sprintf(" and %d more, all converged", more)
			}
		}
		var c canvas
		if len(shown) == 0 {
			fmt.Fprintln(&c, "no servers are declared here")
		} else {
			printFitting(&c, shown, width)
		}
		body = split(c.String())
	} else if story, ok := f.value.(serverStory); ok {
		var c canvas
		printServer(&c, story)
		body = split(c.String())
	}
	if f.err != nil {
		top = append(top, text.FgYellow.Sprintf("kurad does not answer since %s, retrying", age(f.since)))
	}
	if len(top) > 0 {
		top = append(top, "")
	}
	if hidden == "" && len(top)+len(body) > height {
		keep := max(height-len(top)-1, 0)
		hidden = fmt.Sprintf(" %d more lines, for which the window is too small", len(body)-keep)
		body = body[:min(keep, len(body))]
	}
	all := append(top, body...)
	if hidden != "" {
		all = append(all, hidden)
	}
	all = all[:min(len(all), max(height, 1))]
	for i := range all {
		if text.StringWidthWithoutEscSequences(all[i]) > width {
			all[i] = text.Snip(all[i], width, "…")
		}
	}
	return all
}

func split(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }

// tally counts the servers by verdict.
func tally(list []fleet.ServerView) string {
	counts := map[string]int{}
	for _, s := range list {
		counts[string(s.Verdict)]++
	}
	var parts []string
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[v], v))
	}
	if len(list) == 1 {
		return "1 server: " + parts[0]
	}
	return strings.TrimSuffix(fmt.Sprintf("%d servers: %s", len(list), strings.Join(parts, ", ")), ": ")
}

// urgent is the list with those first that have not converged.
func urgent(list []fleet.ServerView) []fleet.ServerView {
	sorted := slices.Clone(list)
	rank := func(s fleet.ServerView) int {
		if s.Verdict == fleet.VerdictConverged {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(sorted, func(a, b fleet.ServerView) int { return rank(a) - rank(b) })
	return sorted
}

func converged(list []fleet.ServerView) (n int) {
	for _, s := range list {
		if s.Verdict == fleet.VerdictConverged {
			n++
		}
	}
	return n
}
