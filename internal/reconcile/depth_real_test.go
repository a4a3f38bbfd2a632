//go:build real

package reconcile_test

const refusedServers = 5000
