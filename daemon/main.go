// Command kurad owns the intent of a fleet of regional cache servers: it observes them
// continuously, projects their status, heals them, rolls them forward, and serves the
// API that the Terraform provider, this command line and clients use.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set by the build.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		if !errors.Is(err, context.Canceled) {
			fmt.Fprintln(os.Stderr, "kurad:", err)
		}
		stop()
		os.Exit(exitCode(err))
	}
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "kurad",
		Short:         "Keeps a fleet of regional cache servers as it was declared",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(serveCommand(), statusCommand(), eventsCommand(), waitCommand(), tokenCommand(), auditCommand(), snapshotCommand(), adoptCommand(), orphansCommand(), dnsCommand(), clusterCommand(), versionCommand())
	root.AddCommand(exitCodesTopic())
	strict(root)
	complete(root)
	return root
}
