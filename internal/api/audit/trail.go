package audit

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// window is how often a caller's denied calls get a line, at most.
	window = time.Minute
	// maxCallers bounds those whose denied calls are counted one by one; all others share
	// a line.
	maxCallers = 1024
	// Denied calls have files of their own, and fewer.
	deniedSize = 16 << 20
	deniedKeep = 3
)

// DeniedPath is where the lines of denied calls are, beside the audit log at a path: they
// take no line of a change away (G10).
func DeniedPath(path string) string {
	ext := filepath.Ext(path)
	return strings.TrimSuffix(path, ext) + "-denied" + ext
}

// Trail is the audit log as the API writes it: one log of the calls that may have changed
// something, and one of those that were denied, in which each caller has one line a
// minute at most. It is safe for concurrent use.
type Trail struct {
	Changes, Denied *Log

	mu      sync.Mutex
	callers map[string]*denials
}

// denials are what a caller was denied since his last line.
type denials struct {
	since time.Time // of that line
	last  Entry
	count int
}

// OpenTrail opens both logs of a trail.
func OpenTrail(cfg Config) (*Trail, error) {
	changes, err := Open(cfg)
	if err != nil {
		return nil, err
	}
	cfg.Path, cfg.MaxSize, cfg.Keep = DeniedPath(cfg.Path), deniedSize, deniedKeep
	denied, err := Open(cfg)
	if err != nil {
		return nil, errors.Join(err, changes.Close())
	}
	return &Trail{Changes: changes, Denied: denied, callers: map[string]*denials{}}, nil
}

// Ready returns an error while changes cannot be written: nothing may be changed then.
func (t *Trail) Ready() error { return t.Changes.Ready() }

// Write keeps an entry. What may have changed something is on the disk when Write
// returns; of what was denied the first call of a caller is written, and the next ones are
// counted for up to a minute.
func (t *Trail) Write(e Entry, changed bool) error {
	if changed {
		return t.Changes.Write(e, true)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.caller(e)
	if t.Denied.cfg.Now().Sub(c.since) < window {
		c.last, c.count = e, c.count+1+e.Unwritten
		return nil
	}
	e.Unwritten += c.count
	if err := t.Denied.Write(e, false); err != nil {
		return err
	}
	c.since, c.count = t.Denied.cfg.Now(), 0
	return nil
}

// caller finds the count of who is denied: a token, or an address without one.
func (t *Trail) caller(e Entry) *denials {
	key := e.TokenID
	if key == "" {
		key = addressOf(e.Source)
	}
	if c, ok := t.callers[key]; ok {
		return c
	}
	if len(t.callers) >= maxCallers {
		t.flush(false)
	}
	if len(t.callers) >= maxCallers {
		if c, ok := t.callers[""]; ok {
			return c
		}
		key = ""
	}
	c := &denials{}
	t.callers[key] = c
	return c
}

// addressOf is the address of a client, of IPv6 the /64, as one of them has it whole.
func addressOf(source string) string {
	at, err := netip.ParseAddrPort(source)
	if err != nil {
		return source
	}
	ip := at.Addr().Unmap().WithZone("")
	if ip.Is4() {
		return ip.String()
	}
	return netip.PrefixFrom(ip, 64).Masked().String()
}

// Flush writes what was counted of callers whose minute is over.
func (t *Trail) Flush() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush(false)
}

func (t *Trail) flush(all bool) {
	for key, c := range t.callers {
		if !all && t.Denied.cfg.Now().Sub(c.since) < window {
			continue
		}
		if c.count == 0 {
			delete(t.callers, key)
			continue
		}
		e := c.last
		e.Time, e.Event, e.Unwritten = t.Denied.cfg.Now().UTC(), EventRefused, c.count
		e.Reason = fmt.Sprintf("%d more calls of this caller were denied, the last of them so: %s", c.count, e.Reason)
		if key == "" {
			e = Entry{Time: e.Time, Event: EventRefused, Unwritten: c.count, Reason: fmt.Sprintf("%d more calls of more than %d callers were denied", c.count, maxCallers)}
		}
		if t.Denied.Write(e, false) == nil {
			c.since, c.count = t.Denied.cfg.Now(), 0
		}
	}
}

// Close tells what was counted and ends both logs.
func (t *Trail) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.flush(true)
	return errors.Join(t.Changes.Close(), t.Denied.Close())
}
