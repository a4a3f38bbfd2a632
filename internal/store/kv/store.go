package kv

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Limits of a transaction, the same in every implementation.
const (
	// MaxOps is how many comparisons, and how many operations, a transaction may hold.
	MaxOps = 128
	// MaxBytes is how large the keys and values of a transaction may be together.
	MaxBytes = 1 << 20
)

// Errors of a store. Everything else that Get, List and Txn return says that the store
// did not answer; the outcome of such a transaction is unknown.
var (
	// ErrNotFound says that the key does not exist.
	ErrNotFound = errors.New("key not found")
	// ErrCompacted says that the revision that was asked for is no longer kept: list again.
	ErrCompacted = errors.New("revision is compacted")
	// ErrClosed says that the store was closed or has stopped.
	ErrClosed = errors.New("store is closed")
	// ErrTooLarge says that a transaction is over MaxOps or MaxBytes.
	ErrTooLarge = errors.New("transaction is too large")
	// ErrBadTxn says that a transaction makes no sense: a fault of its author.
	ErrBadTxn = errors.New("malformed transaction")
	// ErrNoSpace says that the store has reached its quota: it reads and deletes nothing
	// until it was compacted.
	ErrNoSpace = errors.New("store has reached its quota")
	// ErrReserved says that what is left of the quota is kept for what an operator needs.
	ErrReserved = errors.New("store is near its quota")
)

// Health says how much room a store has.
type Health struct {
	Size  int64 // in bytes, of the file that the quota limits
	InUse int64 // in bytes, of Size
	Quota int64 // in bytes
	// Full is set from 80 % of the quota on, and while writes are refused.
	Full bool
	// Reserved is set from 90 % of the quota on: Records write no turns then, and nothing new.
	Reserved bool
	// Refusing is set while the quota's alarm refuses writes.
	Refusing bool
}

// Store is an ordered set of keys whose every change has a revision. All methods are
// safe for concurrent use. Returned values are shared: do not change them.
type Store interface {
	// Get returns the present value of key, or ErrNotFound. It is linearizable: it sees
	// every write that was acknowledged before the call.
	Get(ctx context.Context, key string) (Item, error)
	// List returns the keys that begin with prefix, in order. The pages of one list show
	// one revision when each next call passes the Revision of the first page and After,
	// the last key of the one before. An old revision may be gone: ErrCompacted.
	List(ctx context.Context, prefix string, o ListOptions) (Page, error)
	// Txn applies Then if every comparison in If holds and returns the revision at which
	// it did; otherwise it changes nothing and returns a *ConflictError.
	Txn(ctx context.Context, t Txn) (revision int64, err error)
	// Watch delivers the changes of keys that begin with prefix from revision from on,
	// in order and all changes of one revision in one batch; 0 means from now on. The
	// channel is closed when ctx ends, or after a batch that holds an Err, which is
	// ErrCompacted when from is no longer kept.
	Watch(ctx context.Context, prefix string, from int64) (<-chan Batch, error)
	// Progress asks for a batch without events on every watch of this store, which says
	// how far the watch is. One that is just being set up may not answer: ask again.
	Progress(ctx context.Context) error
	// Campaign waits until this process leads and returns the proof of it. There is one
	// leader for each prefix, a folder of keys; value is what others read of the leader.
	Campaign(ctx context.Context, prefix string, value []byte) (Leadership, error)
	// Health says how much room the store has; what is not known is zero.
	Health(ctx context.Context) (Health, error)
	// Failed is closed when the store has stopped and not by Close: nothing can be read
	// or written any more and the process must exit.
	Failed() <-chan struct{}
	// Err says why the store stopped; nil while it works.
	Err() error
	// Close stops the store and ends its watches.
	Close() error
}

// Item is a key with its value. Revision is that of the last change of the key.
type Item struct {
	Key      string
	Value    []byte
	Revision int64
}

// ListOptions select what List returns.
type ListOptions struct {
	Limit    int    // how many at most; 0: all
	After    string // only keys after this one
	Revision int64  // the state at this revision; 0: the newest
}

// Page is an answer of List. Revision is the one it shows; More says that keys are left.
type Page struct {
	Items    []Item
	Revision int64
	More     bool
}

// Txn is a transaction: Then happens as a whole if all of If holds.
type Txn struct {
	If   []Compare
	Then []Op
}

