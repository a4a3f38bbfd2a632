// Package kv is keys, values and revisions: get, list at one revision, transaction, watch
// from a revision, campaign. internal/store/etcd is the real [Store]; the one in memory, for
// tests and simulation, is beside internal/store/conformance, which both pass.
//
// Invariants, with the test of the suite that holds each:
//
//   - A get sees every write that was acknowledged before it (conformance: read your writes).
//
//   - A transaction is all or nothing, and its conflict names the first key that
//     differed (conformance: conflict).
//
//   - A watch delivers every change once, in order, a revision never split
//     (conformance: watch).
//
//   - Pages of one list show one revision (conformance: pages).
package kv
