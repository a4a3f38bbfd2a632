// Package audit keeps kurad's audit log: one JSON line for each call that could change
// something and for each call that was denied.
//
// A line names the hash of the line before it and ends in its own: SHA-256 over the
// line without it. So a line that was changed, taken out or put in breaks the chain at a place
// that [Verify] names. The chain goes on across files: a file that has grown too large is
// renamed after its last line, the oldest ones are removed. What the chain cannot show is
// that its end was cut off, or all of it written anew: that shows the anchor, which is kept
// elsewhere ([Log.Mark], [Log.Compare], [Verify]) and which the log is never behind.
//
// A [Trail] is two such logs: calls that may have changed something are apart from those
// that were denied, of which each caller has one line a minute at most.
//
// Durability. The line of a call that was let through is on the disk (fsync) when Write
// returns, and the call is answered after that. The line of a denied call is handed to
// the system before the answer; a power failure may take those of the last moment along.
//
// Invariants, with the test that holds each:
//
//   - No line is lost that Write took, whatever the moment of a crash
//     (TestLog_aCrashInTheMiddleOfALineIsSaid).
//   - The line of a change that was made before the log broke is written once it works
//     again, before any other (TestLog_whatItCouldNotWriteComesFirst).
//   - The chain and its numbers go on where the file was moved away, cut off or damaged at
//     its end (TestLog_movedAwayItGoesOnInANewFile, TestLog_cutOffItGoesOnWithoutAHoleAndSaysSo,
//     TestLog_aLastLineThatIsNoneDoesNotBeginTheNumbersAnew).
//   - What was cut off, removed or written anew while nobody had the log open is found, and a
//     log that is ahead of its anchor is none of that (TestG10_whatWasTakenFromAStoppedLogIsFound,
//     TestG10_aLogMayBeAheadOfItsAnchor).
//   - Denied calls take no line of a change away, and all are counted
//     (TestAttack_G10_deniedCallsTakeNoChangeAway).
//   - Verify finds every changed, missing, added and swapped line
//     (TestVerify_namesTheFirstLineThatIsWrong).
package audit
