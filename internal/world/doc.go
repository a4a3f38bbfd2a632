// Package world is the outside world of tests and the demo: a certificate
// authority, an authoritative DNS server, and things that break on command. Its folders
// hold what goes with it: cacheserver (what the containers run), engine (a Podman of its
// own), etcd, kubernetes (a kube-apiserver), kubecontroller and controllerd (what stands
// for the KuraInstance controller), cloudflare (an API of its own that says what DNS
// answers) and worldd (the demo's world).
//
// Everything listens on loopback, on ports that the system chooses, and stops
// when it is closed. Faults that are drawn at random come from a seed, so that a
// failing run can be repeated.
package world
