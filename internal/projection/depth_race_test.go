//go:build real && race

package projection

// effort is how far the explorations go under the race detector, which makes them ten
// times slower and has nothing to find in pure functions: `make test` runs them without it.
var effort = efforts{depth: 1, bothDepth: 1, toyDepth: 1, zoneDepth: 1, turns: 1, worlds: 1, kubeWorlds: 1}
