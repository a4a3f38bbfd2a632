package main

import (
	"context"
	"fmt"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/reconcile"
)

// zoneTasks runs the tasks of servers on what zones have. Each zone is a room, and the tasks of
// one that come together are one call: as many as a storm brings.
type zoneTasks struct {
	zones dns.Zones
	run   map[string]func(context.Context, reconcile.Call) fleet.Outcome // by domain: of zones with a token
}

// zoneTasksAtOnce bounds what waits for a zone's call, and what one carries.
const zoneTasksAtOnce = 4096

// zoneExecutors run tasks by the writers of zones, by domain.
func zoneExecutors(zones dns.Zones, writers map[string]*dns.Writer) map[fleet.Executor]reconcile.Executor {
	records := zoneTasks{zones, map[string]func(context.Context, reconcile.Call) fleet.Outcome{}}
	balancers := zoneTasks{zones, map[string]func(context.Context, reconcile.Call) fleet.Outcome{}}
	for domain, w := range writers {
		records.run[domain], balancers.run[domain] = together(w.Publisher.Run), together(w.Balancers.Run)
	}
	return map[fleet.Executor]reconcile.Executor{fleet.ExecutorRecords: records, fleet.ExecutorBalancers: balancers}
}

func together(run func(context.Context, []fleet.Effect) []fleet.Outcome) func(context.Context, reconcile.Call) fleet.Outcome {
	return reconcile.Coalesce(zoneTasksAtOnce, func(ctx context.Context, calls []reconcile.Call) []fleet.Outcome {
		effects := make([]fleet.Effect, len(calls))
		for i, c := range calls {
			effects[i] = c.Task.Effect
		}
		return run(ctx, effects)
	})
}

// Room implements reconcile.Executor. Tasks that nobody can run are answered so, in a room of
// their own: their zone had a token when they were planned.
func (z zoneTasks) Room(_ fleet.Region, task fleet.Task) reconcile.Room {
	room := reconcile.Room{Name: "no zone", Slots: zoneTasksAtOnce}
	if zone, ok := z.zones.Of(task.Name); ok {
		room.Name = zone.Domain
	}
	return room
}

// Execute implements reconcile.Executor.
func (z zoneTasks) Execute(ctx context.Context, c reconcile.Call) fleet.Outcome {
	zone, ok := z.zones.Of(c.Task.Name)
	if run := z.run[zone.Domain]; ok && run != nil {
		return run(ctx, c)
	}
	o := fleet.Outcome{Class: fleet.ClassTransient, Reason: fleet.ReasonZoneForbidden, Answered: true}
	o.Message = fmt.Sprintf("%s: kurad may write no zone that it lies in: start it with --zone <its zone>,cloudflare=<file with the token>", c.Task.Describe())
	return o
}
