// Package provider is the Terraform side of kura: a client of kurad, one file set
// per object (server_resource.go, server_schema.go, server_state.go, server_plan.go, …). An attribute
// bears the name of its field in the API's JSON, by which its value travels (fields.go): its
// schema decides what it is, internal/fleet what the field is.
//
// Invariants, each with the test that guards it:
//   - every attribute is described, and a computed one is stable, derived or has a
//     default: TestSchema_*;
//   - every field that the API can point at maps to an attribute: TestAttributePath_*;
//   - what was configured, sent, read and shown is what was configured: TestModel_*RoundTrip,
//     nothing can be configured that is sent to nobody: TestModel_everything*, and what a
//     data source shows is what the daemon told: TestSource_everyAttributeIsShown;
//   - only kurad's 404 for this very object takes it out of state, and no daemon of
//     another environment is read or written: TestAcc*;
//   - what Read puts into image_tag is a pure function: TestVerdict_*;
//   - everyone who waits for servers of one region shares one long poll: TestWatch_*.
package provider
