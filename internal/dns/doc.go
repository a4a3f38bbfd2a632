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
//
// Watch keeps the newest reads of servers' hosts: zones with a token are listed in rounds, the hosts of others asked for
// at the pace of their state.
//   - a steady zone of 10,000 hosts takes under 12 calls in 5 minutes, and is no news: TestD7_aSteadyZoneOf10000HostsTakesUnder12CallsIn5Minutes
//   - what is no answer of the zone about the name is none, and what was read before stays: TestD5_whatIsNoAnswerOfTheZoneIsNotTakenForAnEmptyOne,
//     TestD5_aZoneThatCannotBeListedKeepsWhatWasRead, TestD5_oneListingThatFailsIsNoNews
//   - who waits for a read that begins after an effect has it within seconds, 500 of them by two listings:
//     TestR2_whoWaitsForAFreshListingHasItWithinSeconds
//   - a host that is asked for costs a query now and then, and a turn only where the answer differs:
//     TestD3_P16_aHostThatIsAskedForIsReadAtThePaceOfItsState
//   - a server that NS records lead to is asked only where addresses may be asked: TestR4_whereNSRecordsLeadIsAskedOnlyIfAllowed
//
// Of what changes a zone, which nothing keeps another from changing at the same time:
//   - a listing that was made immediately before decides, and what is changed and deleted is named by its id: what another
//     has put there meanwhile stays (TestD4_whatAnotherWritesInBetweenIsItsOwn, TestD1_whatAnotherChangesInBetweenIsLookedAtAgain)
//   - a batch is a transaction and compares nothing, so a name that was free is read back. What we wrote beside another's
//     ownership record is taken back, and the task refused. Where our own answer was lost, too, it stays: the host then has
//     two owners, is touched by none of us, and the audit names both
//   - whoever claims a host by no ownership record of ours, or with one, is left alone, and so are load balancers and pools
//     (TestD4_whatIsNotOursIsNeverTouched, TestD4_aHostOfAnotherServerOfOursIsLeft, TestD1_whatIsNotOursIsLeftAlone)
//   - tasks of many servers are the fewest calls, and one that is bad fails alone: TestD7_500changesAreFewBatches,
//     TestG8_badChangesCostFewCalls, TestD5_aZoneThatIsFullTakesWhatItCan, TestD1_1000accountsJoinIn3regions,
//     TestD2_aQuotaStopsNobodyElse, TestD2_whatIsWrongWithAllIsAskedOnce; the same at Cloudflare's rules:
//     TestD7_500changesAtCloudflare, TestD1_joinsAndLeavesAtCloudflare
//   - a listing that leaves out what is there is an error of API.List, for whoever lists: TestD5_halfAListingIsNone
//   - what somebody asks for (ByHand) is decided by a listing of its own and by what is wanted after it began, and repeated it
//     changes nothing more: TestD6_aPruneDeletesWhatIsOursAndUnwantedNow, TestD4_aTakeByHandIsOfWhatAServerWants
//   - of this process one at a time changes what it has listed (Writer), by hand too: TestD6_noTwoOfThisProcessWriteAZoneAtOnce
//   - killed after any call, the next try comes to the same: TestS5_aKilledPublisherConverges,
//     TestS5_aKilledJoinOrLeaveConverges, TestS5_killedAfterEachEffectAtCloudflare
package dns
