//go:build real

package store_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/world/etcd"
)

// connect opens the cluster as one kurad does.
func connect(t *testing.T, c *etcd.Cluster) *store.Cluster {
	t.Helper()
	return connectFor(t, c, store.DefaultLeaseTTL)
}

// connectFor opens the cluster, and leads with a lease of its own length.
func connectFor(t *testing.T, c *etcd.Cluster, lease time.Duration) *store.Cluster {
	t.Helper()
	s, err := store.OpenCluster(store.ClusterOptions{
		Endpoints: c.Endpoints(), CAFile: c.Files.CA, CertFile: c.Files.Cert, KeyFile: c.Files.Key, LeaseTTL: lease,
	})
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

func TestCluster(t *testing.T) {
	for name, options := range map[string]etcd.Options{
		"one member": {}, "three members": {Members: 3}, "TLS with client certificates": {TLS: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := etcd.Start(t, options)
			conformance.Run(t, func(t *testing.T) store.Store {
				s := connectFor(t, cluster, time.Minute) // no lease runs out, even if the machine stands still
				if _, err := s.Txn(t.Context(), store.Txn{Then: []store.Op{store.DeletePrefix("/")}}); err != nil {
					t.Fatal(err)
				}
				return s
			})
		})
	}
}

func TestCluster_certificatesThatAreNotAcceptedAreNamed(t *testing.T) {
	cluster := etcd.Start(t, etcd.Options{TLS: true})
	endpoint := cluster.Members[0].Endpoint
	_, err := store.OpenCluster(store.ClusterOptions{Endpoints: cluster.Endpoints(), CAFile: cluster.Files.CA})
	wantError(t, err, endpoint, "certificate", "--store-cert")
	_, err = store.OpenCluster(store.ClusterOptions{Endpoints: cluster.Endpoints(), CertFile: cluster.Files.Cert, KeyFile: cluster.Files.Key})
	wantError(t, err, endpoint, "unknown authority", "--store-ca")
	_, err = store.OpenCluster(store.ClusterOptions{Endpoints: []string{"http://" + cluster.Members[0].Address()}})
	wantError(t, err, cluster.Members[0].Address(), "did not answer")
}

func TestG1_theViewOfASharedStoreCatchesUpWhoeverWroteLast(t *testing.T) {
	catchUpWhoeverWrote(t, connect(t, etcd.Start(t, etcd.Options{Members: 3})))
}

func TestG7_snapshotGrowsFromTheDataDirectoryToAClusterAndBack(t *testing.T) {
	small := embedded(t, filepath.Join(t.TempDir(), "store"))
	r := furnish(t, small)
	snapshot, _ := save(t, r)
	shared := connect(t, etcd.Start(t, etcd.Options{Members: 3}))
	grown := restored(t, r, snapshot, shared)
	again, _ := save(t, grown)
	restored(t, grown, again, embedded(t, filepath.Join(t.TempDir(), "store")))
	if h, err := shared.Health(t.Context()); err != nil || h.Size == 0 || h.Quota == 0 || h.Full {
		t.Errorf("health of the cluster: %+v, %v", h, err)
	}
}
