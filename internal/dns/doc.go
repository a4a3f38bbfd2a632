// Package dns knows whose a host is, and keeps the records and load balancers of ours.
//
// A zone (Zone) is given to the daemon. What is read of it is either a whole listing (Listing),
// where there is a token for its provider's API, or the answers of its DNS servers to queries for
// one host. Judge says of either whose a host is; Audit compares a listing with what is wanted.
// Both are pure. Publisher and Balancers are what changes a zone, through an API: they read what
// there is, immediately before, and touch nothing that is not ours (D4).
//
// Of what is pure:
//   - a host is ours by an ownership record of ours for each of its records, where none of another
//     owner counts, in whatever order they are listed: TestD4_oursOnlyWhereNobodyElseIsNamed
//   - what is written is what external-dns writes, and is read back:
//     TestD3_whatIsWrittenIsReadBack, TestD3_namesOfOwnershipRecordsAreThoseOfExternalDNS
//   - a prune deletes what is ours and wanted by nobody: TestD6_nothingIsPrunedThatIsNotOurs
//   - judging a zone takes time in proportion to its hosts: BenchmarkIndex
package dns
