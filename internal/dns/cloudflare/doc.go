// Package cloudflare is dns.API by the v4 API of Cloudflare.
//
// Open makes a Zone of each zone that has a token. Zones of one token share a client: one budget of
// calls, one row of connections. The sub-packages of cloudflare-go know the paths; what is sent and
// read are this package's own types, since those of cloudflare-go leave out how many entries a
// listing has. A call (call.go) goes by these rules:
//
//   - It waits for its place in the budget (budget.go), or fails at once where it would wait beyond
//     its deadline. Kurad leaves a fifth of the budget to others. What is left is split: observation
//     (Zone.Observing) has a quarter of its own, changes and what they read have the rest, and
//     neither can use the other's.
//   - It ends at its deadline, whatever hangs, and an answer has at most 32 MiB (G9).
//   - The token is read from its file or from the environment for this call only. It is kept nowhere
//     and is in no message.
//   - What fails is classified by one table (classify.go), and its text is made fit to be shown (G11).
//
// A listing is whole or it failed (D5): as many entries as it says there are, none twice, none
// changed while it was read, and records that were there before and now are not are asked for by
// their ids (list.go). An API that lists nothing for a moment, or half, is found out by that.
package cloudflare
