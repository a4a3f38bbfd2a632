package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

func clusterCommand() *cobra.Command {
	c := &cobra.Command{Use: "cluster", Short: "Show which Kubernetes clusters are observed, and accept another one"}
	c.AddCommand(clusterListCommand(), clusterAcceptCommand())
	return c
}

func clusterListCommand() *cobra.Command {
	return shows(&cobra.Command{
		Use:   "list",
		Short: "List the namespaces of clusters, with the UID that is observed and the one that is there",
		Args:  cobra.NoArgs,
	}, (*api.Client).Namespaces, printNamespaces)
}

func printNamespaces(w io.Writer, list []api.Namespace) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no region names a Kubernetes cluster")
		return
	}
	t := newTable(w, "Cluster", "Namespace", "Observed uid", "Uid now", "Servers", "Reason")
	for _, n := range list {
		t.AppendRow(table.Row{n.Cluster, n.Namespace, dash(n.UID), dash(n.Seen), n.Servers, dash(string(n.Reason))})
	}
	t.Render()
	for _, n := range list {
		if n.Message != "" {
			fmt.Fprintf(w, "namespace %s of cluster %s (%s): %s\n", n.Namespace, n.Cluster, n.Reason, n.Message)
		}
	}
}

func clusterAcceptCommand() *cobra.Command {
	var yes bool
	c := asks(&cobra.Command{
		Use:   "accept NAME",
		Short: "Let kurad act in a cluster that is not the one it has observed so far",
		Long: "A namespace is told apart by its UID. Where another one answers under the name of the one that was observed\n" +
			"(another cluster after a change of the kubeconfig, or the namespace was made anew), kurad does nothing there:\n" +
			"servers are Unknown/ClusterChanged. If that is a mistake, correct the kubeconfig. If it is meant, accept it.\n\n" +
			"From then on what the new namespace holds is what is there: every server of its regions is created in it,\n" +
			"servers that are being destroyed count as destroyed, and what the old one held is left behind for good.",
		Example: "  kurad cluster accept eu-1\n  kurad cluster accept eu-1 --yes",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *api.Client, args []string) error {
		all, err := c.Namespaces(cmd.Context())
		if err != nil {
			return err
		}
		var changed []api.Namespace
		for _, n := range all {
			if n.Cluster == args[0] && n.Changed() {
				changed = append(changed, n)
			}
		}
		if len(changed) == 0 {
			return fmt.Errorf("there is nothing to accept of cluster %q: none of its namespaces has another UID than before (kurad cluster list)", args[0])
		}
		printNamespaces(cmd.OutOrStdout(), changed)
		if !yes {
			return errors.New("nothing was changed: what is there now becomes what kurad acts in, and what was there is left behind; if that is meant, run the same with --yes")
		}
		for _, n := range changed {
			if err := c.AcceptNamespace(cmd.Context(), n.Cluster, n.Namespace, n.Seen); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "accepted: namespace %s of cluster %s\n", n.Namespace, n.Cluster)
		}
		return nil
	})
	c.Flags().BoolVar(&yes, "yes", false, "accept what is shown; without it nothing is changed")
	return c
}
