package fleet

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
)

// DigestService returns the digest of a rendered container: the hash of its
// canonical JSON (P13). Keys of maps are sorted by encoding/json, ports by name and
// volumes by path; commands and variable sets keep their order, which means
// something. A field that is added later must be omitted while it is empty, or an
// upgraded daemon would replace every container.
func DigestService(d ServiceDocument) string {
	d.Ports = slices.SortedFunc(slices.Values(d.Ports), func(a, b PortDocument) int { return cmp.Compare(a.Name, b.Name) })
	d.Volumes = slices.SortedFunc(slices.Values(d.Volumes), func(a, b VolumeDocument) int { return cmp.Compare(a.Path, b.Path) })
	digest, err := hash(d)
	if err != nil {
		panic(fmt.Sprintf("fleet: service %q has no digest: %v", d.Service, err)) // Render refuses what does not marshal
	}
	return digest
}

// hash returns the hex SHA-256 of v's JSON. Only a number that JSON cannot write
// (NaN, infinity) is an error.
func hash(v any) (string, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:]), nil
}
