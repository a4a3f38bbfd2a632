package main

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
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
			fmt.Fprintf(cmd.OutOrStdout(), "daemon %s, environment %s, hosts end in %q\n", v.Version, v.Environment, v.Suffix)
			return nil
		},
	}
	t.flags(c)
	c.Flags().BoolVar(&remote, "daemon", false, "ask the daemon for its version too")
	return c
}
