package main

import (
	"fmt"
	"io"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

func versionCommand() *cobra.Command {
	var (
		t      target
		remote bool
	)
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version, of the daemon too with --daemon",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintf(cmd.OutOrStdout(), "kurad %s (%s, %s/%s)\n", version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if !remote {
				return nil
			}
			c, err := t.client()
			if err != nil {
				return err
			}
			v, err := c.Version(cmd.Context())
			if err != nil {
				return err
			}
			printDaemon(cmd.OutOrStdout(), v)
			return nil
		},
	}
	t.flags(c)
	c.Flags().BoolVar(&remote, "daemon", false, "ask the daemon for its version too, who leads, and how its store does")
	return c
}

// printDaemon prints what a daemon says of itself.
func printDaemon(w io.Writer, v api.VersionInfo) {
	fmt.Fprintf(w, "daemon %s, environment %s, hosts end in %q\n", v.Version, v.Environment, v.Suffix)
	switch {
	case v.Leader.Self:
		fmt.Fprintln(w, "it leads")
	case v.Leader.URL != "":
		fmt.Fprintf(w, "another kurad leads, at %s\n", v.Leader.URL)
	default:
		fmt.Fprintln(w, "nobody leads: nothing is observed or changed")
	}
	for _, c := range v.Conditions {
		fmt.Fprintf(w, "%s=%s/%s %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
}
