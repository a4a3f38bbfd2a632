// Package containers observes and changes the containers of an endpoint: a Podman or
// Docker engine behind the Docker-compatible API, on a unix socket or over TLS.
//
// Invariants, with the tests that guard them (TestPodman runs package conformance, its
// TestEngine runs it over TLS or on the engine that make test-docker names):
//   - One listing of an endpoint answers for all its servers; what a listing shows of a
//     running container is never compared with a document (L59:
//     TestPodman/C3_L59_listingsAndRepeatedTasksKeepTheContainer).
//   - Whatever acts on a container reads its labels first and leaves what is not of
//     that server of this environment alone (TestPodman/C7_…).
//     Only a container without labels that the task names by its id as adopted is the
//     server's as well (TestC7_onlyTheRecordedContainerWithoutLabelsIsTouched).
//   - An engine on another machine is reached over TLS alone, and what TLS refuses is a
//     read failure (TestC9_…, TestP2_whatTLSRefusesIsAReadFailure).
//   - Every task may be repeated, after a crash at any point of it too
//     (TestPodman/C4_replaceKeepsOneContainerAndItsPort).
//   - No answer is never an answer: it is transient with Answered=false, or a read
//     failure (TestP2_stoppedEngineIsUnreachable, TestP2_noAnswerIsNoAnswer).
//   - A document reaches nothing of the host that the operator did not allow
//     (TestPodman/C10_…, TestC10_…). What a container has mounted is looked at after its
//     start, and it is removed where somebody had exchanged the path meanwhile
//     (TestPodman/C10_aPathThatIsExchangedAllTheTimeIsNeverReadElsewhere). An engine on another
//     machine cannot be looked into: there, nothing is mounted below what any region writes.
//   - What an answer means is said in one table, classify
//     (TestClassify_everyAnswerOfEveryOperation).
package containers
