// Package reconcile takes turns: it gathers what is stored and what was observed of one
// server, lets the projection decide, stores the decision in one transaction, and runs
// the current task of a stored plan.
//
//	intent, observers, task result, due time ──▶ queue ──▶ turn ──▶ store
//	                                                         └──▶ task ──▶ executor
//
// An observer keeps what was last seen of one part of servers (observe.go): a site of their
// instances, the probes of their endpoints (probes.go). A site is where instances are, and
// turns know nothing else of runtimes: a container endpoint, which is listed at every tick
// (endpoint.go), or a namespace of a Kubernetes cluster, which is watched from the first
// region on that names it (cluster.go).
//
// An executor runs the effects of its kinds, in rooms with slots of their own (executor.go),
// and may make one call of the tasks of many servers (coalesce.go). Orphans of a namespace
// have no turns; a sweep stores the end of those that their region gives up, and then runs it
// as any task (orphans.go).
//
// Everything is level-triggered: a lost hint costs latency, never correctness. A server
// is in one turn at a time, and a task runs beside the turns of its server, so that a
// stop that takes its grace period delays nobody.
//
// Invariants, each with the test that guards it:
//
//   - an effect is a claimed task of a stored plan, and the claim is in the store before
//     the effect begins, the end of an orphan as well (TestS4_planIsStoredBeforeAnyEffect,
//     TestS4_S5_theEndOfAnOrphanIsStoredBeforeItAndRunAgainAfterACrash)
//   - what a track needs is a look, an executor and an observer; its trouble is its own
//     (TestP19_aTrackMakesNoDifferenceToTheRuntimeNorTheRuntimeToIt,
//     TestP18_whatRunsGoesAfterItsTracks,
//     TestG12_aTrackThatFailsBesideTheRuntimeWritesItsClaimsOnly)
//   - what hangs in one room delays no other; what a call did not send, it did not do
//     (TestP19_anExecutorThatHangsDelaysNoOther, TestP19_tasksOfManyServersAreOneCall,
//     TestG9_aDeafCallGivesItsSlotBack,
//     TestP19_aCallThatHangsIsEndedAndWhatWasNotSentWasNot)
//   - a crash at any write or effect leaves a server that converges to one container under
//     its name, or to none (TestCrash_atEveryWriteOfAReplace, TestCrash_atEveryWriteOfADestroy,
//     TestL49_aCrashBetweenSeeingAndCorrectingForgetsNothing)
//   - at most max_unsettled servers of a region are unsettled at once, over restarts and
//     faults too (TestG4_massCreationIsAdmittedInSteps, TestG4_aRestartKeepsThePlacesThatAreTaken)
//   - every server gets its turn, whatever another one or another endpoint does
//     (TestP19_aPanickingServerStopsNobody, TestP19_everyServerGetsItsTurn,
//     TestP19_anEndpointThatHangsHoldsUpNobodyElse, TestP19_aServerWhoseTurnsFailGivesItsSlotOn,
//     TestP19_whoWaitsForTheEndOfADeclarationHoldsUpNobodyElse, TestG4_aPlaceThatIsNotWantedGoesToTheNext)
//   - a turn asks every observer, tells it what it waits for, and ?observe=now waits for a
//     fresh look of each (TestD3_aTurnAsksEveryObserver)
//   - a converged server, or one that is held, costs no write and no turn but the slow
//     resync's (TestP16_convergedServerCostsNothing, TestR5_aServerThatIsHeldCostsNoTurns),
//     and on a cluster no call either (TestP16_200QuietTicksOfAClusterCostNothing)
//   - a destroyed KuraInstance is gone only by the server's own word, asked for as often as
//     that takes (TestP18_aDestroyedInstanceIsGoneOnlyByTheServersOwnWord,
//     TestP18_aDirectReadThatFailsIsTriedAgainEverLessOften)
//   - nothing is made of what a namespace shows before it is stored which one it is, and
//     nothing is done in another one of its name until that is accepted
//     (TestK9_nothingIsDoneBeforeItIsStoredWhichNamespaceItIs,
//     TestK9_inAnotherClusterNothingIsDoneUntilItIsAccepted)
//   - only an orphan is deleted as one: where its region wants that and nothing holds it,
//     after Config.OrphanPeriod, in steps, and if the store itself knows no such server
//     (TestK5_L30_orphansOfARegionThatWantsItAreDeletedAfterAMinute,
//     TestK5_theStoreHasTheLastWordOnAnOrphan, TestK5_G4_orphansGoInBoundedSteps)
//   - a turn is stored only over what it was computed from, and takes one write
//     (TestL18_aTurnThatOvertakesADestroyIsRefused, TestL48_aConcurrentWriterIsAConflictAndConverges)
//   - a task that may be given up, a pull, is given up when nobody wants its plan any more; every
//     other one is awaited (TestS6_aPullThatHangsHoldsUpNeitherTheFixNorTheDestroy,
//     TestS6_whatCannotBeGivenUpIsAwaitedAndSaid)
//   - an answer is recorded only for the claim that it answers
//     (TestS5_anAnswerOfAnotherLifeIsNotRecorded)
//   - ?observe=now is answered by a turn that succeeded, with a read and a probe that began
//     after the request (TestObserveNow_takesATurnWithAFreshReadAndAFreshProbe,
//     TestObserveNow_isNotAnsweredByATurnThatFailed)
//   - an adopted container is the server's by its recorded id until it is gone, wherever
//     kurad dies (TestCrash_atEveryWriteOfTheReplaceOfAnAdoptedContainer)
//   - a try that learns nothing new costs one small write, its claim, and none where the
//     answers of a whole site are the same and another server is tried instead: pace.go
//     (TestG12_aTryThatLearnsNothingNewWritesItsClaimOnly,
//     TestG12_C14_ofAStartOfWhatServedThatIsRefusedTheClaimIsWrittenOnly,
//     TestG12_C11_aCrashLoopOfAnHourWritesTheClaimsOfItsStartsOnly,
//     TestG12_triesOverASiteWhoseAnswersAreTheSameArePacedTogether,
//     TestG12_aRegistryOutageOfAnHourFillsNoStore,
//     TestG12_C14_anHourInWhichNothingThatServedCanBeStartedFillsNoStore)
//   - an answer, what follows from it, and the claim of the next task are one write
//     (TestG12_S4_anAnswerAndTheNextClaimAreOneWrite); first tries of what fails for others
//     follow each other, and a site on which something succeeds is not slowed down
//     (TestG12_firstTriesArePacedWhereAllFailAndNowhereElse)
//   - after any faults, peace leads to what was declared
//     (TestSimulation_faultsThenPeaceConverges)
package reconcile
