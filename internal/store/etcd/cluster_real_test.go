//go:build real

package etcd_test

import (
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/store/conformance"
	"github.com/kurafleet/terraform-provider-kura/internal/store/etcd"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
	worldetcd "github.com/kurafleet/terraform-provider-kura/internal/world/etcd"
)

// connect opens the cluster as one kurad does.
func connect(t *testing.T, c *worldetcd.Cluster) *etcd.Cluster {
	t.Helper()
	return connectFor(t, c, etcd.DefaultLeaseTTL)
}

// connectFor opens the cluster, and leads with a lease of its own length.
func connectFor(t *testing.T, c *worldetcd.Cluster, lease time.Duration) *etcd.Cluster {
	t.Helper()
	s, err := etcd.OpenCluster(etcd.ClusterOptions{
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
	for name, options := range map[string]worldetcd.Options{
		"one member": {}, "three members": {Members: 3}, "TLS with client certificates": {TLS: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := worldetcd.Start(t, options)
			conformance.Run(t, func(t *testing.T) kv.Store {
				s := connectFor(t, cluster, time.Minute) // no lease runs out, even if the machine stands still
				if _, err := s.Txn(t.Context(), kv.Txn{Then: []kv.Op{kv.DeletePrefix("/")}}); err != nil {
					t.Fatal(err)
				}
				return s
			})
		})
	}
}

func TestCluster_certificatesThatAreNotAcceptedAreNamed(t *testing.T) {
	cluster := worldetcd.Start(t, worldetcd.Options{TLS: true})
	endpoint := cluster.Members[0].Endpoint
	_, err := etcd.OpenCluster(etcd.ClusterOptions{Endpoints: cluster.Endpoints(), CAFile: cluster.Files.CA})
	wantError(t, err, endpoint, "certificate", "--store-cert")
	_, err = etcd.OpenCluster(etcd.ClusterOptions{Endpoints: cluster.Endpoints(), CertFile: cluster.Files.Cert, KeyFile: cluster.Files.Key})
	wantError(t, err, endpoint, "unknown authority", "--store-ca")
	_, err = etcd.OpenCluster(etcd.ClusterOptions{Endpoints: []string{"http://" + cluster.Members[0].Address()}})
	wantError(t, err, cluster.Members[0].Address(), "did not answer")
}
