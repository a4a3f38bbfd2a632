// Package runtime is what the runtimes have in common: whose an object is by its labels, how
// a flag names one of them, and the answers to a task that are nobody's but kurad's.
package runtime

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Owner tells whose an object is, by its labels.
type Owner struct{ Environment, Account, Region string }

// String names the owner for a person.
func (o Owner) String() string {
	switch {
	case o == Owner{}:
		return fleet.NotByKurad
	case o.Environment == "":
		return fmt.Sprintf("labelled for account %q, region %q and no environment", o.Account, o.Region)
	case o.Account == "" || o.Region == "":
		return "of no server of environment " + o.Environment
	default:
		return fmt.Sprintf("server %s/%s of environment %s", o.Account, o.Region, o.Environment)
	}
}

// Refuse is the outcome of a task that cannot be done as it is declared.
func Refuse(reason fleet.Reason, format string, args ...any) fleet.Outcome {
	return fleet.Outcome{Class: fleet.ClassRefused, Reason: reason, Answered: true, Message: fmt.Sprintf(format, args...)}
}

// Transient is the outcome of a task that is tried again.
func Transient(reason fleet.Reason, format string, args ...any) fleet.Outcome {
	return fleet.Outcome{Class: fleet.ClassTransient, Reason: reason, Answered: true, Message: fmt.Sprintf(format, args...)}
}

// Replan is the outcome of a task whose plan no longer fits what is there: what is planned
// next starts from a new observation.
func Replan(format string, args ...any) fleet.Outcome {
	return Transient(fleet.ReasonDrifted, format, args...)
}

// Foreign is the outcome of a task on what is not the server's.
func Foreign(what, owner string) fleet.Outcome {
	return Refuse(fleet.ReasonForeignInstance, "%s is %s; kurad does not touch it: remove or rename it, or choose another account id or cluster id", what, owner)
}

// LogUndone logs the outcome of a task that is not done.
func LogUndone(log hclog.Logger, key fleet.ServerKey, task fleet.Task, o fleet.Outcome) {
	if o.Class != fleet.ClassOK {
		log.Debug("task not done", "server", key, "task", task.ID, "kind", task.Kind, "class", o.Class, "reason", o.Reason, "message", o.Message)
	}
}

// OrNone lists names for a person.
func OrNone(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

// RefusedByTLS reports whether the other side ended the handshake with an alert: it does not
// accept our certificate, or asks for one. What of its own certificate does not verify is our
// refusal, and it counts as not reached.
func RefusedByTLS(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "remote error"
}

// nameFormat is what fleet takes for a name.
var nameFormat = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`)

// ParseFlag reads name=target[,key=value…]: how the command line names a runtime. Each part
// after the first is handed to set; form says how that first one is written.
func ParseFlag(flag, form string, set func(key, value string) error) (name, target string, err error) {
	first, _, _ := strings.Cut(flag, ",")
	name, target, _ = strings.Cut(first, "=")
	if name == "" || target == "" {
		return "", "", fmt.Errorf("begins with no %s", form)
	}
	if !nameFormat.MatchString(name) {
		return "", "", fmt.Errorf("the name %q may hold only lower-case letters, digits and -, begins and ends with a letter or digit, and has at most 63", name)
	}
	if _, err := fleet.ParseFlag(flag, set); err != nil {
		return "", "", err
	}
	return name, target, nil
}
