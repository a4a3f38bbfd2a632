// Package projection decides: two pure functions turn what is wanted and what was
// seen of one server into its status and into the next plan. There is no clock, no
// context and no error here; time is a field of the input, and a world that cannot
// be understood is a status.
//
//	Input    intent, region, rendered document, latest deployment, stored status,
//	  │      observation, holds, now
//	  ▼
//	Project  look at the observation                                  runtime.go, containers.go, kube.go
//	  │      bookkeeping: a new key, outcomes of tasks, what a plan     rules.go, books.go, answers.go,
//	  │      lives through, what was seen, what a controller has shown  deployment.go, kube_rollout.go
//	  │      the rules in the order of P1                               rules.go, endpoint.go, ownership.go
//	  │      what is pursued beside what runs                           track.go, books.go, records.go, balancer.go
//	  │      holds, due times                                           project.go, clock.go
//	  ▼
//	Plan     nothing, or the steps that bring the server nearer         plan.go, containers.go, kube.go
//	  ▼
//	Decide   admission; the plan is stored, or shown as intended        decide.go, admission.go
//	  ▼
//	report   conditions, verdict, events: derived, deciding nothing     report.go, kube_report.go, verdict.go, events.go
//	  ▼
//	Output   what the turn stores, and what it needs next
//
// Each goes on from what the Output before it shows. A trace says which steps and rules changed
// or decided something, where it is asked for (trace.go); tests drop rules from the same tables.
//
// Words: a read is *fresh* where it answered and began after every effect of ours was
// over; the *key* is the generation and the document's revision, for which attempts,
// refusals and the stall clock are counted; a server is *settled* where P5 held for its
// key; *leftovers* are containers of ours that no plan needs any more.
//
// Invariants, each with the test that guards it; invariants_test.go holds those of every
// turn, which the explorations and every scripted test check:
//
//   - from every reachable state, and from every combination of stored state, runtime and
//     world, a healthy world without holds leads to active on the latest image, or to
//     nothing (TestExploration_everyStateHeals, TestExploration_everyCombinationHeals)
//   - active is entered only through ready and owned endpoints, probed after the instance
//     converged; failed has a reason, active a url and an image; a verdict is total and
//     agrees with the conditions; what was stored, fed back, changes nothing; no plan while
//     unreadable, held or not fresh, no effect that was not stored; a turn that waits for
//     time says when (the same two)
//   - a track makes no difference to what runs, nor that to a track, but for the order of P18
//     and what has settled (TestExploration_everyStateHeals, with a toy track)
//   - no step is for a host or load balancer that was read as somebody else's; what is withdrawn
//     is the server's own and wanted by nobody; what leads to a server goes before it, unless
//     stall_after passes (TestExploration_everyStateHeals, with a zone)
//   - each rule matters: to drop any one is noticed (TestExploration_noticesEveryDroppedRule)
//   - what decided can be traced, and a trace changes nothing
//     (TestTrace_namesTheRuleThatDecidedAndWhatItFound)
//   - a kurad that has just started rewrites nothing (TestG1_aRestartRewritesNothing)
//   - what a turn makes of what is there can be reviewed (TestProjection_goldenTable)
//
// A server is a set of containers or one KuraInstance: two kinds of one interface, runtime.go.
// What a KuraInstance is rendered to depends on the status (K7), so a turn that changes the
// hosts which stay routed asks for the next one at once. Both worlds are explored with the
// same invariants; kube_invariants_test.go holds those of a KuraInstance.
//
// How far the explorations go differs by build tags: see effort in depth_test.go,
// depth_real_test.go and depth_race_test.go. Each logs what it visited.
package projection