// Compare is a comparison: the key's last change is Revision, 0 for a key that does
// not exist. With Prefix it holds where no key begins with Key.
type Compare struct {
	Key      string
	Revision int64
	Prefix   bool
}

// Unchanged holds while the last change of key is revision; 0: while it is absent.
func Unchanged(key string, revision int64) Compare { return Compare{Key: key, Revision: revision} }

// Absent holds while key does not exist.
func Absent(key string) Compare { return Compare{Key: key} }

// NoneUnder holds while no key begins with prefix.
func NoneUnder(prefix string) Compare { return Compare{Key: prefix, Prefix: true} }

// OpKind is what an operation does.
type OpKind string

// Operations.
const (
	OpPut          OpKind = "put"
	OpDelete       OpKind = "delete"
	OpDeletePrefix OpKind = "delete-prefix"
)

// Op is one operation of a transaction. No two may touch the same key.
type Op struct {
	Kind  OpKind
	Key   string // a prefix, for OpDeletePrefix
	Value []byte
}

// Put sets key to value.
func Put(key string, value []byte) Op { return Op{Kind: OpPut, Key: key, Value: value} }

// Delete removes key; one that does not exist is no error.
func Delete(key string) Op { return Op{Kind: OpDelete, Key: key} }

// DeletePrefix removes every key that begins with prefix.
func DeletePrefix(prefix string) Op { return Op{Kind: OpDeletePrefix, Key: prefix} }

// Batch holds all changes of one revision, or the error that ends the watch. Without
// either it says that everything up to Revision has been delivered.
type Batch struct {
	Revision int64
	Events   []Change
	Err      error
}

// Change is one changed key. Item holds the new value; of a deleted key only Key and the
// revision of the deletion.
type Change struct {
	Key     string
	Item    Item
	Deleted bool
}

// ConflictError says that a transaction changed nothing because something differed
// from what it expected.
type ConflictError struct {
	// Key is the first one, in the order of the transaction, whose comparison failed.
	Key string
	// Found is a key that exists where none should (NoneUnder), "" otherwise.
	Found string
	// What names the record in words, where the caller of Records is to read it.
	What string
}

func (e *ConflictError) Error() string {
	switch {
	case e.Found != "":
		return fmt.Sprintf("%s exists", e.Found)
	case e.What != "":
		return e.What + " was changed by somebody else meanwhile"
	default:
		return e.Key + " was changed by somebody else meanwhile"
	}
}

// IsConflict reports whether err is a conflict: reading again and trying again may help.
func IsConflict(err error) bool {
	_, ok := errors.AsType[*ConflictError](err)
	return ok
}

// Check refuses transactions that not every implementation could run.
func (t Txn) Check() error {
	if len(t.If) > MaxOps || len(t.Then) > MaxOps {
		return fmt.Errorf("%w: %d comparisons and %d operations, at most %d each", ErrTooLarge, len(t.If), len(t.Then), MaxOps)
	}
	size := 0
	for _, c := range t.If {
		if c.Key == "" {
			return fmt.Errorf("%w: a comparison names no key", ErrBadTxn)
		}
		if c.Prefix && c.Revision != 0 {
			return fmt.Errorf("%w: the comparison of prefix %s has a revision", ErrBadTxn, c.Key)
		}
	}
	written := make(map[string]bool, len(t.Then))
	for _, op := range t.Then {
		if op.Key == "" {
			return fmt.Errorf("%w: an operation names no key", ErrBadTxn)
		}
		switch op.Kind {
		case OpPut, OpDelete, OpDeletePrefix:
		default:
			return fmt.Errorf("%w: unknown operation %q", ErrBadTxn, op.Kind)
		}
		if written[op.Key] {
			return fmt.Errorf("%w: %s is written twice", ErrBadTxn, op.Key)
		}
		written[op.Key] = true
		size += len(op.Key) + len(op.Value)
	}
	if size > MaxBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, size, MaxBytes)
	}
	for _, op := range t.Then {
		if op.Kind != OpDeletePrefix {
			continue
		}
		for key := range written {
			if key != op.Key && strings.HasPrefix(key, op.Key) {
				return fmt.Errorf("%w: %s is written, and removed with %s", ErrBadTxn, key, op.Key)
			}
		}
	}
	return nil
}

// CheckPrefix refuses a prefix that not every implementation could list or watch.
func CheckPrefix(prefix string) error {
	if prefix == "" {
		return errors.New("empty prefix")
	}
	return nil
}
