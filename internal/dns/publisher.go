package dns

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Publisher changes the records of one zone, one call at a time: nobody else of this process
// changes them meanwhile (Writer).
//
// It decides from a listing made immediately before (change), and names what it changes and
// deletes by its id: what was replaced meanwhile is not touched. What it creates it cannot
// compare: a batch is a transaction and no compare-and-swap. So where a name was free it reads
// back, and takes back what it wrote beside what another has written in between.
type Publisher struct {
	Zone        Zone
	Environment fleet.Environment
	API         API

	turn turn
}

const (
	defaultBatch = 200 // operations, of a free plan (Cloudflare's API documentation, batch)
	// mostRefused bounds the batches of a call that are refused: who declares what no zone takes
	// must not spend what the zone's token may call.
	mostRefused = 40
)

// job is a task whose change is known.
type job struct {
	Batch
	task  int
	fresh bool // there was nothing of the name
}

// round is a call of a Publisher.
type round struct {
	*Publisher
	ctx     context.Context
	effects []fleet.Effect
	answers []fleet.Outcome
	redo    []int        // tasks whose name was changed by another meanwhile
	looked  map[int]bool // tasks that were in redo
	refused int          // batches
	full    *Error       // there is no place for one more record
	over    *Error       // nothing is sent any more
}

// Run does tasks of many servers, TaskPublish and TaskWithdraw, and answers each in its place.
// Those of one name are done one after the other.
func (p *Publisher) Run(ctx context.Context, effects []fleet.Effect) []fleet.Outcome {
	r := &round{Publisher: p, ctx: ctx, effects: effects, answers: make([]fleet.Outcome, len(effects)), looked: map[int]bool{}}
	if r.over = failure(p.turn.take(ctx)); r.over == nil {
		defer p.turn.end()
	}
	var left []int
	for i := range effects {
		left = append(left, i)
	}
	for len(left) > 0 {
		left = r.pass(left)
	}
	return r.answers
}

// pass does the first task of each name and returns the others, with those that are looked at
// once more.
func (r *round) pass(tasks []int) (left []int) {
	if r.over != nil {
		r.answerAll(tasks, r.over)
		return nil
	}
	x, err := r.list()
	if err != nil {
		r.over = failure(err)
		r.answerAll(tasks, r.over)
		return nil
	}
	names, jobs := map[string]bool{}, []job(nil)
	for _, i := range tasks {
		e := r.effects[i]
		if name := canonical(e.Name); names[name] {
			left = append(left, i)
			continue
		}
		names[canonical(e.Name)] = true
		batch, answer := change(x, e)
		if answer.Class == fleet.ClassOK && batch.Len() > 0 {
			jobs = append(jobs, job{Batch: batch, task: i, fresh: e.Kind == fleet.TaskPublish && len(x.Records(e.Name))+len(x.Claims(e.Name)) == 0})
		}
		r.answers[i] = answer
	}
	r.redo = nil
	r.send(jobs)
	r.readBack(jobs)
	return append(left, r.redo...)
}

// list reads the zone.
func (r *round) list() (*Index, error) {
	l, err := r.API.List(r.ctx, Parts{Records: true})
	return NewIndex(l, r.Zone, r.Environment), err
}

// send makes the changes of jobs in the fewest batches; a job's changes are in one.
func (r *round) send(jobs []job) {
	most := r.Zone.BatchLimit
	if most == 0 {
		most = defaultBatch
	}
	// What needs no place first: it makes some.
	slices.SortStableFunc(jobs, func(a, b job) int { return min(1, len(a.Posts)) - min(1, len(b.Posts)) })
	for len(jobs) > 0 {
		n, size := 1, jobs[0].Len()
		for n < len(jobs) && size+jobs[n].Len() <= most {
			size += jobs[n].Len()
			n++
		}
		r.apply(jobs[:n])
		jobs = jobs[n:]
	}
}

// apply makes the changes of jobs together. A batch that is refused for one of them is halved
// until that one stands alone.
func (r *round) apply(jobs []job) {
	if r.full != nil {
		jobs = r.withPlace(jobs)
	}
	if len(jobs) == 0 {
		return
	}
	if r.over != nil {
		r.answerJobs(jobs, r.over)
		return
	}
	var together Batch
	for _, j := range jobs {
		together.Deletes = append(together.Deletes, j.Deletes...)
		together.Puts = append(together.Puts, j.Puts...)
		together.Posts = append(together.Posts, j.Posts...)
	}
	err := r.API.Apply(r.ctx, together)
	if err == nil {
		return // each is answered so
	}
	e := failure(err)
	if !e.ofOne() {
		r.answerJobs(jobs, e)
		next := *e
		next.Answered = true // of what is not sent
		r.over = &next
		return
	}
	if len(jobs) == 1 {
		r.fails(jobs[0], e)
		return
	}
	if r.refused++; r.refused > mostRefused {
		r.answerJobs(jobs, &Error{
			Class: fleet.ClassTransient, Reason: e.Reason, Answered: true,
			Message: fmt.Sprintf("not tried: of the changes that came together more were refused than are told apart in one call; one of them: %s", e.Message),
		})
		return
	}
	half := len(jobs) / 2
	r.apply(jobs[:half])
	r.apply(jobs[half:])
}

