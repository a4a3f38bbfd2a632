// Package engine runs a container engine of its own for tests and the demo: a
// Podman with its own root, state, network and socket below one folder, so that
// nothing of the machine's engine is seen or touched, and any number of them can run
// side by side.
//
// Invariants:
//   - Close leaves nothing: no process, container, mount, network interface or file.
//   - Two engines never share locks, addresses or a bridge, across processes too.
//   - The machine's own settings are tried first; what had to be changed is logged.
package engine
