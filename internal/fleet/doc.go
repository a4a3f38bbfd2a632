// Package fleet holds the domain: environments, accounts, host templates,
// regions, servers, deployments, conditions and plans, with their validation
// and the rendering of hosts, names and documents. It is the one set of types
// that is stored, sent and used by both binaries, and it does no I/O: time,
// randomness and what was observed come in as values.
//
// Ids such as H2, P5 or C4 in comments name rules of docs/design/rules.md.
//
// Invariants, and the tests that guard them:
//
//   - No two environments render one host, and none falls through to production's
//     (TestH2_noTwoEnvironmentsRenderOneHost, FuzzRenderHost, TestL25_…).
//   - Containers and volumes of different servers never bear one name, their names
//     while they are replaced included (TestH6_namesOfDifferentServersAreNeverEqual).
//   - A new handle or template moves hosts, never names or storage (TestH8_L33_…).
//   - Every rendered field changes a digest, order of unordered inputs and written-out
//     defaults do not, and an upgraded daemon renders old inputs to the same revision
//     (TestP13_…; testdata/render). Of a KuraInstance: each declared field changes the
//     manifest where it should and nowhere else (TestL3_L4_kubernetesFieldsChangeTheRevision),
//     extra_spec never a field of ours (FuzzExtraSpec).
//   - Hosts that stay routed are the same before and after the published url switches
//     (TestH8_P15_theRevisionIsTheSameBeforeAndAfterTheSwitch).
//   - A region that is valid is valid with its defaults, and nothing that JSON can say
//     makes validation or rendering panic (FuzzRegion, FuzzServer).
//   - Every condition type has one row with a closed set of reasons (conditions_test.go).
package fleet
