package fleet

import (
	"fmt"
	"strings"
)

// Lengths of DNS names (H3).
const (
	maxLabel = 63
	maxHost  = 253
)

// HostInput is what the tokens of a host template stand for.
type HostInput struct {
	AccountHandle string
	ClusterID     string
	Region        string
}

// sampleHost is the shortest input there is.
var sampleHost = HostInput{AccountHandle: "x", ClusterID: "x", Region: "x"}

// CheckPattern checks a host template's pattern (H2): {env_suffix} stands exactly
// once, at the end of the leftmost label, and no token stands behind it, so that
// every host is one label under a zone that one wildcard certificate covers.
func CheckPattern(pattern string) error {
	if err := checkPattern(pattern); err != nil {
		return &Error{Code: CodeInvalid, Message: fmt.Sprintf("host pattern %s is not valid", quote(pattern)),
			Fields: []FieldError{{Pointer: "/pattern", Detail: err.Error()}}}
	}
	return nil
}

func checkPattern(pattern string) error {
	if pattern == "" {
		return fmt.Errorf("is required; write one such as {account_handle}-{cluster_id}{env_suffix}.kura.example.dev")
	}
	sample, err := expandHost(pattern, "", sampleHost)
	if err != nil {
		return err
	}
	const suffix = "{" + tokenEnvSuffix + "}"
	label, zone, dotted := strings.Cut(pattern, ".")
	switch n := strings.Count(pattern, suffix); {
	case !dotted:
		return fmt.Errorf("has no zone; add one behind the first label, such as %s", quote(pattern+".kura.example.dev"))
	case n == 0:
		return fmt.Errorf("holds no {env_suffix}, so every environment would render the same hosts; write it at the end of the first label")
	case n > 1:
		return fmt.Errorf("holds {env_suffix} %d times; write it once, at the end of the first label", n)
	case strings.Contains(zone, suffix):
		return fmt.Errorf("holds {env_suffix} behind the first label, so one wildcard certificate could not cover the hosts of all environments; write it at the end of the first label")
	case !strings.HasSuffix(label, suffix):
		return fmt.Errorf("holds {env_suffix} within the first label; write it at the label's end")
	case label == suffix:
		return fmt.Errorf("has nothing before {env_suffix}, so production's first label would be empty; write what names the server there")
	case strings.Contains(zone, "{"):
		return fmt.Errorf("holds a token behind the first label, so one wildcard certificate could not cover its hosts; write tokens in the first label only, and one template per zone")
	}
	return CheckHost(sample)
}

// RenderHost renders the host of a pattern in this environment. Handles are
// lower-cased and nothing else is rewritten (H5). A label that reads like another
// environment's is refused (H2).
func (e Environment) RenderHost(pattern string, in HostInput) (string, error) {
	if err := e.usable(); err != nil {
		return "", err
	}
	if err := CheckPattern(pattern); err != nil {
		return "", err
	}
	host, err := expandHost(pattern, e.Suffix, in)
	if err != nil {
		return "", Errorf(CodeInvalid, "host pattern %s cannot be rendered: %v", quote(pattern), err)
	}
	if err := CheckHost(host); err != nil {
		return "", Errorf(CodeInvalid, "host %s, rendered from %s, %v; shorten or change the handle, the cluster id or the pattern", quote(host), quote(pattern), err)
	}
	label, _, _ := strings.Cut(host, ".")
	if err := e.checkCollision(label, host); err != nil {
		return "", err
	}
	return host, nil
}

func (e Environment) checkCollision(label, host string) error {
	bare := strings.TrimSuffix(label, e.Suffix)
	other, suffix, found := e.Collision(bare)
	if !found {
		return nil
	}
	return Errorf(CodeInvalid, "host %q of environment %q collides with environment %q: %q ends in %q, as the host of %q does there; choose a handle, cluster id or pattern whose first label does not end in %q before {env_suffix}",
		host, e.Name, other, bare, suffix, strings.TrimSuffix(bare, suffix), suffix)
}

func expandHost(pattern, envSuffix string, in HostInput) (string, error) {
	return expand(pattern, func(token string) (string, error) {
		var v, what string
		switch token {
		case tokenEnvSuffix:
			return envSuffix, nil
		case tokenAccountHandle:
			v, what = lowerHandle(in.AccountHandle), "account handle"
		case tokenClusterID:
			v, what = in.ClusterID, "cluster id"
		case tokenRegion:
			v, what = in.Region, "region"
		default:
			return "", unknownToken(token, []string{tokenAccountHandle, tokenClusterID, tokenEnvSuffix, tokenRegion}, "")
		}
		if err := checkLabel(v); err != nil {
			return "", fmt.Errorf("the %s %w", what, err)
		}
		return v, nil
	})
}

// lowerHandle lower-cases ASCII only: what Unicode would fold into a letter is not
// the letter that was declared (H5).
func lowerHandle(s string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r + ('a' - 'A')
		}
		return r
	}, s)
}

// Zone returns the zone of a pattern: all behind its first label.
func Zone(pattern string) string {
	_, zone, _ := strings.Cut(pattern, ".")
	return zone
}

// StaleHost reports whether host is under zone without this environment's suffix
// (H9). Nothing is stale in production. It is a finding; who may delete such a
// host is decided by ownership.
func StaleHost(e Environment, zone, host string) bool {
	// DNS names compare without case, and an absolute one ends in a dot.
	host, zone = strings.TrimSuffix(lowerHandle(host), "."), strings.TrimSuffix(lowerHandle(zone), ".")
	if zone == "" {
		return false
	}
	name, under := strings.CutSuffix(host, "."+zone)
	return under && name != "" && !strings.HasSuffix(name, e.Suffix)
}

// CheckHost says what keeps a host from being a DNS name (H3).
func CheckHost(host string) error {
	if len(host) > maxHost {
		return fmt.Errorf("has %d characters; a host has at most %d", len(host), maxHost)
	}
	for label := range strings.SplitSeq(host, ".") {
		if err := checkLabel(label); err != nil {
			return fmt.Errorf("is no DNS name: a label %w", err)
		}
	}
	return nil
}

// checkLabel checks an RFC 1123 label in lower case; its texts follow the label's name.
func checkLabel(s string) error {
	if s == "" {
		return fmt.Errorf("is empty; it needs 1 to %d characters of a-z, 0-9 and %q", maxLabel, "-")
	}
	for i, r := range s {
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' {
			return fmt.Errorf("%s holds %q at character %d; use a-z, 0-9 and %q only", quote(s), string(r), len([]rune(s[:i]))+1, "-")
		}
	}
	switch {
	case len(s) > maxLabel:
		return fmt.Errorf("%s has %d characters; at most %d are allowed", quote(s), len(s), maxLabel)
	case strings.HasPrefix(s, "-"), strings.HasSuffix(s, "-"):
		return fmt.Errorf("%s starts or ends with %q; use a letter or digit there", quote(s), "-")
	}
	return nil
}
