// Package conformance is what a container engine must do for this runtime to hold its
// rules on it: Run drives the runtime against a real engine and looks at the result
// through the engine's own API. Podman passes it; another engine is tried by another
// Target.
package conformance
