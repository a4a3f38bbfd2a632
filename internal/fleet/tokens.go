package fleet

import (
	"fmt"
	"strconv"
	"strings"
)

// expand replaces every {token} of s by its value. {{ is a brace; a closing brace
// that closes nothing stands for itself.
func expand(s string, value func(token string) (string, error)) (string, error) {
	if !strings.Contains(s, "{") {
		return s, nil
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(s, "{")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		if after, brace := strings.CutPrefix(rest, "{"); brace {
			b.WriteByte('{')
			s = after
			continue
		}
		token, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", fmt.Errorf("%s opens a token that is never closed; close it with %q, or write {{ for a brace", quote("{"+rest), "}")
		}
		v, err := value(token)
		if err != nil {
			return "", err
		}
		b.WriteString(v)
		s = after
	}
}

// Tokens of a service's strings; those of a host are among them.
const (
	tokenAccountHandle = "account_handle"
	tokenClusterID     = "cluster_id"
	tokenEnvSuffix     = "env_suffix"
	tokenRegion        = "region"
	tokenImageTag      = "image_tag"
	tokenAccount       = "account"
	tokenEnvironment   = "environment"
	tokenInstance      = "instance"
	tokenPublicHost    = "public_host"
	tokenGRPCHost      = "grpc_host"
	tokenGlobalHost    = "global_host"
	tokenPort          = "port:" // and the name of a port of the same service
)

// tokenValues are what the tokens of one service stand for.
type tokenValues struct {
	text  map[string]string
	ports map[string]int // host ports by port name
}

func (v tokenValues) lookup(token string) (string, error) {
	if name, ok := strings.CutPrefix(token, tokenPort); ok {
		port, known := v.ports[name]
		if !known {
			return "", fmt.Errorf("%s names no port of this service (%s); declare the port or correct the name", quote("{"+token+"}"), either(sortedKeys(v.ports), "it has none"))
		}
		return strconv.Itoa(port), nil
	}
	s, known := v.text[token]
	if !known {
		return "", unknownToken(token, append(sortedKeys(v.text), tokenPort+"<name>"), orBrace)
	}
	if s == "" && token != tokenEnvSuffix {
		return "", fmt.Errorf("{%s} has no value, for the region declares no such host; declare it in hosts or leave the token out", token)
	}
	return s, nil
}

// orBrace ends the error where braces may be meant.
const orBrace = ", or {{ for a brace"

func unknownToken(token string, known []string, or string) error {
	return fmt.Errorf("%s is no known token; use {%s}%s", quote("{"+token+"}"), strings.Join(known, "} {"), or)
}

// either lists names, or says what it means that there are none.
func either(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	return "it has " + strings.Join(names, ", ")
}
