package fleet

import (
	"strings"
	"testing"
)

var someDigest = "sha256:" + strings.Repeat("ab", 32)

func TestH7_tagOfObservedImage(t *testing.T) {
	for ref, want := range map[string]string{
		"kura:1.2":                               "1.2",
		"registry.dev/kura/cache:v1.2_3-x":       "v1.2_3-x",
		"localhost:5001/x:1":                     "1",
		"localhost:5001/x":                       "",
		"localhost:5001/x:1@" + someDigest:       "1",
		"localhost:5001/x@" + someDigest:         "",
		"kura@" + someDigest:                     "",
		"kura":                                   "",
		"kura:":                                  "",
		"kura:a b":                               "",
		"":                                       "",
		"registry.dev:443/a/b/c:latest":          "latest",
		someDigest:                               "", // the bare id of an image whose tag has moved
		"docker.io/library/kura:" + longTag(128): longTag(128),
		"docker.io/library/kura:" + longTag(129): "",
		"docker-daemon:kura:1":                   "",
		"registry.dev/kura:1.2@sha256:notadigest!": "1.2",
	} {
		got, ok := TagOf(ref)
		if got != want || ok != (want != "") {
			t.Errorf("TagOf(%q): got %q, %v, want %q", ref, got, ok, want)
		}
	}
}

func TestP23_whatIsNamedByItsContentAlone(t *testing.T) {
	for ref, want := range map[string]bool{
		someDigest: true, "kura@" + someDigest: true, "localhost:5001/kura/cache@" + someDigest: true,
		"kura:1@" + someDigest: false, "kura:1": false, "kura": false, "": false, "kura@": false, "kura@latest": false,
	} {
		if got := ByDigest(ref); got != want {
			t.Errorf("ByDigest(%q): got %v", ref, got)
		}
	}
}

func longTag(n int) string { return strings.Repeat("t", n) }

func TestH7_imageTagsAreChecked(t *testing.T) {
	for _, good := range []string{"1", "1.2.0", "v1", "_x", "A-b.c_d", "latest", longTag(128)} {
		if err := CheckImageTag(good); err != nil {
			t.Errorf("CheckImageTag(%q): %v", good, err)
		}
	}
	for tag, want := range map[string]string{
		"":                "required",
		"1 2":             "correct it",
		".1":              "starts with a letter",
		"-1":              "starts with a letter",
		"1/2":             "tag alone",
		"kura:1":          "tag alone",
		someDigest:        "tag alone",
		"1@" + someDigest: "tag alone",
		longTag(129):      "129 characters",
		"ü":               "starts with a letter",
		"1\n":             "correct it",
	} {
		wantError(t, CheckImageTag(tag), want)
	}
}

func TestH7_imagesAreParsed(t *testing.T) {
	for ref, want := range map[string]ImageRef{
		"kura":                                 {Repository: "kura"},
		"kura:1":                               {Repository: "kura", Tag: "1"},
		"kura/cache:1":                         {Repository: "kura/cache", Tag: "1"},
		"localhost/kura:1":                     {Registry: "localhost", Repository: "kura", Tag: "1"},
		"localhost:5001/x:1":                   {Registry: "localhost:5001", Repository: "x", Tag: "1"},
		"localhost:5001/x":                     {Registry: "localhost:5001", Repository: "x"},
		"[::1]:5000/x:1":                       {Registry: "[::1]:5000", Repository: "x", Tag: "1"},
		"ghcr.io/a/b_c/d-e.f:v1@" + someDigest: {Registry: "ghcr.io", Repository: "a/b_c/d-e.f", Tag: "v1", Digest: someDigest},
		"kura@" + someDigest:                   {Repository: "kura", Digest: someDigest},
	} {
		got, err := ParseImage(ref)
		if err != nil || got != want {
			t.Errorf("ParseImage(%q): got %+v, %v, want %+v", ref, got, err, want)
		}
	}
	for ref, want := range map[string]string{
		"":                                 "no repository",
		"Kura:1":                           "no repository",
		"kura:":                            "no tag",
		"kura: 1":                          "no tag",
		"kura:1:2":                         "no repository",
		"a b":                              "no repository",
		"kura@sha256:12":                   "no digest",
		"kura@" + someDigest + "00":        "no digest",
		"kura@":                            "no digest",
		"ghcr.io/":                         "no repository",
		"-x.io/kura":                       "no registry",
		"x.io:port/kura":                   "no registry",
		"/kura":                            "no repository",
		"kura//cache":                      "no repository",
		"https://ghcr.io/kura":             "no registry",
		"x.io/" + strings.Repeat("a", 256): "at most 255",
	} {
		_, err := ParseImage(ref)
		wantError(t, err, want, "write one such as")
	}
}

func TestH7_oneImageHasSeveralReferences(t *testing.T) {
	for _, same := range [][2]string{
		{"kura:1", "kura:1"},
		{"kura:1", "docker.io/library/kura:1"},
		{"kura:1", "localhost/kura:1"},
		{"ghcr.io/kura/cache:1", "mirror.dev:5000/kura/cache:1"},
		{"ghcr.io/kura/cache:1", "mirror.dev:5000/hub/kura/cache:1@" + someDigest},
		{"envoy", "docker.io/library/envoy:latest"},
		{"envoy@" + someDigest, "docker.io/library/envoy:latest"},
	} {
		if !SameImage(same[0], same[1]) || !SameImage(same[1], same[0]) {
			t.Errorf("%s and %s are two images, want one", same[0], same[1])
		}
	}
	for _, differ := range [][2]string{
		{"kura:1", "kura:2"},
		{"kura:1", "kura"},
		{"kura:1", "postgres:1"},
		{"kura:1", "mykura:1"},
		{"ghcr.io/kura/cache:1", "ghcr.io/other/cache:1"},
		{"kura:1", someDigest},
		{"", ""},
	} {
		if SameImage(differ[0], differ[1]) || SameImage(differ[1], differ[0]) {
			t.Errorf("%s and %s are one image, want two", differ[0], differ[1])
		}
	}
}
