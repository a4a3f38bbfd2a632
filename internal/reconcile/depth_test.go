//go:build !real

package reconcile_test

// refusedServers are those of a registry outage.
const refusedServers = 200

// killedEvery is of how many writes to a zone a kurad dies after one.
const killedEvery = 1
