// Package etcd runs an etcd cluster on loopback for tests: real members, each a process
// that can be killed, stopped, continued and started again. The program is the one that
// the environment variable KURA_ETCD names; make test sets it.
package etcd
