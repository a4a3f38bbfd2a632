// Package server answers kurad's HTTP API.
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
//   - A host, an instance name and a port belong to one server, and a global host to the
//     servers of one account, whoever writes at the same time (TestH4_…, TestC12_…).
//   - A write of one server renders that server alone, and runs beside those of others
//     (TestH4_aWriteOfAServerWithAGlobalHostRendersThatServerAloneAndRunsBesideOthers).
//   - A dry run writes nothing (TestDryRun_writesNothing).
//   - Equal declarations are no write (TestPutServer_equalIsNoWrite).
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
//
// Neighbours. A change of an account, a host template or a region changes what its
// servers render to. Such writes exclude each other and all writes of servers within
// this process (Server.turn); they first reserve, in steps of a bounded size, what
// the servers will need, and then change the record. A crash in between leaves
// reservations too many, never too few; a reservation that its server does not need is
// given back when somebody else asks for it.
package server
