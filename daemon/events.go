package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func eventsCommand() *cobra.Command {
	var (
		t      target
		limit  int
		output string
	)
	c := &cobra.Command{
		Use:   "events [account/region]",
		Short: "Show what happened, the newest last",
		Args:  cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if output != "table" && output != "json" {
				return fmt.Errorf("--output %q is neither table nor json", output)
			}
			if limit < 1 {
				return fmt.Errorf("--limit %d is not at least 1", limit)
			}
			c, err := t.client()
			if err != nil {
				return err
			}
			filter := api.EventFilter{Limit: limit}
			if len(args) == 1 {
				key, err := fleet.ParseServerKey(args[0])
				if err != nil {
					return err
				}
				filter.Account, filter.Region = key.Account, key.Region
			}
			events, err := c.Events(cmd.Context(), filter)
			if err != nil {
				return err
			}
			slices.Reverse(events) // the API's are the newest first
			if output == "json" {
				return printJSON(cmd.OutOrStdout(), events)
			}
			if len(events) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "nothing has happened yet")
				return nil
			}
			printEvents(cmd.OutOrStdout(), events)
			return nil
		},
	}
	t.flags(c)
	c.Flags().IntVar(&limit, "limit", 50, "how many at most, the newest ones")
	c.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return c
}
