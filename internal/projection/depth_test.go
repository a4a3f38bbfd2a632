//go:build !real

package projection

// effort is how far the explorations go in the fast loop.
var effort = efforts{depth: 2, bothDepth: 1, toyDepth: 1, zoneDepth: 1, turns: 1, worlds: 4, kubeWorlds: 2}
