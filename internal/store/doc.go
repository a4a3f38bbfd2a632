// Package store keeps what kurad knows: typed records in etcd with
// compare-and-swap, ordered watches, and a view of all of them in memory.
//
// Three layers, each knowing only the one below:
//
//   - [Store] is keys, values and revisions: get, list at one revision, transaction,
//     watch from a revision, campaign. [OpenEmbedded] is etcd inside this process,
//     [OpenCluster] one that somebody else runs, [NewMemory] is for tests and
//     simulation; all pass internal/store/conformance. The first two share everything
//     but how etcd is reached.
//   - [Records] gives the keys their meaning for one environment: one envelope per
//     record, typed reads, and [Tx], which states invariants that span records.
//   - [View] is the newest state of all records in memory, fed by a watch.
//
// Invariants, with the test that holds each:
//
//   - An acknowledged write survives kill -9 (TestG1_acknowledgedWritesSurviveKill).
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
//   - A record of a newer schema is refused (TestG7_newerSchemaIsRefused).
//
//   - Events of servers that are gone are kept for a bounded number of them
//     (TestEvents_ofServersLongGoneAreForgotten).
//
//   - One malformed record costs one record (TestView_malformedRecordIsReportedAndSkipped).
//
//   - One leads at a time, and what a deposed leader writes is refused (conformance:
//     leader, TestG2_aDeposedLeadersTurnIsRefused). A leader that vanishes is replaced
//     within its lease and a second (TestG2_aLeaderThatVanishesIsReplacedWhenItsLeaseRunsOut);
//     one that was stopped past its lease knows it before it does anything
//     (TestG2_aLeaderThatWasStoppedPastItsLeaseKnowsAtOnce).
//
//   - One member of a cluster killed or stopped: calls, watches and the leadership go on
//     (TestG2_oneEtcdMemberKilledStopsNothing, TestG2_oneEtcdMemberStoppedStopsNothing).
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
//   - Old revisions take a small part of the quota at most, and the last tenth of it is kept
//     for what an operator needs (TestG12_compactionFollowsTheSizeAsWellAsTheClock,
//     TestG12_aReserveIsKeptForWhatAnOperatorNeeds).
//
//   - Damaged files of the embedded store are refused at once
//     (TestG7_damagedFilesAreRefusedAtOnce), a torn end of its log is not
//     (TestG1_logWithATornEndOpensWithEverythingAcknowledged).
//
// # Leadership
//
// The leader of an environment is whoever wrote the key <prefix>/leader/holder, which is
// there once or not at all; others wait for it to go. In a cluster the key is attached to
// a lease of 5 s that its writer renews each second. The two sides of the lease are
// counted so that they never overlap: etcd lets it run out no earlier than its time after
// a renewal came, and [Leadership.Valid] counts nine tenths of that time from when the
// last answered renewal was sent, on the monotonic clock, at each question. That a lease
// is held is still no proof for a write, which may be on its way for long: each write of
// a leader compares the key's revision ([Records.Fenced]). The embedded store has no
// lease, for the lock of its directory says that nobody else runs.
//
// # A cluster
//
// Reads are linearizable, whichever member answers. Every second each endpoint is asked
// by itself whether it answers one; those that do not get no more calls, and the watches
// on them go on elsewhere. A read that is not answered within 2 s is tried again; a
// transaction fails after 4 s, its outcome unknown. That no member answers is never a
// failure of the store: kurad waits and says so. Compaction, defragmentation, quota and
// backups of the cluster are its operator's (--auto-compaction-retention of an hour is
// enough: views that fall behind more list again); a quota that is near or reached shows
// as the condition StoreHealthy. Several environments may share a cluster.
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
//	leader/holder  exclusion  restoring               no part of a snapshot
//	hosts/<host>  instances/<target>/<name>  ports/<endpoint>/<port>  handles/<handle>
//	shares/<host>/<account>/<region>
//	refs/accounts/<account>/<region>  refs/templates/<template>/<region>
//
// try is the claim of a step that had failed before, and belongs to one revision of the
// status: what is nothing new costs no more than that (TestG12_aClaimBelongsToOneStatus).
// The values of hosts, instances and ports are the key of the server that holds them;
// claims lists what a server holds, so that it can be released without rendering. A host
// that an account's servers share is held by the account, and by each of them a share: it
// is free when nothing is under shares/<host>/ and its time is over (H10).
// refs exist so that "nothing needs it any more" is a comparison of a transaction: a
// region is free when nothing is under servers/<region>/, an account or a template
// when nothing is under its refs. A key per user, instead of a counter, because two
// servers that are created at once must not conflict.
package store
