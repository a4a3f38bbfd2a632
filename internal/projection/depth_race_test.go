//go:build real && race

package projection

// effort is how far the explorations go under the race detector, which makes them ten
// times slower and has nothing to find in pure functions: all moves at depth 2, the
// essential ones at depth 3, and every combination in a few worlds. `make test` runs
// the fast loop's explorations without it as well.
var effort = efforts{depth: 2, bothDepth: 1, essentialDepth: 3, turns: 1, worlds: 4}
