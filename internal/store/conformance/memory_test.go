package conformance_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

func TestMemory(t *testing.T) {
	conformance.Run(t, func(*testing.T) kv.Store { return conformance.NewMemory() })
}

func TestMemory_forgetsOldRevisionsByItself(t *testing.T) {
	m := conformance.NewMemory()
	defer m.Close()
	for i := range 20_000 {
		if _, err := m.Txn(t.Context(), kv.Txn{Then: []kv.Op{kv.Put("/a", fmt.Append(nil, i))}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := m.List(t.Context(), "/", kv.ListOptions{Revision: 10}); !errors.Is(err, kv.ErrCompacted) {
		t.Errorf("list at revision 10: %v, want ErrCompacted", err)
	}
}

func TestMemory_failureClosesFailedAndRefusesCalls(t *testing.T) {
	m := conformance.NewMemory()
	defer m.Close()
	broken := errors.New("disk broken")
	m.Fail(broken)
	<-m.Failed()
	if _, err := m.Get(t.Context(), "/a"); !errors.Is(err, kv.ErrClosed) || !errors.Is(err, broken) {
		t.Errorf("get = %v, want ErrClosed because of the broken disk", err)
	}
	if !errors.Is(m.Err(), broken) {
		t.Errorf("err = %v", m.Err())
	}
}
