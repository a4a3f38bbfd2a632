package main

import (
	"cmp"
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

func orphansCommand() *cobra.Command {
	return shows(&cobra.Command{
		Use:   "orphans",
		Short: "List containers and KuraInstances of this environment that belong to no declared server",
		Long: "List containers and KuraInstances that carry this environment's labels and belong to no declared\n" +
			"server: its record was lost. Declare the server again, and it goes on with what is there\n" +
			"as it is; or remove what nobody needs with the engine's or the cluster's own tools.\n\n" +
			"Nothing removes containers. A KuraInstance is deleted after --orphan-period where its Kubernetes region has\n" +
			"delete_orphans = true, and is neither paused nor observing; it is listed with \"deleted soon\" until then.",
		Args: cobra.NoArgs,
	}, (*api.Client).Orphans, printOrphans)
}

func printOrphans(w io.Writer, o api.Orphans) {
	if len(o.Items) > 0 {
		t := newTable(w, "Where", "Name", "Id", "State", "Image", "Server", "Service", "Seen for")
		for _, c := range o.Items {
			since := "-"
			if c.Since != nil {
				since = age(*c.Since)
			}
			if c.Deletes {
				since += ", deleted soon"
			}
			where, id := c.Endpoint, short(c.ID)
			if c.Cluster != "" {
				where, id = c.Cluster+"/"+c.Namespace, c.ID // a uid is one as a whole
			}
			t.AppendRow(table.Row{where, c.Name, id, dash(cmp.Or(string(c.State), c.Phase)), dash(c.Image), c.Account + "/" + c.Region, dash(c.Service), since})
		}
		t.Render()
	}
	printUnreadable(w, o.Unreadable)
	if len(o.Items) == 0 && len(o.Unreadable) == 0 {
		fmt.Fprintln(w, "no orphans: every container and KuraInstance of this environment belongs to a declared server")
	}
}

// printUnreadable says what does not answer kurad, a line each.
func printUnreadable(w io.Writer, list []api.UnreadableEndpoint) {
	for _, u := range list {
		since := ""
		if u.Since != nil {
			since = " for " + age(*u.Since)
		}
		what := "endpoint " + u.Endpoint
		if u.Cluster != "" {
			what = fmt.Sprintf("namespace %s of cluster %s", u.Namespace, u.Cluster)
		}
		fmt.Fprintf(w, "%s cannot be read%s (%s): %s; what it holds now is not known\n", what, since, u.Reason, u.Message)
	}
}
