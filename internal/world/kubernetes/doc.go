// Package kubernetes runs a kube-apiserver with its etcd on loopback, for tests and the
// demo: a real API, without nodes and without controllers (kubecontroller stands for the
// one that matters). The programs are those that the environment variables KURA_APISERVER
// and KURA_ETCD name; make test sets them.
//
// A Server can be stopped, continued, killed and started again; a Proxy before it answers
// for it, loses its answers, holds its watches and counts what was asked.
package kubernetes
