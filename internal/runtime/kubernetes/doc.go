// Package kubernetes observes and changes the KuraInstances of Kubernetes clusters.
//
// A watch per namespace keeps a cache of what is there. What Observe shows is from it,
// compared with a server's document by a pure function (compare); an answer to a write of
// ours and a direct read go into the same cache, and the newer one counts.
//
// Invariants, with the tests that guard them (TestCluster and the tests of schemas run
// against a real API server):
//   - A look that did not answer about the object says nothing about it, and what was last
//     seen stays (TestP3_…, TestP2_…, TestK3_whatAnOldSchemaLacksIsLeftOutAndToldUntilItIsUpgraded).
//   - What is not of that server of this environment is left alone: an apply names the UID
//     it is meant for, and what is new is created, which fails where the name was taken
//     (TestCluster/K4_…, L52_…). Before the first apply the fields that kurad has by its
//     create become applied ones: what leaves the document goes (TestCluster/K1_whatIsNoLonger…).
//   - Another namespace of the expected one's name is not read, and nothing is done in it
//     (TestK9_anotherNamespaceOfTheName…).
//   - While a write goes on nothing that is seen is newer than its beginning, and what it
//     was answered is not taken back by a watch that lags (TestL44_…, TestCluster/L44_…).
//   - changed is called for what Observe shows, once (TestL47_…, TestK2_…); for a controller's
//     sign of life while somebody waits for it (TestK8_aSignOfLife…).
//   - An edit by hand is a difference; what another manager applied is held, and forced
//     only when the document says so, and at the version that was looked at (TestP14_…,
//     TestCluster/K1_…, TestCluster/K4_forceTakesNothing…).
//   - A list wins over what was known before it began, and every watch is preceded by one:
//     what happened while none stood is known before anything seems newer
//     (TestK2_aListWins…, TestK2_aWatchThatWasCut…, TestCluster/K2_aWatchAfterACut…).
//   - Nothing that is copied from an object is without bound (TestP3_nothingThatIs…).
//   - What the live schema lacks is left out and told until the schema has it (TestK3_…).
//   - What admission made of a field that is still desired is no difference, as long as it is
//     there; the answer to the apply tells it, and Observe is told it again (TestK10_…).
//   - A connection that leads nowhere is noticed within 15 s: HTTP/2 asks after 8 s of
//     silence, and waits 5 s (TestCluster/P2_aConnectionThatLeadsNowhereIsNoticed).
//   - What an answer means is said in one table, classify (TestFailureClasses_…).
package kubernetes
