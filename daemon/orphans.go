package main

import (
	"fmt"
	"io"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

func orphansCommand() *cobra.Command {
	var (
		t      target
		output string
	)
	c := &cobra.Command{
		Use:   "orphans",
		Short: "List containers of this environment whose server is not declared",
		Long: "List containers that carry this environment's labels and whose server is not declared: its record\n" +
			"was lost. Nothing removes them. Declare the server again, and it goes on with its containers\n" +
			"as they are; or remove what nobody needs with the engine's own tools.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := knownOutput(output); err != nil {
				return err
			}
			c, err := t.client()
			if err != nil {
				return err
			}
			orphans, err := c.Orphans(cmd.Context())
			if err != nil {
				return err
			}
			if output == "json" {
				return printJSON(cmd.OutOrStdout(), orphans)
			}
			printOrphans(cmd.OutOrStdout(), orphans)
			return nil
		},
	}
	t.flags(c)
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return c
}

func printOrphans(w io.Writer, o api.Orphans) {
	if len(o.Items) > 0 {
		t := newTable()
		t.AppendHeader(table.Row{"Endpoint", "Container", "Id", "State", "Image", "Server", "Service", "Seen for"})
		for _, c := range o.Items {
			since := "-"
			if c.Since != nil {
				since = age(*c.Since)
			}
			t.AppendRow(table.Row{c.Endpoint, c.Name, short(c.ID), c.State, c.Image, c.Account + "/" + c.Region, dash(c.Service), since})
		}
		render(w, t)
	}
	for _, u := range o.Unreadable {
		since := ""
		if u.Since != nil {
			since = " for " + age(*u.Since)
		}
		fmt.Fprintf(w, "endpoint %s cannot be read%s (%s): %s; what it holds now is not known\n", u.Endpoint, since, u.Reason, u.Message)
	}
	if len(o.Items) == 0 && len(o.Unreadable) == 0 {
		fmt.Fprintln(w, "no orphans: every container of this environment belongs to a declared server")
	}
}
