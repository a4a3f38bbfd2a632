//go:build real && race

package reconcile_test

// refusedServers are fewer under the race detector, which makes them many times slower:
// `make test` takes those of depth_real_test.go, without it.
const refusedServers = 200

// killedEvery is of how many writes to a zone a kurad dies after one.
const killedEvery = 5
