// Package reconcile takes turns: it gathers what is stored and what was observed of one
// server, lets the projection decide, stores the decision in one transaction, and runs
// the current task of a stored plan.
//
//	intent, listing, probe, task result, due time ──▶ queue ──▶ turn ──▶ store
//	                                                              └──▶ task ──▶ runtime
//
// Everything is level-triggered: a lost hint costs latency, never correctness. A server
// is in one turn at a time, and a task runs beside the turns of its server, so that a
// stop that takes its grace period delays nobody.
//
// Invariants, each with the test that guards it:
//
//   - an effect is a claimed task of a stored plan, and the claim is in the store before
//     the effect begins (TestS4_planIsStoredBeforeAnyEffect)
//   - a crash at any write leaves a server that converges to one container under its name
//     (TestCrash_atEveryWriteOfAReplace)
//   - at most max_unsettled servers of a region are unsettled at once
//     (TestG4_massCreationIsAdmittedInSteps)
//   - every server gets its turn, whatever another one does
//     (TestP19_aPanickingServerStopsNobody, TestP19_everyServerGetsItsTurn)
//   - a converged server costs no write and no turn (TestP16_convergedServerCostsNothing)
package reconcile
