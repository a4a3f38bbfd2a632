//go:build !real

package reconcile_test

// refusedServers are those of a registry outage.
const refusedServers = 200