// ofOne reports whether the error is that of one change, and not of all that can be tried now.
func (e *Error) ofOne() bool {
	return e.Conflict || e.NotFound || e.Class == fleet.ClassRefused && (e.Reason == fleet.ReasonInvalid || e.Reason == fleet.ReasonQuotaExceeded)
}

// fails takes note of an error of one job alone. What another has changed meanwhile is looked
// at once more: it may be its own by now, or what stands in the way is no record that is listed.
func (r *round) fails(j job, e *Error) {
	switch again := e.Conflict || e.NotFound; {
	case again && !r.looked[j.task]:
		r.looked[j.task] = true
		r.redo = append(r.redo, j.task)
	case again:
		r.answers[j.task] = refuse(fleet.ReasonInvalid, e.Message)
	default:
		r.answers[j.task] = e.outcome()
		if e.Reason == fleet.ReasonQuotaExceeded {
			r.full = e
		}
	}
}

// withPlace answers the jobs that there is no place for.
func (r *round) withPlace(jobs []job) (fit []job) {
	for _, j := range jobs {
		if len(j.Posts) > len(j.Deletes) {
			r.answers[j.task] = r.full.outcome()
		} else {
			fit = append(fit, j)
		}
	}
	return fit
}

// readBack looks at names that were free before something was written to them.
func (r *round) readBack(jobs []job) {
	jobs = slices.DeleteFunc(slices.Clone(jobs), func(j job) bool {
		return !j.fresh || r.answers[j.task].Class != fleet.ClassOK || slices.Contains(r.redo, j.task)
	})
	if len(jobs) == 0 {
		return
	}
	x, err := r.list()
	if err != nil {
		r.answerJobs(jobs, failure(err)) // the next try finds it
		return
	}
	for _, j := range jobs {
		e := r.effects[j.task]
		switch is := x.Host(e.Name, e.DNS.Owner); is.Ownership {
		case fleet.OwnershipOurs:
			// Beside what was written there is what another wrote meanwhile, though its ownership record may be
			// in a form that the zone was not told of, and ours be read as if it were about both.
			if i := slices.IndexFunc(is.Records, func(at fleet.DNSRecord) bool { return !j.wrote(at) }); i >= 0 {
				is.Detail = "has " + recordText(is.Records[i]) + " of somebody else"
				r.answers[j.task] = r.takeBack(x, j, is)
			}
		case fleet.OwnershipForeign, fleet.OwnershipUnreadable:
			r.answers[j.task] = r.takeBack(x, j, is)
		case fleet.OwnershipAbsent, fleet.OwnershipUnknown, fleet.OwnershipNotChecked:
			r.answers[j.task] = fleet.Outcome{
				Class: fleet.ClassTransient, Reason: fleet.ReasonDrifted, Answered: true,
				Message: e.Name + " was published, and is not there as read back: somebody else has removed it",
			}
		}
	}
}

// wrote reports whether the job created the record.
func (j job) wrote(record fleet.DNSRecord) bool {
	return slices.ContainsFunc(j.Posts, func(ours fleet.DNSRecord) bool { return leadsTo(record, ours) })
}

// takeBack deletes what a job has written beside what is another's.
func (r *round) takeBack(x *Index, j job, is fleet.HostRead) fleet.Outcome {
	e := r.effects[j.task]
	var undo Batch
	for _, c := range x.Claims(e.Name) {
		if c.isOf(e.DNS) {
			undo.Deletes = append(undo.Deletes, c.Record)
		}
	}
	for _, record := range is.Records {
		if j.wrote(record) {
			undo.Deletes = append(undo.Deletes, record)
		}
	}
	text := "while kurad published it " + e.Name + " was taken: it " + is.Detail + "; "
	if err := r.API.Apply(r.ctx, undo); err != nil {
		return refuse(fleet.ReasonForeignOwner, text+"and what kurad wrote could not be taken back: "+err.Error())
	}
	return refuse(fleet.ReasonForeignOwner, text+"what kurad wrote was taken back")
}

func (r *round) answerJobs(jobs []job, e *Error) {
	for _, j := range jobs {
		r.answers[j.task] = e.outcome()
	}
}

func (r *round) answerAll(tasks []int, e *Error) {
	for _, i := range tasks {
		r.answers[i] = e.outcome()
	}
}

// failure is an API's error, nil where there is none.
func failure(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Class: fleet.ClassTransient, Reason: fleet.ReasonZoneUnreachable, Message: err.Error()}
}

// outcome is the answer to a task whose call failed.
func (e *Error) outcome() fleet.Outcome {
	return fleet.Outcome{Class: e.Class, Reason: e.Reason, Message: e.Message, Answered: e.Answered, After: fleet.Duration(e.After)}
}

func refuse(reason fleet.Reason, message string) fleet.Outcome {
	return fleet.Outcome{Class: fleet.ClassRefused, Reason: reason, Message: message, Answered: true}
}

func done() fleet.Outcome { return fleet.Outcome{Class: fleet.ClassOK, Answered: true} }
