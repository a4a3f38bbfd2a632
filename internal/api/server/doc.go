// Package server answers kurad's HTTP API: routes, tokens, limits and the wire. What a write
// means is decided in internal/declare.
//
// A request passes, in order: request id, audit log, panics, environment, the token and its
// shares, the route table, the token's scope and accounts, the body, huma's parameters, the
// strict body decoder, the handler. Every answer that is no success is a problem document.
//
// Invariants, with the test that holds each:
//
//   - A route without a declared scope, or that does not say which accounts it is about,
//     cannot be registered (TestRoutes_aRowThatDoesNotSayWhoseItIsDoesNotStart), and every
//     route refuses every token that does not cover them (TestRoutes_everyRouteDemandsItsScope).
//   - A call that could change something, and one that is denied, is in the audit log
//     before its answer leaves; while that cannot be, nothing is changed (TestAudit_…).
//   - An acknowledged write is seen by every read after it; a 404 is linearizable
//     (TestG1_aReadSeesTheWriteBeforeIt).
//   - Only the kurad that leads changes a DNS zone: a follower passes the call on, or says that it was not answered
//     (TestG2_aFollowerLeavesZonesToTheLeader).
//   - Nothing a client sends makes kurad keep an unbounded amount of anything, or for an
//     unbounded time. What is bounded, see below.
//
// Limits. A TLS handshake and a header have 5 s and the header 16 KiB, a whole request 30 s and
// its body 1 MiB, an answer 90 s, an idle connection 60 s (TestHTTPServer_…). Pages have 1000
// items and a mebibyte, long polls last 60 s and answer with 32 MiB (TestG8_aPage…), tokens are
// 1000. Of one address 20 logins may fail at once and then in each minute, and 8192
// addresses are remembered (TestLogins_…); who has a valid token is not held up by the
// failures of others. Who has none gets no further, whatever he asks for: his body is not
// read, he keeps no connection, and of what is refused beyond the limit the audit log has one
// line and a count. Addresses are those of the connection: behind a proxy it is the proxy's.
//
// Shares. How much each token may have at the same time, all together, and of that admins, is
// in one table (shares.go); connections are shared out where they are accepted
// (connections.go), and one has one call under way: HTTP/2 is not spoken
// (TestG8_aConnectionHasOneCallUnderWay). What is held is given back when the request has been answered
// (TestG8_…, and TestAttack_… in daemon).
package server
