// Package world is the outside world of tests and the demo: a certificate
// authority, an authoritative DNS server for kura.test, and things that break on
// command. Its folders hold the programs that go with it: cacheserver (what the
// containers run), engine (a Podman of its own), etcd, kubernetes (a kube-apiserver),
// kubecontroller and controllerd (what stands for the KuraInstance controller) and worldd
// (the demo's world).
//
// Everything listens on loopback, on ports that the system chooses, and stops
// when it is closed. Faults that are drawn at random come from a seed, so that a
// failing run can be repeated.
package world
