// Package store keeps what kurad knows: typed records in etcd with
// compare-and-swap, ordered watches, and a view of all of them in memory.
//
// Three layers, each knowing only the one below:
//
//   - [Store] is keys, values and revisions: get, list at one revision, transaction,
//     watch from a revision. [OpenEmbedded] is etcd inside this process, [NewMemory]
//     is for tests and simulation; both pass internal/store/conformance.
//   - [Records] gives the keys their meaning for one environment: one envelope per
//     record, typed reads, and [Tx], which states invariants that span records.
//   - [View] is the newest state of all records in memory, fed by a watch.
//
// Invariants, with the test that holds each:
//
//   - An acknowledged write survives kill -9 (TestG1_acknowledgedWritesSurviveKill).
//   - A get sees every write that was acknowledged before it (conformance: read your writes).
//   - A transaction is all or nothing, and its conflict names the first key that
//     differed (conformance: conflict).
//   - A watch delivers every change once, in order, a revision never split
//     (conformance: watch).
//   - Pages of one list show one revision (conformance: pages).
//   - A status is written only against the intent it was projected from
//     (TestP17_statusAgainstAChangedIntentIsRefused).
//   - A host, an instance name or a port has one owner (TestH4_aReservationHasOneOwner).
//   - A region or an account that a server needs cannot go, and no server can come to
//     one that goes (TestP18_noServerOutlivesItsRegionOrAccount).
//   - A record of a newer schema is refused (TestG7_newerSchemaIsRefused).
//   - Events of servers that are gone are kept for a bounded number of them
//     (TestEvents_ofServersLongGoneAreForgotten).
//   - One malformed record costs one record (TestView_malformedRecordIsReportedAndSkipped).
//
// # Keys
//
// Everything lives under /kura/v1/<environment>/:
//
//	accounts/<id>  templates/<name>  regions/<name>  tokens/<id>  schema
//	servers/<region>/<account>/{intent,status,claims}
//	deployments/<region>/<account>/<%010d sequence>   the newest 50 per server
//	events/<region>/<account>/<%02d slot>             a ring of 50 per server
//	refs/departed                                     the last 250 servers that are gone
//	hosts/<host>  instances/<target>/<name>  ports/<endpoint>/<port>
//	refs/accounts/<account>/<region>  refs/templates/<template>/<region>
//
// The values of hosts, instances and ports are the key of the server that holds them;
// claims lists what a server holds, so that it can be released without rendering.
// refs exist so that "nothing needs it any more" is a comparison of a transaction: a
// region is free when nothing is under servers/<region>/, an account or a template
// when nothing is under its refs. A key per user, instead of a counter, because two
// servers that are created at once must not conflict.
package store
