//go:build real && !race

package projection

// effort is how far the explorations go when there is time: with the tag "real" and
// without the race detector.
var effort = efforts{depth: 3, bothDepth: 2, toyDepth: 2, zoneDepth: 2, turns: 6, worlds: len(worlds(variant{})), kubeWorlds: len(worlds(kube))}
