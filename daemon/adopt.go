package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

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
		Use:   "adopt account/region [--image-tag TAG] [--container SERVICE=NAME]",
		Short: "Take what runs already over as a server's own: containers without labels, or a KuraInstance",
		Long: "Take what runs already over as a server's own, without a restart. The server is declared if it is\n" +
			"not yet.\n\n" +
			"In a container region these are running containers that carry no labels of kurad, by their ids. The\n" +
			"server keeps the host ports that they publish; a container of another name is renamed. The next\n" +
			"change of the image or of the region's document replaces it gracefully by one that carries labels.\n\n" +
			"In a Kubernetes region it is the KuraInstance of the server's name that somebody else made. Where\n" +
			"nothing else differs from what the server renders to, only its labels and annotations are changed;\n" +
			"where something does, the instance stays as it is until the declaration is applied.",
		Example: "  kurad adopt acme/eu --image-tag v1 --container cache=hand-made-cache\n" +
			"  kurad adopt acme/eu-central --dry-run",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := fleet.ParseServerKey(args[0])
			if err != nil {
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
			return show(cmd.OutOrStdout(), output, done, func(w io.Writer, done api.Written[fleet.ServerView]) {
				printAdopted(w, key, request, done)
			})
		},
	}
	t.flags(c)
	f := c.Flags()
	f.StringVar(&request.ImageTag, "image-tag", "", "tag that is declared: the one that the containers' image carries; of a KuraInstance it may be left out")
	f.StringToStringVar(&request.Containers, "container", nil, "container of a service, by its name or id: cache=hand-made-cache; repeatable")
	f.BoolVar(&request.DryRun, "dry-run", false, "say what would be taken over and how it differs, and change nothing")
	outputFlag(c, &output)
	return c
}

func printAdopted(w io.Writer, key fleet.ServerKey, request api.AdoptRequest, done api.Written[fleet.ServerView]) {
	what := fmt.Sprintf("%d container(s)", len(request.Containers))
	r := done.Object.Resource
	if r != nil {
		what = fmt.Sprintf("KuraInstance %s/%s, version %s", r.Namespace, r.Name, done.Object.Intent.ImageTag)
	}
	switch {
	case !done.Changed:
		fmt.Fprintf(w, "server %s has it already: nothing is changed\n", key)
		return
	case request.DryRun:
		fmt.Fprintf(w, "server %s would adopt %s\n", key, what)
	default:
		fmt.Fprintf(w, "server %s adopted %s; `kurad status %s` shows when it is active\n", key, what, key)
	}
	if r == nil {
		return
	}
	for _, d := range r.Differs {
		fmt.Fprintf(w, "  %s: %s -> %s\n", d.Path, dash(d.Have), dash(d.Want))
	}
	if slices.ContainsFunc(r.Differs, func(d fleet.FieldDifference) bool { return !strings.HasPrefix(d.Path, "metadata.") }) {
		fmt.Fprintln(w, "it stays as it is until the declaration is applied (tofu apply)")
	}
}
