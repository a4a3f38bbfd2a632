//go:build real && !race

package reconcile_test

const refusedServers = 5000

const killedEvery = 1
