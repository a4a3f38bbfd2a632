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
	WarnForeignHost      WarningCode = "foreign_host"      // dry run only: somebody else has a host that servers are to have (D3)
	WarnSharedOwner      WarningCode = "shared_owner"      // dry run only: another environment uses the region's owner id
	WarnZoneToken        WarningCode = "zone_token"        // dry run only: the token of a zone may not what it takes
)

// Warning is what a write will mean, said before it is done (dry run) and with it.
type Warning struct {
	Code    WarningCode `json:"code"`
	Pointer string      `json:"pointer,omitempty"`
	// Reason is why a runtime cannot be read, where the kurad that answers knows it, or why a
	// host is not ours.
	Reason Reason `json:"reason,omitempty"`
	// Cause tells warnings of one code apart: what is said of one cause once is said.
	Cause  string `json:"cause,omitempty"`
	Detail string `json:"detail"`
}
