package fleet

// WarningCode is the kind of a warning.
type WarningCode string

// Warnings of writes and dry runs.
const (
	WarnHostsMove        WarningCode = "hosts_move"        // published hosts will change
	WarnReplace          WarningCode = "replace"           // servers will be replaced or re-applied
	WarnNeighbourUnknown WarningCode = "neighbour_unknown" // dry run only: an account, region or template that is not declared yet
	WarnNoAlias          WarningCode = "no_alias"          // the runtime cannot keep an old host routed (H8)
	WarnUnreadable       WarningCode = "unreadable"        // dry run of a server or a region only: its runtime cannot be read now (P2)
)

// Warning is what a write will mean, said before it is done (dry run) and with it.
type Warning struct {
	Code    WarningCode `json:"code"`
	Pointer string      `json:"pointer,omitempty"`
	// Reason is why a runtime cannot be read, where the kurad that answers knows it.
	Reason Reason `json:"reason,omitempty"`
	Detail string `json:"detail"`
}
