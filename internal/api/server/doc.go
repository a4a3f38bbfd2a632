// Package server answers kurad's HTTP API.
//
// A request passes, in order: request id, panics, environment, body limit, the route
// table, the token's scope, huma's parameters, the strict body decoder, the handler.
// Every answer that is no success is a problem document.
//
// Invariants, with the test that holds each:
//
//   - A route without a declared scope cannot be registered, and every route refuses
//     every token that does not cover its scope (TestRoutes_everyRouteDemandsItsScope).
//   - An acknowledged write is seen by every read after it; a 404 is linearizable
//     (TestG1_aReadSeesTheWriteBeforeIt).
//   - A host, an instance name and a port belong to one server, whoever writes at the
//     same time (TestH4_…, TestC12_…).
//   - A dry run writes nothing (TestDryRun_writesNothing).
//   - Equal declarations are no write (TestPutServer_equalIsNoWrite).
//   - Nothing a client sends makes kurad keep an unbounded amount of anything: bodies,
//     pages, waits, names and tokens have limits.
//
// Neighbours. A change of an account, a host template or a region changes what its
// servers render to. Such writes exclude each other and all writes of servers within
// this process (Server.neighbours); they first reserve, in steps of a bounded size, what
// the servers will need, and then change the record. A crash in between leaves
// reservations too many, never too few; a reservation that its server does not need is
// given back when somebody else asks for it.
package server
