//go:build real && !race

package reconcile_test

const refusedServers = 5000
