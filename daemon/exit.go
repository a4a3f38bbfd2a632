package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agext/levenshtein"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Exit codes, for scripts. `kurad help exit-codes` explains them.
const (
	exitError        = 1
	exitUsage        = 2
	exitNotFound     = 3
	exitRefused      = 4
	exitNoAnswer     = 5
	exitNotConverged = 6
	exitFindings     = 7
	exitInterrupted  = 130
)

// exitCodesTopic is a help topic.
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean, for scripts",
		Long: `Every command ends with one of these:

  0    it was done
  1    it failed, for a reason that is none of the following
  2    the command line, or what it asks for, is not valid
  3    the server, account, region or token does not exist
  4    refused: no valid token, its scope does not cover this, or too many logins failed
  5    kurad does not answer, or not yet
  6    not converged: kurad status --exit-code, and kurad wait
  7    kurad dns audit found something, or a zone cannot be listed
  130  interrupted

A pipeline that applies and then waits:

  kurad wait acme/eu --timeout 15m || { kurad status acme/eu; exit 1; }`,
	}
}

// usageError says that the command line is wrong.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// notConverged says that servers are not as they were declared.
type notConverged struct{ what string }

func (e *notConverged) Error() string { return e.what }

// is reports whether an error of the type is in err's chain.
func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// exitCode is the one place where an error becomes an exit code.
func exitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case is[*usageError](err):
		return exitUsage
	case is[*notConverged](err):
		return exitNotConverged
	case is[*findings](err):
		return exitFindings
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, context.DeadlineExceeded):
		return exitNoAnswer
	case !is[*fleet.Error](err):
		return exitError
	}
	switch fleet.CodeOf(err) {
	case fleet.CodeInvalid, fleet.CodeTooLarge, api.CodeWrongEnvironment:
		return exitUsage
	case fleet.CodeNotFound:
		return exitNotFound
	case fleet.CodeUnauthorized, fleet.CodeForbidden, api.CodeRateLimited:
		return exitRefused
	case fleet.CodeUnavailable:
		return exitNoAnswer
	case fleet.CodeConflict, fleet.CodePrecondition, fleet.CodeInternal:
		return exitError
	}
	return exitError
}

// strict makes every mistake in a command line a usage error that says what would be right.
func strict(c *cobra.Command) {
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		word, names := "", []string(nil)
		if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && len(unknown.GetSpecifiedName()) > 1 {
			word = "--" + unknown.GetSpecifiedName()
			c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		}
		return usagef("%w; %s`%s --help` lists the flags", err, didYouMean(word, names), c.CommandPath())
	})
	switch args := c.Args; {
	case c.HasSubCommands() && !c.Runnable():
		c.Args = cobra.ArbitraryArgs
		c.RunE = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.Help()
			}
			var names []string
			for _, sub := range c.Commands() {
				names = append(names, sub.Name())
			}
			return usagef("%s has no command %q; %s`%s --help` lists the commands", c.CommandPath(), args[0], didYouMean(args[0], names), c.CommandPath())
		}
	case args != nil:
		c.Args = func(c *cobra.Command, given []string) error {
			// Cobra asks for required flags later, and would not say that the command line is wrong.
			if err := cmp.Or(args(c, given), c.ValidateRequiredFlags()); err != nil {
				return usagef("%w; write it as: %s", err, c.UseLine())
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		strict(sub)
	}
}

// didYouMean names up to three of what was probably meant, the likeliest first; "": none is
// like the word.
func didYouMean(word string, names []string) string {
	distance := func(name string) int { return levenshtein.Distance(word, name, nil) }
	like := slices.DeleteFunc(names, func(name string) bool { return distance(name) > max(1, len(word)/3) })
	slices.SortFunc(like, func(a, b string) int { return cmp.Or(cmp.Compare(distance(a), distance(b)), strings.Compare(a, b)) })
	if len(like) == 0 {
		return ""
	}
	return "did you mean " + strings.Join(like[:min(len(like), 3)], " or ") + "? "
}
