package fleet

import "time"

// Gathered is everything the store holds about one server, read at one moment.
// Account, Region and a template are missing where their record is gone.
type Gathered struct {
	Intent         Intent // with the ports that were offered as its own (Intent.Accepted)
	Offers         bool   // its record has them as offers still: the next write makes them its own
	IntentRevision int64  // of the store; what a turn's write compares (P17)
	Declared       Declared
	Status         *Status
	StatusRevision int64 // 0 while there is no status
	Try            *Try  // the newest one of this status, if any
	TryRevision    int64 // of the newest one, of whatever status
	Latest         *Deployment
	LatestRevision int64
	Account        *Account
	Region         *Region
	Templates      map[string]HostTemplate // the region's, by name
}

// Declared says who declared an object last, and how much. What kurad itself writes of the object
// changes neither (G8).
type Declared struct {
	By    string `json:"by"`    // id of the token
	Bytes int64  `json:"bytes"` // as JSON
}

// TurnWrite is the one transaction of a turn: it is refused as a whole unless the
// intent, the status and the deployment still have the revisions it was computed from.
type TurnWrite struct {
	Key            ServerKey
	IntentRevision int64
	StatusRevision int64
	Status         Status
	// Latest is the changed latest deployment, nil where it did not change.
	Latest         *Deployment
	LatestRevision int64
	Events         []Event
	// Freed are hosts whose reservations the server gives back. UnlockedAt is then the
	// store's word, from before the turn gathered, that no write of what others render to
	// was under way: the turn is refused where one came since (H4).
	Freed      []string
	UnlockedAt int64
	// Port is another port that the server gets in its intent, whose generation stays; nil:
	// it keeps what it has (C12).
	Port *PortMove
	// Remove ends a destroyed server: intent, status, deployments and reservations go
	// (P18); its events stay. Its hosts stay its account's until KeptUntil (H10).
	Remove    bool
	KeptUntil time.Time
}
