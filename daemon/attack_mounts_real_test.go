//go:build real

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// One region writes a folder, another mounts what lies below it: what runs in the first could
// exchange that for a link to any path of the host. Whoever comes second is refused.
// TestPodman/C10_aPathThatIsExchangedAllTheTimeIsNeverReadElsewhere (internal/runtime/containers)
// plays the exchange.
func TestAttack_C10_noRegionMountsBelowWhatAnotherOneWrites(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "shared", "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	k := newBareKurad(t, "staging", t.TempDir(), "--container-endpoint", "local=unix://"+real.engine.Socket()+",address=127.0.0.1,ports="+real.portRange()+",mounts="+dir)
	k.start()
	k.putTemplate("public", "{account_handle}-{cluster_id}{env_suffix}.kura.test")
	mounting := func(name, path string, readOnly bool) fleet.Region {
		return region(name, cache(func(s *fleet.Service) {
			s.Volumes = []fleet.Volume{{HostPath: filepath.Join(dir, path), Path: "/host", ReadOnly: readOnly}}
		}))
	}
	refused := func(r fleet.Region, names ...string) {
		t.Helper()
		for _, dry := range []bool{true, false} {
			_, err := k.client.PutRegion(t.Context(), r, api.PutOptions{DryRun: dry})
			if fleet.CodeOf(err) != fleet.CodeInvalid || !strings.Contains(err.Error(), "/containers/services/cache/volumes/0/host_path") {
				t.Errorf("region %s was answered %v", r.Name, err)
				continue
			}
			for _, name := range names {
				if !strings.Contains(err.Error(), name) {
					t.Errorf("%v does not name %s", err, name)
				}
			}
		}
	}
	k.putRegion(mounting("writes", "shared", false))
	k.putRegion(mounting("shares", "shared", false))                                                  // one and the same folder is no way out
	refused(mounting("reads", "shared/x", true), dir+"/shared/x", `service cache of region "shares"`) // the first of the two
	k.putRegion(mounting("writes", "shared", true))                                                   // and nobody writes any more
	k.putRegion(mounting("shares", "shared", true))
	k.putRegion(mounting("reads", "shared/x", true))
	refused(mounting("writes", "shared", false), dir+"/shared", `service cache of region "reads"`)
	refused(mounting("writes", "{account}", false), `service cache of region "reads"`) // an account may be called shared
}
