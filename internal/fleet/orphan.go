package fleet

import "time"

// Orphan is the stored work on a KuraInstance that belongs to no declared server: its end (K5).
type Orphan struct {
	Server    ServerKey `json:"server"` // by its labels
	Cluster   string    `json:"cluster"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
	UID       string    `json:"uid"`
	Plan      *Plan     `json:"plan"`
	// Revision is that of the record; 0: there is none.
	Revision int64 `json:"-"`
}

// End returns the orphan with the plan of its end.
func (o Orphan) End(now time.Time) Orphan {
	id := "orphan/" + o.UID
	o.Plan = &Plan{ID: id, Kind: PlanDestroy, Cause: CauseDestroy, CreatedAt: now, Tasks: []Task{
		{ID: id + "/1", Effect: Effect{Kind: TaskDelete, Name: o.Name, UID: o.UID}, State: TaskPending},
	}}
	return o
}
