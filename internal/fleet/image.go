package fleet

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// ImageRef is an image reference in its parts. Nothing is filled in: an image
// without registry or tag has none.
type ImageRef struct {
	Registry   string // localhost:5001
	Repository string // kura/cache
	Tag        string
	Digest     string // sha256:…
}

var (
	tagFormat        = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
	registryFormat   = regexp.MustCompile(`^([A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*|\[[0-9a-fA-F:]+\])(:[0-9]{1,5})?$`)
	repositoryFormat = regexp.MustCompile(`^[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*)*$`)
	digestFormat     = regexp.MustCompile(`^[a-z0-9]+([+._-][a-z0-9]+)*:[0-9a-fA-F]{32,}$`)
	imageIDFormat    = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// maxImage bounds an image reference, its tag and digest aside.
const maxImage = 255

// ParseImage parses an image reference such as localhost:5001/kura/cache:1.2@sha256:… (H7).
func ParseImage(ref string) (ImageRef, error) {
	var out ImageRef
	fault := func(format string, args ...any) (ImageRef, error) {
		return ImageRef{}, Errorf(CodeInvalid, "%s is not an image: %s; write one such as registry.example.dev:5000/kura/cache:1.2", quote(ref), fmt.Sprintf(format, args...))
	}
	name, digest, has := strings.Cut(ref, "@")
	if has {
		if !digestFormat.MatchString(digest) || (strings.HasPrefix(digest, "sha256:") && !imageIDFormat.MatchString(digest)) {
			return fault("%s is no digest such as sha256:<64 hex digits>", quote(digest))
		}
		out.Digest = digest
	}
	// The last colon after the last slash begins the tag; one before it is a port.
	if i := strings.LastIndexByte(name, ':'); i > strings.LastIndexByte(name, '/') {
		out.Tag = name[i+1:]
		if !tagFormat.MatchString(out.Tag) {
			return fault("%s is no tag", quote(out.Tag))
		}
		name = name[:i]
	}
	out.Repository = name
	// As engines do: a first part with a dot or a port, or localhost, is a registry.
	if first, rest, has := strings.Cut(name, "/"); has && (strings.ContainsAny(first, ".:") || first == "localhost") {
		if !registryFormat.MatchString(first) {
			return fault("%s is no registry", quote(first))
		}
		out.Registry, out.Repository = first, rest
	}
	switch {
	case len(name) > maxImage:
		return fault("the name has %d characters, at most %d are allowed", len(name), maxImage)
	case !repositoryFormat.MatchString(out.Repository):
		return fault("%s is no repository (lower-case letters, digits and the separators . _ - /)", quote(out.Repository))
	}
	return out, nil
}

// TagOf returns the tag of an observed image: the text after the last slash,
// without @digest, after the colon. ok is false where there is none; no tag equals
// no desired tag (H7).
func TagOf(ref string) (tag string, ok bool) {
	// An engine shows the bare id of an image whose tag has moved on.
	if imageIDFormat.MatchString(ref) {
		return "", false
	}
	ref, _, _ = strings.Cut(ref, "@")
	ref = ref[strings.LastIndexByte(ref, '/')+1:]
	_, tag, _ = strings.Cut(ref, ":")
	if !tagFormat.MatchString(tag) {
		return "", false
	}
	return tag, true
}

// ByDigest reports whether an observed image is named by its content alone, an id or a
// digest, and not by a tag.
func ByDigest(ref string) bool {
	_, tagged := TagOf(ref)
	_, digest, _ := strings.Cut(ref, "@")
	return !tagged && (imageIDFormat.MatchString(ref) || digestFormat.MatchString(digest))
}

// SameImage reports whether two references name one image, digests aside. Engines write
// a name out (kura as docker.io/library/kura or localhost/kura), and mirrors put parts
// before it: what counts is that one repository ends with the other, and the tag.
func SameImage(a, b string) bool {
	x, errX := ParseImage(a)
	y, errY := ParseImage(b)
	if errX != nil || errY != nil || cmp.Or(x.Tag, latestTag) != cmp.Or(y.Tag, latestTag) {
		return false
	}
	return strings.HasSuffix("/"+x.Repository, "/"+y.Repository) || strings.HasSuffix("/"+y.Repository, "/"+x.Repository)
}

// latestTag is the tag of a reference that names none.
const latestTag = "latest"

// CheckImageTag checks a desired image tag (H7).
func CheckImageTag(tag string) error {
	switch {
	case tagFormat.MatchString(tag):
		return nil
	case tag == "":
		return Errorf(CodeInvalid, "an image tag is required; write the one to run, such as 1.2.0")
	case strings.ContainsAny(tag, ":@/"):
		return Errorf(CodeInvalid, "%s is not a tag: it looks like an image or a digest; write the tag alone, such as 1.2.0", quote(tag))
	case len(tag) > 128:
		return Errorf(CodeInvalid, "%s is not a tag: it has %d characters, at most 128 are allowed; use a shorter tag", quote(tag), len(tag))
	}
	return Errorf(CodeInvalid, "%s is not a tag: it starts with a letter, a digit or \"_\", then \".\" and \"-\" may follow too; correct it", quote(tag))
}
