// Package store keeps what kurad knows: typed records in etcd with
// compare-and-swap, ordered watches, and a view of all of them in memory.
//
// Three folders, of which the first two know only the third:
//
//   - internal/store: [Records] gives the keys their meaning for one environment: one
//     envelope per record, typed reads, and [Tx], which states invariants that span
//     records. [View] is the newest state of all records in memory, fed by a watch. [Lock]
//     is the reader/writer lock of those who declare.
//   - internal/store/etcd keeps the keys, inside this process or in a cluster.
//   - internal/store/kv says what keys and transactions are; whatever passes
//     internal/store/conformance may keep them.
//
// Invariants, with the test that holds each:
//
//   - A status is written only against the intent it was projected from
//     (TestP17_statusAgainstAChangedIntentIsRefused).
//
//   - A host, an instance name or a port has one owner (TestH4_aReservationHasOneOwner).
//
//   - A host that is given up stays its account's until its time is over
//     (TestH10_aHostThatIsGivenUpStaysItsAccountsForTheAliasPeriod, of internal/api/server).
//
//   - A region or an account that a server needs cannot go, and no server can come to
//     one that goes (TestP18_noServerOutlivesItsRegionOrAccount).
//
//   - A record of a newer schema is refused (TestG7_newerSchemaIsRefused), one of an older one is read and written as of
//     this one (TestG7_recordsOfSchema1AreReadAndWrittenAsOfThisOne, TestG7_globalHostsOfSchema2StayTheirAccounts
//     of internal/api/server).
//
//   - What is declared counts for the token that declared it last, whatever kurad itself writes of
//     it (TestG8_G7_whoDeclaredARecordIsAFieldThatAnOlderKuradPassesOver), in every view alike
//     (TestG8_aViewCountsAlikeHoweverItCameToBe).
//
//   - Events of servers that are gone are kept for a bounded number of them
//     (TestEvents_ofServersLongGoneAreForgotten).
//
//   - One malformed record costs one record (TestView_malformedRecordIsReportedAndSkipped).
//
//   - A view catches up although others write to the same etcd
//     (TestG1_theViewCatchesUpWhoeverWroteLast).
//
//   - A snapshot is of one revision and restores what was there, in any store
//     (TestG7_snapshotShowsOneRevision, TestG7_snapshotMovesAllRecordsToAnotherStore); one
//     with a flipped bit is refused and changes nothing
//     (TestG7_damagedSnapshotIsRefusedAndChangesNothing); one that was restored in part is
//     never used, and repeated (TestG7_restoreThatWasBrokenOffIsBegunAnew).
//
// # Keys
//
// Everything lives under /kura/v1/<environment>/:
//
//	clusters/<cluster>/<namespace>                    which namespace that is (K9)
//	accounts/<id>  templates/<name>  regions/<name>  tokens/<id>  schema
//	servers/<region>/<account>/{intent,status,try,claims}
//	deployments/<region>/<account>/<%010d sequence>   the newest 50 per server
//	events/<region>/<account>/<%02d slot>             a ring of 50 per server
//	refs/departed                                     the last 250 servers that are gone
//	leader/holder  exclusion  restoring               no part of a snapshot; the second is the lock
//	hosts/<host>  instances/<target>/<name>  ports/<endpoint>/<port>  handles/<handle>
//	refs/accounts/<account>/<region>  refs/templates/<template>/<region>
//
// try is the claim of a step that had failed before, and belongs to one revision of the
// status: what is nothing new costs no more than that (TestG12_aClaimBelongsToOneStatus).
// The values of hosts, instances and ports are the key of the server that holds them;
// claims lists what a server holds, so that it can be released without rendering. A global
// host is held by the account, whichever of its servers took it: it is forgotten when its
// time is over (H10) and no server of the account renders to it.
// refs exist so that "nothing needs it any more" is a comparison of a transaction: a
// region is free when nothing is under servers/<region>/, an account or a template
// when nothing is under its refs. A key per user, instead of a counter, because two
// servers that are created at once must not conflict.
package store
