package fleet

import (
	"fmt"
	"regexp"
	"strings"
)

// maxInstance leaves room in a label for what runtimes append to an instance's name.
const maxInstance = 53

// Names of a container while it replaces another, and of the one that it replaces (C4).
const (
	suffixNext = "-next"
	suffixOld  = "-old"
)

// InstanceName returns the name of a server's instance, kura-<account id>-<cluster
// id> (H6). It is made of what never changes: a new handle or template leaves it (H8).
func InstanceName(accountID, clusterID string) (string, error) {
	if err := checkLabel(accountID); err != nil {
		return "", Errorf(CodeInvalid, "account %s: the id %v", quote(accountID), err)
	}
	if err := checkLabel(clusterID); err != nil {
		return "", Errorf(CodeInvalid, "account %s: the cluster id %v", quote(accountID), err)
	}
	name := "kura-" + accountID + "-" + clusterID
	if len(name) > maxInstance {
		return "", Errorf(CodeInvalid, "account %q: its instance %q would have %d characters, at most %d are allowed; shorten the region's cluster_id or use a shorter account id", accountID, name, len(name), maxInstance)
	}
	return name, nil
}

// Instance is the name of an account's instance in the region.
func (r Region) Instance(account string) (string, error) { return InstanceName(account, r.Cluster()) }

// ParseServerKey parses account/region.
func ParseServerKey(s string) (ServerKey, error) {
	account, region, found := strings.Cut(s, "/")
	if !found {
		return ServerKey{}, Errorf(CodeInvalid, "%s is not a server; write <account>/<region>, such as acme/eu-central", quote(s))
	}
	if err := checkLabel(account); err != nil {
		return ServerKey{}, Errorf(CodeInvalid, "%s is not a server: the account %v; write <account>/<region>, such as acme/eu-central", quote(s), err)
	}
	if err := checkLabel(region); err != nil {
		return ServerKey{}, Errorf(CodeInvalid, "%s is not a server: the region %v; write <account>/<region>, such as acme/eu-central", quote(s), err)
	}
	return ServerKey{Account: account, Region: region}, nil
}

var (
	serviceFormat = regexp.MustCompile(`^[a-z][a-z0-9]{0,19}$`)
	volumeFormat  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,30}$`)
)

// A container is named <instance>-<service><env suffix>, a volume likewise. Two of
// them are never equal, whoever declared them, because the last part can be told
// from what precedes it: it holds no dash; it is none of the parts that replacing
// appends; and it is not how a suffix of another environment ends, so what ends in a
// suffix is that environment's. Instances are unique (H4), suffixes do not end in
// one another (H2), so equal names are the same service of the same server.

func checkServiceName(s string) error { return builtin.checkService(s) }

func (e Environment) checkService(s string) error {
	if !serviceFormat.MatchString(s) {
		return fmt.Errorf("%s is no service name: it becomes a part of container names, so use a letter a-z, then at most 19 of a-z and 0-9, no %q", quote(s), "-")
	}
	return e.checkPart(s)
}

func (e Environment) checkVolume(s string) error {
	if !volumeFormat.MatchString(s) {
		return fmt.Errorf("%s is no volume name: it becomes a part of names on the endpoint, so use a letter a-z, then at most 30 of a-z, 0-9 and %q, no %q", quote(s), "_", "-")
	}
	return e.checkPart(s)
}

// builtin knows the environments that every daemon knows.
var builtin = Environment{Name: EnvironmentProduction, Suffixes: DefaultSuffixes()}

// checkPart refuses a service or volume name that reads like the end of another name.
func (e Environment) checkPart(s string) error {
	part := "-" + s
	if part == suffixNext || part == suffixOld {
		return fmt.Errorf("%q is reserved: containers bear it at the end of their name while they are replaced; choose another name", s)
	}
	suffixes := e.sharing()
	for _, name := range sortedKeys(suffixes) {
		if strings.HasSuffix(suffixes[name], part) {
			return fmt.Errorf("%q collides with environment %q: names that end in %q are its own; choose another name", s, name, suffixes[name])
		}
	}
	return nil
}
