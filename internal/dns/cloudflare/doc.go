// Package cloudflare is dns.API by the v4 API of Cloudflare.
//
// Open makes a Zone of each zone that has a token. Zones of one token share a Client: one budget, one
// row of connections. The sub-packages of cloudflare-go know the paths. What is sent and read are this
// package's own types: those of cloudflare-go leave out how many entries a listing has.
//
// Invariants, with the tests that guard them:
//   - Kurad leaves a fifth of the user's calls to others, whatever window is looked at, and stops when
//     others are about to use up the rest. Observation (Zone.Observing) has a quarter of its own; changes
//     and what is read for them have the rest. Neither can use the other's (TestD7_…, TestBudget_…).
//   - A call that would get its turn after its deadline fails at once, and says how long it would wait
//     (TestBudget_whoCannotBeServed…). After a rate limit, in whichever form, nothing is called for as
//     long as it asks for (TestCall_aRateLimitHolds…).
//   - Every call ends at its deadline, whatever hangs, and an answer has at most 32 MiB (TestG9_…).
//   - The token is read for each request. It is kept nowhere, in no message, and sent to nobody but the
//     API (TestToken_…, TestCall_theTokenIsRead…, TestCall_aRedirect…, TestCall_aTokenIsSent…).
//   - A listing is whole or it failed: as many entries as it says, none twice, none changed while it was
//     read. Entries that were listed before and are not now are asked for by their ids: an API that lists
//     nothing for a moment, or half, still knows them (TestD5_…).
//   - NotFound is said of the very object only, never of its zone (TestClassify_everyAnswer…,
//     TestZone_oneThatIsNotThere…).
//   - What an answer means is said in one table, rules (TestClassify_…); its text can be shown (TestG11_…).
package cloudflare
