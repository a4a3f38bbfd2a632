// Package provider is the Terraform side of kura: a client of kurad, one file set
// per object (server_resource.go, server_schema.go, server_model.go, server_plan.go, …).
//
// Invariants, each with the test that guards it:
//   - every attribute is described, and a computed one is stable, derived or has a
//     default: TestSchema_*;
//   - every field that the API can point at maps to an attribute: TestAttributePath_*;
//   - what was configured, expanded, sent, read and flattened is what was configured:
//     TestModel_*RoundTrip;
//   - only kurad's 404 for this very object takes it out of state, and no daemon of
//     another environment is read or written: TestAcc*;
//   - what Read puts into image_tag is a pure function: TestVerdict_*;
//   - everyone who waits for servers of one region shares one long poll: TestWatch_*.
package provider
