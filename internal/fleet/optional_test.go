package fleet

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// With every optional field left out, a server is declared and its image is bumped: no
// step of an update needs what a creation did not (L54), and both are rendered by the
// same function (L50).
func TestL54_everyOptionalFieldMayBeLeftOut(t *testing.T) {
	for name, r := range map[string]Region{
		"containers": {Name: "eu", Hosts: RegionHosts{Public: "main"}, Containers: &Containers{Endpoint: "local", Services: map[string]Service{
			"cache": {Image: "cache:{image_tag}", Ports: map[string]Port{"http": {Container: 8080, Endpoint: EndpointPublic}}},
		}}},
		"kubernetes": {Name: "eu", Hosts: RegionHosts{Public: "main"}, Kubernetes: &Kubernetes{Cluster: "eu-1", Image: "cache:{image_tag}"}},
	} {
		t.Run(name, func(t *testing.T) {
			a, in := Account{ID: "acme"}, Intent{Server: Server{Account: "acme", Region: "eu", ImageTag: "v1"}, Ports: map[string]int{"cache/http": 20001}}
			for what, err := range map[string]error{"account": a.Validate(), "region": r.Validate(), "with defaults": r.WithDefaults().Validate(), "server": in.Validate(), "in its region": in.ValidateIn(r)} {
				if err != nil {
					t.Errorf("%s: %v", what, err)
				}
			}
			made := render(t, staging(t), a, r, in, Deployment{ImageTag: "v1"})
			in.ImageTag = "v2"
			bumped := render(t, staging(t), a, r, in, Deployment{ImageTag: "v2"})
			if made.Revision == bumped.Revision || made.Instance != bumped.Instance || made.URL != bumped.URL {
				t.Errorf("made %+v\nbumped %+v", made, bumped)
			}
			if r.Containers == nil {
				if got := changedPaths(*made.Kubernetes, *bumped.Kubernetes); !slices.Equal(got, []string{"spec/image"}) {
					t.Errorf("an image bump changed %q", got)
				}
				return
			}
			was, is := made.Containers.Services[0], bumped.Containers.Services[0]
			if was.Image != "cache:v1" || is.Image != "cache:v2" || was.Digest == is.Digest {
				t.Errorf("made %+v\nbumped %+v", was, is)
			}
			was.Image, was.Digest = is.Image, is.Digest
			if d := cmp.Diff(was, is); d != "" {
				t.Errorf("an image bump changed more than the image:\n%s", d)
			}
		})
	}
}
