//go:build real

package store_test

import (
	"path/filepath"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/store/etcd"
	worldetcd "github.com/kurafleet/terraform-provider-kura/internal/world/etcd"
)

// connect opens the cluster as one kurad does.
func connect(t *testing.T, c *worldetcd.Cluster) *etcd.Cluster {
	t.Helper()
	s, err := etcd.OpenCluster(etcd.ClusterOptions{Endpoints: c.Endpoints(), CAFile: c.Files.CA, CertFile: c.Files.Cert, KeyFile: c.Files.Key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestG1_theViewOfASharedStoreCatchesUpWhoeverWroteLast(t *testing.T) {
	catchUpWhoeverWrote(t, connect(t, worldetcd.Start(t, worldetcd.Options{Members: 3})))
}

func TestG7_snapshotGrowsFromTheDataDirectoryToAClusterAndBack(t *testing.T) {
	small := embedded(t, filepath.Join(t.TempDir(), "store"))
	r := furnish(t, small)
	snapshot, _ := save(t, r)
	shared := connect(t, worldetcd.Start(t, worldetcd.Options{Members: 3}))
	grown := restored(t, r, snapshot, shared)
	again, _ := save(t, grown)
	restored(t, grown, again, embedded(t, filepath.Join(t.TempDir(), "store")))
	if h, err := shared.Health(t.Context()); err != nil || h.Size == 0 || h.Quota == 0 || h.Full {
		t.Errorf("health of the cluster: %+v, %v", h, err)
	}
}
