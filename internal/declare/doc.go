// Package declare stores what users declare: what a PUT means, without HTTP.
//
// Every object has one function that makes a plan of what will be written. A dry run shows
// the plan, else it is carried out: what other servers come to need is reserved, then the
// change is made in one transaction.
//
// Invariants, with the test that holds each (of internal/api/server, where they are asked for):
//
//   - A host, an instance name and a port belong to one server, and a global host to the
//     servers of one account, whoever writes at the same time (TestH4_…, TestC12_…).
//   - A write of one server renders that server alone, and runs beside those of others
//     (TestH4_aWriteOfAServerWithAGlobalHostRendersThatServerAloneAndRunsBesideOthers).
//   - A dry run writes nothing (TestDryRun_writesNothing).
//   - What one token declared takes a share of the store at most, whichever replica is asked
//     (TestG8_whatATokenStoresIsBounded…).
//   - Equal declarations are no write (TestPutServer_equalIsNoWrite).
//   - A status is written by turns, and once besides: when a server takes over what runs
//     already (takeOver).
//
// Neighbours. A change of an account, a host template or a region changes what its
// servers render to. Such writes exclude each other and all writes of servers within
// this process (Declarer.turn); they first reserve, in steps of a bounded size, what
// the servers will need, and then change the record. A crash in between leaves
// reservations too many, never too few; a reservation that its server does not need is
// given back when somebody else asks for it.
package declare
