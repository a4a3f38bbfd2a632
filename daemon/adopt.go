package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func adoptCommand() *cobra.Command {
	var (
		t       target
		request api.AdoptRequest
		output  string
	)
	c := &cobra.Command{
		Use:   "adopt account/region --image-tag TAG --container SERVICE=NAME",
		Short: "Take running containers that carry no labels over as a server's own",
		Long: "Take running containers that carry no labels of kurad over as a server's own, by their ids and\n" +
			"without a restart. The server is declared if it is not yet, and keeps the host ports that its\n" +
			"containers publish. A container of another name is renamed. The next change of the image or of\n" +
			"the region's document replaces it gracefully by one that carries labels.",
		Example: "  kurad adopt acme/eu --image-tag v1 --container cache=hand-made-cache",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := fleet.ParseServerKey(args[0])
			if err != nil {
				return err
			}
			if err := knownOutput(output); err != nil {
				return err
			}
			c, err := t.client()
			if err != nil {
				return err
			}
			done, err := c.Adopt(cmd.Context(), key, request)
			if err != nil {
				return err
			}
			if output == "json" {
				return printJSON(cmd.OutOrStdout(), done)
			}
			if !done.Changed {
				fmt.Fprintf(cmd.OutOrStdout(), "server %s has these containers already\n", key)
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "server %s adopted %d container(s); `kurad status %s` shows when it is active\n", key, len(request.Containers), key)
			return nil
		},
	}
	t.flags(c)
	f := c.Flags()
	f.StringVar(&request.ImageTag, "image-tag", "", "tag that the containers' image carries, and that is declared")
	f.StringToStringVar(&request.Containers, "container", nil, "container of a service, by its name or id: cache=hand-made-cache; repeatable")
	f.StringVarP(&output, "output", "o", "table", "table or json")
	for _, name := range []string{"image-tag", "container"} {
		_ = c.MarkFlagRequired(name) // fails only for a flag that is not there
	}
	return c
}
