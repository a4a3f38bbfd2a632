package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// Versioned is a stored value with the facts of its record. The zero Versioned stands
// for a record that does not exist.
type Versioned[T any] struct {
	Value T
	// Generation counts the writes to the record; an intent's is its own.
	Generation int64
	// Revision is that of the store at the last write; 0: the record does not exist.
	Revision  int64
	CreatedAt time.Time
	UpdatedAt time.Time
	// Declared is who declared it last; zero: nobody does, or an older kurad stored it.
	Declared fleet.Declared
}

// Exists reports whether the record exists.
func (v Versioned[T]) Exists() bool { return v.Revision != 0 }

// Values are the values of records.
func Values[T any](records []Versioned[T]) []T {
	out := make([]T, len(records))
	for i, r := range records {
		out[i] = r.Value
	}
	return out
}

// envelope is what every record's value looks like in the store.
type envelope[T any] struct {
	Schema     int            `json:"schema"`
	Generation int64          `json:"generation"`
	CreatedAt  time.Time      `json:"created_at"`
	UpdatedAt  time.Time      `json:"updated_at"`
	Declared   fleet.Declared `json:"declared,omitzero"`
	Value      T              `json:"value"`
}

// encode seals the next version of a record that nobody declares.
func encode[T any](value T, generation int64, created, now time.Time) ([]byte, error) {
	return seal(value, fleet.Declared{}, generation, created, now)
}

// seal makes the next version of a record.
func seal[T any](value T, declared fleet.Declared, generation int64, created, now time.Time) ([]byte, error) {
	if created.IsZero() {
		created = now
	}
	b, err := json.Marshal(envelope[T]{
		Schema: fleet.SchemaVersion, Generation: generation,
		CreatedAt: created.UTC(), UpdatedAt: now.UTC(), Declared: declared, Value: value,
	})
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", value, err)
	}
	return b, nil
}

// decode opens a record. What it cannot read, and what a newer kurad has written, is
// an error that names no key: the caller does.
func decode[T any](item kv.Item) (Versioned[T], error) {
	var e envelope[T]
	if err := json.Unmarshal(item.Value, &e); err != nil {
		// A newer schema may well not fit today's types: say that first.
		var head struct {
			Schema int `json:"schema"`
		}
		if json.Unmarshal(item.Value, &head) == nil && head.Schema > fleet.SchemaVersion {
			return Versioned[T]{}, newerSchema(head.Schema)
		}
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return Versioned[T]{}, fmt.Errorf("the stored record cannot be read: it has a JSON %s at %q", wrong.Value, "/"+strings.ReplaceAll(wrong.Field, ".", "/"))
		}
		return Versioned[T]{}, fmt.Errorf("the stored record cannot be read: %w", err)
	}
	if e.Schema > fleet.SchemaVersion {
		return Versioned[T]{}, newerSchema(e.Schema)
	}
	if e.Schema < 1 {
		return Versioned[T]{}, fmt.Errorf("the stored record has schema %d, which never was", e.Schema)
	}
	if old, ok := any(&e.Value).(interface {
		Upgrade(schema int, stored []byte) error
	}); ok && e.Schema < fleet.SchemaVersion {
		var raw envelope[json.RawMessage]
		if err := errors.Join(json.Unmarshal(item.Value, &raw), old.Upgrade(e.Schema, raw.Value)); err != nil {
			return Versioned[T]{}, fmt.Errorf("the stored record of schema %d cannot be read: %w", e.Schema, err)
		}
	}
	return Versioned[T]{Value: e.Value, Generation: e.Generation, Revision: item.Revision, CreatedAt: e.CreatedAt, UpdatedAt: e.UpdatedAt, Declared: e.Declared}, nil
}

func newerSchema(schema int) error {
	return fmt.Errorf("the stored record has schema %d and this kurad knows up to %d: start a kurad that is at least as new as the one that wrote it",
		schema, fleet.SchemaVersion)
}
