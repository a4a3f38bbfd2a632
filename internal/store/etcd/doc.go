// Package etcd keeps keys in etcd: [OpenEmbedded] is one inside this process, [OpenCluster]
// one that somebody else runs. They share everything but how etcd is reached, and no type
// of etcd leaves the package.
//
// Invariants besides those of internal/store/kv, with the test that holds each:
//
//   - An acknowledged write survives kill -9 (TestG1_acknowledgedWritesSurviveKill).
//
//   - One leads at a time, and what a deposed leader writes is refused (conformance:
//     leader, TestG2_aDeposedLeadersTurnIsRefused of internal/store). A leader that vanishes is replaced
//     within its lease and a second (TestG2_aLeaderThatVanishesIsReplacedWhenItsLeaseRunsOut);
//     one that was stopped past its lease knows it before it does anything
//     (TestG2_aLeaderThatWasStoppedPastItsLeaseKnowsAtOnce).
//
//   - One member of a cluster killed or stopped: calls, watches and the leadership go on
//     (TestG2_oneEtcdMemberKilledStopsNothing, TestG2_oneEtcdMemberStoppedStopsNothing).
//
//   - Old revisions take a small part of the quota at most, and the last tenth of it is kept
//     for what an operator needs (TestG12_compactionFollowsTheSizeAsWellAsTheClock,
//     TestG12_aReserveIsKeptForWhatAnOperatorNeeds of internal/store).
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
// a renewal came, and [kv.Leadership.Valid] counts nine tenths of that time from when the
// last answered renewal was sent, on the monotonic clock, at each question. That a lease
// is held is still no proof for a write, which may be on its way for long: each write of
// a leader compares the key's revision (store.Records.Fenced). The embedded store has no
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
package etcd
