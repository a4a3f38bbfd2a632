package fleet

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds that keep every record small (nothing that is stored is unbounded).
const (
	maxLabels     = 64
	maxLabelKey   = 128
	maxLabelValue = 256
	maxText       = 256
	// A declaration as JSON. It is stored, kept in memory and sent in every list: etcd takes
	// 1.5 MiB in one request, and a store of 2 GiB thirty thousand servers of this size.
	maxServer = 64 << 10
	maxRegion = 256 << 10
)

// reservedLabels begins the labels that the daemon writes itself.
const reservedLabels = "dev.kura/"

// Validate checks an account.
func (a Account) Validate() error {
	var v Invalid
	v.name("/id", a.ID)
	v.optional("/handle", lowerHandle(a.Handle), checkLabel)
	v.labels("/labels", a.Labels)
	return v.Err("account " + quote(a.ID))
}

// Validate checks a host template, and that its hosts can be told from those of the
// other environments of e.
func (t HostTemplate) Validate(e Environment) error {
	var v Invalid
	v.name("/name", t.Name)
	if err := checkPattern(t.Pattern); err != nil {
		v.note("/pattern", err)
	} else {
		v.note("/pattern", e.checkLiteral(t.Pattern))
	}
	return v.Err("host template " + quote(t.Name))
}

// checkLiteral refuses a pattern that renders in no case, whatever the tokens stand
// for: too long with this environment's suffix, or with a first label that ends in
// another's before {env_suffix}.
func (e Environment) checkLiteral(pattern string) error {
	if err := e.usable(); err != nil {
		return err
	}
	host, err := expandHost(pattern, e.Suffix, sampleHost)
	if err == nil {
		err = CheckHost(host)
	}
	if err != nil {
		return err
	}
	label, _, _ := strings.Cut(pattern, ".")
	bare := strings.TrimSuffix(label, "{"+tokenEnvSuffix+"}")
	tail := bare[strings.LastIndexByte(bare, '}')+1:]
	if other, suffix, found := e.Collision(tail); found {
		return fmt.Errorf("collides with environment %q: the first label ends in its suffix %q before {env_suffix}; write something else there", other, suffix)
	}
	return nil
}

// size bounds what a declaration takes as JSON; pointer is what most of it may be.
func (v *Invalid) size(pointer string, declared any, most int) {
	if b, err := json.Marshal(declared); err == nil && len(b) > most {
		v.Add(pointer, "takes %d bytes as JSON with all that is declared beside it; at most %d are allowed: put large values into a variable set of the daemon (env_from, --env-set), or into the image", len(b), most)
	}
}

// note adds a field error where there is an error.
func (v *Invalid) note(pointer string, err error) {
	if err != nil {
		v.Add(pointer, "%s", err)
	}
}

// name checks the name of another object.
func (v *Invalid) name(pointer, value string) { v.note(pointer, checkLabel(value)) }

// optional checks what need not be there.
func (v *Invalid) optional(pointer, value string, check func(string) error) {
	if value != "" {
		v.note(pointer, check(value))
	}
}

// required checks the name of what must be there; what says which one to write.
func (v *Invalid) required(pointer, name, what string) {
	if name == "" {
		v.Add(pointer, "is required; name %s", what)
		return
	}
	v.name(pointer, name)
}

// matches checks what need not be there against a format; fault says of the quoted value what it is not.
func (v *Invalid) matches(pointer, value string, format *regexp.Regexp, fault string) {
	if value != "" && !format.MatchString(value) {
		v.Add(pointer, "%s is no %s", quote(value), fault)
	}
}

// oneOf checks a closed set; empty takes the default.
func oneOf[T ~string](v *Invalid, pointer string, value T, allowed ...T) {
	if value == "" || slices.Contains(allowed, value) {
		return
	}
	var names []string
	for _, a := range allowed {
		names = append(names, quote(string(a)))
	}
	v.Add(pointer, "%s is not known; use %s", quote(string(value)), strings.Join(names, " or "))
}

func (v *Invalid) remediation(pointer string, r Remediation) {
	oneOf(v, pointer, r, RemediationHeal, RemediationObserve)
}

// number checks a whole number; 0 takes the default where least is 0.
func (v *Invalid) number(pointer string, n, least, most int) {
	if n < least || n > most {
		v.Add(pointer, "is %d; write a number from %d to %d", n, least, most)
	}
}

// duration checks a duration; 0 takes the default.
func (v *Invalid) duration(pointer string, d, least, most Duration) {
	if d != 0 && (d < least || d > most) {
		v.Add(pointer, "is %s; write a duration from %s to %s, such as %q", d, least.Short(), most.Short(), most.Short())
	}
}

// Label keys are as Kubernetes takes them, for they become labels there.
var labelKeyFormat = regexp.MustCompile(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)

func (v *Invalid) labels(pointer string, labels map[string]string) {
	v.boundedLabels(pointer, labels, maxLabelValue)
}

func (v *Invalid) boundedLabels(pointer string, labels map[string]string, maxValue int) {
	if len(labels) > maxLabels {
		v.Add(pointer, "has %d labels; at most %d are allowed", len(labels), maxLabels)
	}
	for _, key := range sortedKeys(labels) {
		at := join(pointer, key)
		switch {
		case len(key) > maxLabelKey || !labelKeyFormat.MatchString(key):
			v.Add(at, "%s is no label key; use at most %d of letters, digits and . _ -, starting and ending with a letter or digit, with an optional prefix such as example.com/", quote(key), maxLabelKey)
		case strings.HasPrefix(key, reservedLabels):
			v.Add(at, "labels that begin with %q are the daemon's own; use another key", reservedLabels)
		}
		v.text(at, labels[key], maxValue)
	}
}

// text checks a string that people read, or that a program is given in one line.
func (v *Invalid) text(pointer, s string, most int) {
	switch {
	case len(s) > most:
		v.Add(pointer, "has %d bytes; at most %d are allowed", len(s), most)
	case !utf8.ValidString(s):
		v.Add(pointer, "is not UTF-8 text")
	case strings.ContainsFunc(s, unicode.IsControl):
		v.Add(pointer, "holds a control character; remove it")
	}
}

// join appends parts to a JSON pointer (RFC 6901).
func join(pointer string, parts ...string) string {
	for _, p := range parts {
		pointer += "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(p)
	}
	return pointer
}
