package fleet_test

import (
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func mounting(name, path string, readOnly bool) fleet.Region {
	return fleet.Region{Name: name, Containers: &fleet.Containers{Endpoint: "local", Services: map[string]fleet.Service{
		"cache": {Volumes: []fleet.Volume{{Name: "data", Path: "/data"}, {HostPath: path, Path: "/host", ReadOnly: readOnly}}},
	}}}
}

func TestC10_noMountBelowOneThatAnyServerMayWrite(t *testing.T) {
	for _, c := range []struct {
		mount, written string
		refused        bool
	}{
		{"/srv/shared/x", "/srv/shared", true},
		{"/srv/shared/a/b/c", "/srv/shared", true},
		{"/srv/shared", "/srv/shared", false}, // its own root cannot be exchanged from inside
		{"/srv/shared", "/srv/shared/x", false},
		{"/srv/shared-too", "/srv/shared", false},
		{"/srv/other/x", "/srv/shared", false},
		{"/srv/{account}/x", "/srv/{account}", true},
		{"/srv/{account}", "/srv/{account}", false},
		{"/srv/{region}/{account}", "/srv/{account}", true}, // an account may be called as a region is
		{"/srv/certs/tls", "/srv/{account}", true},          // or as that folder
		{"/srv/certs/tls", "/srv/a-{account}", false},
		{"/srv/a-certs/tls", "/srv/a-{account}", true},
		{"/srv/{account}-data/x", "/srv/{account}-logs", false},
		{"/srv/{account}{env_suffix}/x", "/srv/acme", true},
	} {
		reads, writes := mounting("reads", c.mount, true), mounting("writes", c.written, false)
		for order, err := range map[string]error{
			"the writer is there first": reads.MountsApart([]fleet.Region{writes}), "the writer comes second": writes.MountsApart([]fleet.Region{reads}),
		} {
			if c.refused != (err != nil) {
				t.Errorf("%s below %s, %s: %v", c.mount, c.written, order, err)
			}
			if err != nil && (!strings.Contains(err.Error(), c.mount) || !strings.Contains(err.Error(), c.written) || !strings.Contains(err.Error(), "/containers/services/cache/volumes/1/host_path") || !strings.Contains(err.Error(), "service cache of region") || fleet.CodeOf(err) != fleet.CodeInvalid) {
				t.Errorf("it does not name both: %v", err)
			}
		}
		written := mounting("writes", c.written, true)
		if err := reads.MountsApart([]fleet.Region{written}); err != nil {
			t.Errorf("%s below %s, which nobody writes: %v", c.mount, c.written, err)
		}
		elsewhere := writes
		containers := *writes.Containers
		containers.Endpoint = "other"
		elsewhere.Containers = &containers
		if err := reads.MountsApart([]fleet.Region{elsewhere}); err != nil {
			t.Errorf("on another endpoint: %v", err)
		}
	}
	one := mounting("one", "/srv/shared", false) // two services of one region
	one.Containers.Services["side"] = fleet.Service{Volumes: []fleet.Volume{{HostPath: "/srv/shared/x", Path: "/x", ReadOnly: true}}}
	if err := one.MountsApart(nil); err == nil || !strings.Contains(err.Error(), "services/side/volumes/0/host_path") {
		t.Errorf("within one region: %v", err)
	}
	if err := one.MountsApart([]fleet.Region{mounting("one", "/srv/x", false), {Name: "kubernetes"}}); err == nil {
		t.Error("what it was before counts")
	}
}
