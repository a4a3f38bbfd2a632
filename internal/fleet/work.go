package fleet

import (
	"encoding/json"
	"maps"
	"slices"
	"time"
)

// Track names one of the things that a server pursues side by side.
type Track string

// Tracks.
const (
	TrackRuntime  Track = "runtime"  // what runs: the server's containers, or its KuraInstance
	TrackRecords  Track = "records"  // the DNS records of its hosts, where kurad publishes them (D4)
	TrackBalancer Track = "balancer" // its pool in the load balancer of its account's global host (D1)
)

// Work is what one track of a server pursues: the plan in progress and what came of those
// before it. No track's counts in another's.
type Work struct {
	// Plan is the stored plan in progress. Intended is the plan that would run if
	// nothing held it or if the region healed; it is shown, never run (S10, S11).
	Plan     *Plan `json:"plan,omitempty"`
	Intended *Plan `json:"intended,omitempty"`
	// Refusal is the last answer that refused a task for the present generation and
	// revision; P5 and a new generation clear it.
	Refusal *Refusal `json:"refusal,omitempty"`
	// The course of all plans but those of an outage.
	Course
	// Revision names what the attempts and the refusal are counted for; of the runtime that
	// is the status' own, with its generation.
	Revision string `json:"desired_revision,omitempty"`
	// Reached is the revision at which nothing was seen to differ last: what was declared since
	// is carried through where the region only observes (S10). Not of the runtime.
	Reached string `json:"reached,omitempty"`
	// Plans counts all plans ever stored for the track; it makes task ids new in
	// each plan (S5).
	Plans int64 `json:"plans,omitempty"`
	// EffectsUntil is the time until which an effect of an earlier plan may still
	// land: a read begun before it says nothing (P18).
	EffectsUntil *time.Time `json:"effects_until,omitempty"`
}

// Clone returns a copy that shares nothing which a turn changes in place.
func (w Work) Clone() Work {
	w.Plan, w.Intended, w.Refusal, w.Course = w.Plan.Clone(), w.Intended.Clone(), clone(w.Refusal), w.Course.clone()
	return w
}

// Course is how the attempts at one end go: at what is declared, or at having what served
// last run again. Neither waits for the other.
type Course struct {
	// Attempts counts the plans made for the present cause; the next one is due at
	// NextAttempt (P9).
	Attempts    int        `json:"attempts,omitempty"`
	NextAttempt *time.Time `json:"next_attempt,omitempty"`
	// Failing is the last answer of a step that is tried again (P21); its success and a
	// new generation clear it.
	Failing *Failing `json:"failing,omitempty"`
	// LastFailed is the plan that failed last: an attempt that takes the same steps is stored as
	// little more than its claim (G12).
	LastFailed *Plan `json:"again,omitempty"`
}

func (c Course) clone() Course {
	c.Failing, c.LastFailed = clone(c.Failing), c.LastFailed.Clone()
	return c
}

// On returns what a track pursues, to be changed in place.
func (s *Status) On(track Track) *Work {
	if track == TrackRuntime {
		return &s.Runtime
	}
	if s.Tracks[track] == nil {
		s.Tracks = maps.Clone(s.Tracks)
		if s.Tracks == nil {
			s.Tracks = map[Track]*Work{}
		}
		s.Tracks[track] = &Work{}
	}
	return s.Tracks[track]
}

// PlanOf returns the stored plan of a track, nil where there is none.
func (s Status) PlanOf(track Track) *Plan {
	switch w := s.Tracks[track]; {
	case track == TrackRuntime:
		return s.Runtime.Plan
	case w == nil:
		return nil
	default:
		return w.Plan
	}
}

// Course returns the course of a track's plans of a cause.
func (s *Status) Course(track Track, cause Cause) *Course {
	if track == TrackRuntime && cause == CauseOutage {
		return &s.Outage.Course
	}
	return &s.On(track).Course
}

// names are those of all tracks, the runtime first.
func (s *Status) names() []Track {
	return append([]Track{TrackRuntime}, slices.Sorted(maps.Keys(s.Tracks))...)
}

// courses are all there are, of the runtime what is declared first.
func (s *Status) courses() []*Course {
	all := []*Course{&s.Runtime.Course, &s.Outage.Course}
	for _, track := range s.names()[1:] {
		all = append(all, &s.Tracks[track].Course)
	}
	return all
}

// Upgrade takes over what a stored status of an older schema has elsewhere: in the first one
// the work of the one track there was is the status' own.
func (s *Status) Upgrade(schema int, stored []byte) error {
	if schema > 1 {
		return nil
	}
	return json.Unmarshal(stored, &s.Runtime)
}
