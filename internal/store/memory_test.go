package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
)

func TestMemory(t *testing.T) {
	conformance.Run(t, func(*testing.T) store.Store { return store.NewMemory() })
}

func TestMemory_forgetsOldRevisionsByItself(t *testing.T) {
	m := store.NewMemory()
	defer m.Close()
	for i := range 20_000 {
		if _, err := m.Txn(t.Context(), store.Txn{Then: []store.Op{store.Put("/a", fmt.Append(nil, i))}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.List(t.Context(), "/", store.ListOptions{Revision: 10}); !errors.Is(err, store.ErrCompacted) {
		t.Errorf("list at revision 10: %v, want ErrCompacted", err)
	}
}

func TestMemory_failureClosesFailedAndRefusesCalls(t *testing.T) {
	m := store.NewMemory()
	defer m.Close()
	broken := errors.New("disk broken")
	m.Fail(broken)
	<-m.Failed()
	if _, err := m.Get(t.Context(), "/a"); !errors.Is(err, store.ErrClosed) || !errors.Is(err, broken) {
		t.Errorf("get = %v, want ErrClosed because of the broken disk", err)
	}
	if !errors.Is(m.Err(), broken) {
		t.Errorf("err = %v", m.Err())
	}
}
