// Package readiness asks endpoints whether they answer, and how often to ask.
//
// A [Prober] makes one probe (R1): it resolves the host, connects, verifies the
// certificate and GETs a path, and says in one word why the endpoint is not
// ready. A [Watcher] asks anything again and again, for thousands of servers, at the pace
// that its state asks for (R5): [Endpoints] are probed.
//
// Invariants, each with the test that guards it:
//
//   - Every probe resolves, connects and shakes hands afresh; nothing is cached or
//     kept alive: TestR1_everyProbeIsFresh.
//   - The address that was checked is the address that is dialled, and an address
//     that the operator did not allow is never connected to:
//     TestR4_rebindingNeverReachesAForbiddenAddress, TestR4_addressPolicy.
//   - A probe ends within five seconds and reads a bounded answer:
//     TestR1_faultTable.
//   - What the other side sends never reaches a message, except its status code:
//     TestR1_messagesAreShortAndRepeatNothing.
//   - A closed probe connection leaves no TIME_WAIT: TestR1_closedProbesUseUpNoPorts.
//   - At most one probe of a target is under way, and a slow fleet cannot delay a
//     pending server: TestR5_aDeadFleetDoesNotDelayAPendingServer.
package readiness
