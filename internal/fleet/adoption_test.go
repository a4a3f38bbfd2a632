package fleet

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAdoption_makesTheVeryContainerTheServersOwnAndNoOther(t *testing.T) {
	key := ServerKey{Account: "acme", Region: "eu"}
	a := Adoption{ID: "1", Name: "by-hand", Digest: "d"}
	there := Container{ID: "1", Name: "by-hand", Image: "localhost/kura:v1", State: ContainerRunning, Foreign: NotByKurad}
	want := there
	want.Foreign, want.Account, want.Region, want.Service, want.Digest, want.Adopted = "", "acme", "eu", "cache", "d", true
	got, ours := a.Ours(key, "cache", there)
	if d := cmp.Diff(want, got); d != "" || !ours {
		t.Errorf("ours %t (-want +got):\n%s", ours, d)
	}
	other, labelled := there, there
	other.ID, labelled.Foreign = "2", "server acme/eu of environment production"
	for _, c := range []Container{other, labelled, want} {
		if got, ours := a.Ours(key, "cache", c); ours || cmp.Diff(c, got) != "" {
			t.Errorf("%+v was made %+v", c, got)
		}
	}
}

func TestService_carriesTheTagWhereItsImageSaysSo(t *testing.T) {
	for image, want := range map[string]bool{"r/kura:{image_tag}": true, "r/proxy:1": false, "r/kura:{{image_tag}": false, "r/kura:{region}": false} {
		if got := (Service{Image: image}).Carries(); got != want {
			t.Errorf("%s carries the tag: %t, want %t", image, got, want)
		}
	}
}
