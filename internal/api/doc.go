// Package api is kurad's HTTP API as its clients see it: the wire types, and a
// Client that the provider and the CLI share. The handlers live in api/server, so
// that the provider links neither handlers nor store.
//
// Invariants:
//   - an object is only ever reported missing on kurad's own 404 for it; a 404 of a
//     proxy, or an answer that is no problem document, is an internal error;
//   - a request is repeated only where repeating cannot do harm: reads, idempotent
//     writes, and conditional writes whose refusal proves that nothing was written;
//   - a token leaves this machine only through TLS, and is never followed through a
//     redirect nor printed.
package api
