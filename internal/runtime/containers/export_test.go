package containers

import "time"

// StreamWithin sets in how much time an event stream must begin, and how long it may be silent.
func (e *Endpoint) StreamWithin(begins, idle time.Duration) {
	e.streamBegins, e.streamIdle = begins, idle
}
