package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
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
	// resizeCheck is how often the window's size is compared with the one that was drawn for.
	resizeCheck = 200 * time.Millisecond
)

// frame is what a watch shows: the newest answer, and since when there is none newer.
type frame struct {
	value any
	err   error
	since time.Time
}

// follow shows every change until ctx ends: on a terminal in place, elsewhere line by
// line, and only what changed.
func (o statusOptions) follow(ctx context.Context, w, notes io.Writer, first any) error {
	if file, ok := w.(*os.File); ok && isTerminal(w) && o.output == "table" {
		return o.draw(ctx, file, first)
	}
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
	for v, err := range o.changes(ctx) {
		if err != nil && !transient(err) {
			return err
		}
		if err != nil && !lost {
			fmt.Fprintf(notes, "kurad: %v; trying again until it answers\n", err)
		}
		if lost = err != nil; lost {
			continue
		}
		if err := show(v); err != nil {
			return err
		}
	}
	return nil
}

// changes reads what is to be shown whenever it may have changed, and all of it anew after
// an error.
func (o statusOptions) changes(ctx context.Context) iter.Seq2[any, error] {
	cursor, servers := "", map[fleet.ServerKey]fleet.ServerView{}
	return keepAsking(ctx, &o.target, func(c *api.Client) (any, error) {
		after := cursor
		cursor = ""
		if key := o.server; key != nil {
			changes, err := c.WaitServer(ctx, *key, after, watchWait)
			if err != nil {
				return nil, err
			}
			story, err := readServer(ctx, c, *key, false)
			if err == nil {
				cursor = changes.Cursor
			}
			return story, err
		}
		changes, err := c.WaitServers(ctx, o.region, after, watchWait)
		if err == nil && !changes.Full && len(changes.Items)+len(changes.Gone) == 0 {
			changes, err = c.WaitServers(ctx, o.region, "", 0)
		}
		if err != nil {
			return nil, err
		}
		if cursor = changes.Cursor; changes.Full {
			clear(servers)
		}
		for _, s := range changes.Items {
			if o.account == "" || o.account == s.Account {
				servers[fleet.ServerKey{Account: s.Account, Region: s.Region}] = s
			}
		}
		for _, k := range changes.Gone {
			delete(servers, k)
		}
		return slices.Collect(maps.Values(servers)), nil
	})
}

// draw keeps the newest frame on the terminal's other screen, whose content comes back at
// the end. Ages go on, and a window of another size is filled anew.
func (o statusOptions) draw(ctx context.Context, w *os.File, first any) error {
	fmt.Fprint(w, "\x1b[?1049h\x1b[?25l") // the other screen, without a cursor
	defer fmt.Fprint(w, "\x1b[?25h\x1b[?1049l")
	var (
		mu            sync.Mutex
		shown         = frame{value: first}
		width, height int
		drawn         time.Time
	)
	redraw := func(next *frame) {
		mu.Lock()
		defer mu.Unlock()
		due := next != nil || time.Since(drawn) >= time.Second
		if next != nil {
			shown = *next
		}
		if x, y, err := term.GetSize(int(w.Fd())); err == nil && (x != width || y != height) {
			width, height, due = x, y, true
		}
		if due {
			// Nothing is cleared before it is written over, and all of it is one write: no flicker.
			fmt.Fprint(w, "\x1b[?2026h\x1b[H"+strings.Join(o.lines(shown, width, height), "\x1b[K\r\n")+"\x1b[K\x1b[J\x1b[?2026l")
			drawn = time.Now()
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var clock sync.WaitGroup
	defer clock.Wait()
	defer cancel()
	clock.Go(func() {
		for ctx.Err() == nil {
			redraw(nil)
			kv.Pause(ctx, resizeCheck)
		}
	})
	newest := frame{value: first}
	for v, err := range o.changes(ctx) {
		switch {
		case err != nil && !transient(err):
			return err
		case err == nil:
			newest = frame{value: v}
		case newest.err == nil:
			newest.since = time.Now()
		}
		newest.err = err
		redraw(&newest)
	}
	return nil
}

// canvas is a text that will be on a terminal.
type canvas struct{ bytes.Buffer }

// lines is a frame in a window of a size.
func (o statusOptions) lines(f frame, width, height int) []string {
	var top []string
	var c canvas
	hidden := ""
	switch v := f.value.(type) {
	case []fleet.ServerView:
		top = append(top, tally(v))
		rows := max(height-5, 1) // the tally, an empty line, the header, its line, and what is hidden
		if f.err != nil {
			rows = max(rows-1, 1)
		}
		sortServers(v)
		if len(v) > rows+1 {
			var behind, quiet []fleet.ServerView
			for _, s := range v {
				if s.Verdict == fleet.VerdictConverged {
					quiet = append(quiet, s)
				} else {
					behind = append(behind, s)
				}
			}
			why := "for which the window is too small"
			if len(behind) <= rows {
				why = "all converged"
			}
			hidden = fmt.Sprintf(" and %d more, %s", len(v)-rows, why)
			v = append(behind, quiet...)[:rows]
		}
		printTable(&c, v, width)
	case serverStory:
		printServer(&c, v)
	}
	body := strings.Split(strings.TrimRight(c.String(), "\n"), "\n")
	if f.err != nil {
		top = append(top, colour(&c, text.FgYellow, fmt.Sprintf("kurad does not answer since %s, retrying", age(f.since))))
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
