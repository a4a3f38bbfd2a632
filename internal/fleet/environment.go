package fleet

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
)

// EnvironmentProduction is the one environment without a suffix.
const EnvironmentProduction = "production"

// Environment is the environment that a daemon serves (H1). Suffixes holds every
// environment that shares the zone, itself included: hosts of one must never read
// like hosts of another (H2). The zero value renders nothing.
type Environment struct {
	Name     string
	Suffix   string
	Suffixes map[string]string
	// VariableSets holds the names of the variables of every set that the daemon was given,
	// by the set's name; never a value. nil: not known here, as in the provider.
	VariableSets map[string][]string
}

// DefaultSuffixes returns the suffixes of the built-in environments.
func DefaultSuffixes() map[string]string {
	return map[string]string{EnvironmentProduction: "", "staging": "-staging", "canary": "-canary"}
}

// NewEnvironment returns the named environment. A built-in one has its suffix; any
// other must bring its own, for an unknown environment must never fall through to
// production's hosts. others are further environments that share the zone.
func NewEnvironment(name, suffix string, others map[string]string) (Environment, error) {
	if err := checkLabel(name); err != nil {
		return Environment{}, Errorf(CodeInvalid, "environment %q: the name %v", name, err)
	}
	suffixes := DefaultSuffixes()
	if own, builtin := suffixes[name]; builtin {
		if suffix != "" && suffix != own {
			return Environment{}, Errorf(CodeInvalid, "environment %q: its suffix is always %q, not %q; leave the suffix out", name, own, suffix)
		}
		suffix = own
	}
	if err := addSuffix(suffixes, name, suffix); err != nil {
		return Environment{}, err
	}
	for _, other := range sortedKeys(others) {
		if err := checkLabel(other); err != nil {
			return Environment{}, Errorf(CodeInvalid, "environment %q, which shares the zone: the name %v", other, err)
		}
		if err := addSuffix(suffixes, other, others[other]); err != nil {
			return Environment{}, err
		}
	}
	return Environment{Name: name, Suffix: suffix, Suffixes: suffixes}, nil
}

// addSuffix adds an environment to the set of those that share a zone, in which no
// suffix ends in another.
func addSuffix(set map[string]string, name, suffix string) error {
	if have, ok := set[name]; ok {
		if have != suffix {
			return Errorf(CodeInvalid, "environment %q is declared with two suffixes, %q and %q; keep one", name, have, suffix)
		}
		return nil
	}
	if err := checkSuffix(suffix); err != nil {
		return Errorf(CodeInvalid, "environment %q: %v", name, err)
	}
	for _, other := range sortedKeys(set) {
		taken := set[other]
		if taken != "" && (strings.HasSuffix(suffix, taken) || strings.HasSuffix(taken, suffix)) {
			return Errorf(CodeInvalid, "environment %q: its suffix %q and %q of environment %q end in one another, so the two could render one host; choose another suffix", name, suffix, taken, other)
		}
	}
	set[name] = suffix
	return nil
}

var suffixFormat = regexp.MustCompile(`^-[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

func checkSuffix(suffix string) error {
	switch {
	case suffix == "":
		return fmt.Errorf("an environment other than production, staging and canary needs a suffix of its own, such as %q; without one its hosts would be production's", "-preview")
	case !strings.HasPrefix(suffix, "-"):
		return fmt.Errorf("its suffix %q does not start with %q; write %q", suffix, "-", "-"+suffix)
	case !suffixFormat.MatchString(suffix):
		return fmt.Errorf("its suffix %q must be %q, then a-z, 0-9 and %q, ending in a letter or digit", suffix, "-", "-")
	case len(suffix) > maxLabel-1:
		return fmt.Errorf("its suffix has %d characters and leaves none of a label's %d for anything else; shorten it", len(suffix), maxLabel)
	}
	// A container that waits to replace another bears the name of it and -next, and
	// -old once it is the replaced one; an environment of that suffix would bear the
	// same names.
	for _, step := range []string{suffixNext, suffixOld} {
		if strings.HasSuffix(suffix, step) {
			return fmt.Errorf("its suffix %q ends in %q, which names containers while they are replaced; choose another", suffix, step)
		}
	}
	return nil
}

// usable refuses an environment that was not made by NewEnvironment: one without a
// name or suffix would render production's hosts.
func (e Environment) usable() error {
	if e.Name == "" || (e.Suffix == "" && e.Name != EnvironmentProduction) {
		return Errorf(CodeInvalid, "environment %q has no suffix, so its hosts would be production's; declare one", e.Name)
	}
	return nil
}

// sharing returns the suffixes of all environments that share the zone.
func (e Environment) sharing() map[string]string {
	if e.Suffixes == nil {
		return DefaultSuffixes()
	}
	return e.Suffixes
}

// Collision returns the environment that a label, written without the suffix of e,
// would be mistaken for: its suffix is the end of the label.
func (e Environment) Collision(label string) (name, suffix string, found bool) {
	suffixes := e.sharing()
	for _, name := range sortedKeys(suffixes) {
		if suffix := suffixes[name]; suffix != "" && strings.HasSuffix(label, suffix) {
			return name, suffix, true
		}
	}
	return "", "", false
}

// unknownSet says that the daemon was not given a set of variables.
func (e Environment) unknownSet(name string) error {
	return fmt.Errorf("kurad was given no variable set named %s (known: %s); start it with --env-set for it, or correct the name", quote(name), cmp.Or(strings.Join(sortedKeys(e.VariableSets), ", "), "none"))
}
