package fleet

// AuditAnchor is what the store knows of an audit log, so that it shows where the log was
// cut off, rewritten or removed (G10). The log is never behind it.
type AuditAnchor struct {
	First uint64 `json:"first"` // number of the oldest line that is kept
	Seq   uint64 `json:"seq"`   // of a line whose hash is known
	Hash  string `json:"hash"`
}
