package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func dnsCommand() *cobra.Command {
	c := &cobra.Command{Use: "dns", Short: "Compare DNS zones with what servers want, clean them up, and take a host over"}
	c.AddCommand(dnsAuditCommand(), dnsPruneCommand(), dnsTakeCommand())
	return c
}

// findings says that a zone is not as the servers want it.
type findings struct{ what string }

func (e *findings) Error() string { return e.what }

func dnsAuditCommand() *cobra.Command {
	var (
		filter api.DNSFilter
		kind   string
		output string
	)
	c := asks(&cobra.Command{
		Use:   "audit [--zone ZONE] [--kind KIND]",
		Short: "Say what in the DNS zones is not as the servers want it",
		Long: "Compare the newest listing of each zone that kurad was given (serve --zone) with what servers want there:\n" +
			"hosts that somebody else has or that nobody has published, ownership records and hosts of this environment\n" +
			"that nobody wants, hosts with two owners, owner ids of two environments, load balancers that answer before\n" +
			"a record. Nothing is changed.\n\n" +
			"The command ends with code 7 where it found something, or where a zone could not be listed: what such a\n" +
			"zone has now is not known. Hosts of which nothing is wrong are counted; --kind wanted-ours lists them.",
		Example: "  kurad dns audit\n  kurad dns audit --zone kura.example.dev --kind wanted-foreign --output json",
		Args:    cobra.NoArgs,
	}, func(cmd *cobra.Command, c *api.Client, _ []string) error {
		if filter.Kind = fleet.FindingKind(kind); kind != "" && !slices.Contains(fleet.FindingKinds(), filter.Kind) {
			return usagef("--kind %q is none of %s", kind, strings.Join(kinds(), ", "))
		}
		a, err := c.DNSAudit(cmd.Context(), filter)
		if err != nil {
			return err
		}
		if err := show(cmd.OutOrStdout(), output, a, printDNSAudit); err != nil || a.Clean() {
			return err
		}
		return &findings{"the zones are not as the servers want them: " + dnsSummary(a)}
	})
	c.Flags().StringVar(&filter.Zone, "zone", "", "only this zone, by its domain")
	c.Flags().StringVar(&kind, "kind", "", "only this kind: "+strings.Join(kinds(), ", "))
	outputFlag(c, &output)
	return c
}

func kinds() (all []string) {
	for _, k := range fleet.FindingKinds() {
		all = append(all, string(k))
	}
	return all
}

// printDNSAudit is an audit as a table, and what was counted.
func printDNSAudit(w io.Writer, a api.DNSAudit) {
	if len(a.Zones) == 0 {
		fmt.Fprintln(w, "this kurad was given no DNS zone (serve --zone)")
		return
	}
	printFindings(w, a.Items)
	if len(a.Items) > 0 {
		fmt.Fprintln(w)
	}
	for _, z := range a.Zones {
		listed := "never listed"
		if z.Listed != nil {
			listed = "listed " + age(*z.Listed) + " ago"
		}
		fmt.Fprintf(w, "zone %s: %s\n", z.Zone, listed)
	}
	printUnlisted(w, a.Zones)
	fmt.Fprintln(w, dnsSummary(a))
}

// printFindings is one line for each host and what was found of it.
func printFindings(w io.Writer, list []fleet.Finding) {
	if len(list) == 0 {
		return
	}
	t := newTable(w, "Host", "Found", "Owner", "For", "Leads to", "Why")
	for _, f := range list {
		made := f.Resource // by external-dns it may be another application's
		if f.Account != "" {
			made = strings.TrimSuffix(f.Server().String(), "/")
		}
		t.AppendRow(table.Row{f.Host, paintFinding(w, f), dash(strings.Join(f.Owners, ", ")), dash(made), dash(strings.Join(f.Contents, "\n")), text.WrapSoft(f.Why, 60)})
	}
	t.Render()
}

func paintFinding(w io.Writer, f fleet.Finding) string {
	switch f.Kind {
	case fleet.FindingOurs:
		return colour(w, text.FgGreen, string(f.Kind))
	case fleet.FindingForeign, fleet.FindingTwoOwners, fleet.FindingSharedOwner, fleet.FindingBalancerShadow, fleet.FindingBareRecord:
		return colour(w, text.FgRed, string(f.Kind))
	case fleet.FindingAbsent, fleet.FindingUnreadable, fleet.FindingUnread, fleet.FindingStale, fleet.FindingUnwanted, fleet.FindingBareTXT, fleet.FindingBalancer, fleet.FindingPool:
		return colour(w, text.FgYellow, string(f.Kind))
	}
	return string(f.Kind)
}

// printUnlisted says which zones cannot be listed, a line each.
func printUnlisted(w io.Writer, list []fleet.AuditedZone) {
	for _, z := range list {
		if z.Reason == "" {
			continue
		}
		since := ""
		if z.Since != nil {
			since = " for " + age(*z.Since)
		}
		fmt.Fprintf(w, "zone %s cannot be listed%s (%s): %s; what it has now is not known\n", z.Zone, since, z.Reason, z.Message)
	}
}

// dnsSummary counts what was found, in the order of the kinds.
func dnsSummary(a api.DNSAudit) string {
	parts := []string{fmt.Sprintf("%d %s", a.Counts[fleet.FindingOurs], fleet.FindingOurs)}
	for _, k := range fleet.FindingKinds() {
		if n := a.Counts[k]; n > 0 && k != fleet.FindingOurs {
			parts = append(parts, fmt.Sprintf("%d %s", n, k))
		}
	}
	unlisted := 0
	for _, z := range a.Zones {
		if z.Reason != "" {
			unlisted++
		}
	}
	if unlisted > 0 {
		parts = append(parts, fmt.Sprintf("zones not listed: %d", unlisted))
	}
	return strings.Join(parts, ", ")
}

func dnsPruneCommand() *cobra.Command {
	var (
		r   fleet.PruneRequest
		yes bool
	)
	c := asks(&cobra.Command{
		Use:   "prune [--zone ZONE] [--host HOST] [--yes]",
		Short: "Delete hosts of this environment that no server wants",
		Long: "Delete the records and ownership records that are this environment's and that no server wants. What would be\n" +
			"deleted is shown; with --yes it is deleted, as far as a listing that is made then says the same. What somebody\n" +
			"else owns, or nobody, is never touched. Each host that is deleted is in the audit log and, where its server is\n" +
			"known, in the server's events.",
		Example: "  kurad dns prune\n  kurad dns prune --zone kura.example.dev --yes",
		Args:    cobra.NoArgs,
	}, func(cmd *cobra.Command, c *api.Client, _ []string) error {
		w := cmd.OutOrStdout()
		would, err := c.PruneDNS(cmd.Context(), r, true)
		if err != nil {
			return err
		}
		printFindings(w, would.Items)
		printUnlisted(w, would.Unreadable)
		printKept(w, would.Kept)
		if len(would.Items) == 0 {
			fmt.Fprintln(w, "there is nothing to delete")
			return unlisted(would.Unreadable)
		}
		if !yes {
			return errors.New("nothing was changed: to delete what is shown, run the same with --yes")
		}
		return pruneAll(cmd, c, would.Items)
	})
	c.Flags().StringVar(&r.Zone, "zone", "", "only this zone, by its domain; by default all")
	c.Flags().StringArrayVar(&r.Hosts, "host", nil, "only this host; repeatable; by default all")
	c.Flags().BoolVar(&yes, "yes", false, "delete what is shown; without it nothing is changed")
	return c
}

func printKept(w io.Writer, list []fleet.KeptHost) {
	for _, k := range list {
		fmt.Fprintf(w, "left alone: %s: %s\n", fleet.Printable(k.Host), fleet.Printable(k.Why))
	}
}

// unlisted is the error of zones of which nothing is known.
func unlisted(zones []fleet.AuditedZone) error {
	if len(zones) == 0 {
		return nil
	}
	return &findings{"not every zone could be listed; of those nothing was deleted"}
}

// pruneAll deletes the hosts that were shown, zone by zone and so many at a time.
func pruneAll(cmd *cobra.Command, c *api.Client, shown []fleet.Finding) error {
	w := cmd.OutOrStdout()
	hosts := map[string][]string{}
	var zones []string
	for _, f := range shown {
		if hosts[f.Zone] == nil {
			zones = append(zones, f.Zone)
		}
		if !slices.Contains(hosts[f.Zone], f.Host) {
			hosts[f.Zone] = append(hosts[f.Zone], f.Host)
		}
	}
	var left []fleet.AuditedZone
	for _, zone := range zones {
		for part := range slices.Chunk(hosts[zone], api.MaxPage) {
			done, err := c.PruneDNS(cmd.Context(), fleet.PruneRequest{Zone: zone, Hosts: part}, false)
			if err != nil {
				return err
			}
			for _, f := range done.Items {
				fmt.Fprintf(w, "deleted: %s\n", f.Host)
			}
			printKept(w, done.Kept)
			left = append(left, done.Unreadable...)
		}
	}
	printUnlisted(w, left)
	return unlisted(left)
}

func dnsTakeCommand() *cobra.Command {
	var (
		request fleet.TakeRequest
		yes     bool
	)
	c := asks(&cobra.Command{
		Use:   "take HOST --from OWNER [--yes]",
		Short: "Move a host that a server wants from another owner to this environment",
		Long: "Make a host this environment's that somebody else owns, on purpose: its ownership records then name the owner id\n" +
			"of the region of the server that wants it. Both sides are shown; with --yes it is done, where the owner is exactly\n" +
			"OWNER then, too. Stop whoever owns it from publishing it first: of two that publish one host, nobody wins.",
		Example: "  kurad dns take acme-eu.kura.example.dev --from production\n  kurad dns take acme-eu.kura.example.dev --from production --yes",
		Args:    cobra.ExactArgs(1),
	}, func(cmd *cobra.Command, c *api.Client, args []string) error {
		w := cmd.OutOrStdout()
		request.Host = strings.TrimSuffix(strings.ToLower(args[0]), ".")
		would, err := c.TakeHost(cmd.Context(), request, true)
		if err != nil {
			return err
		}
		if !would.Changed {
			fmt.Fprintf(w, "host %s is owner %s's already: nothing is changed\n", would.Host, would.To)
			return nil
		}
		printTaken(w, would)
		if !yes {
			return fmt.Errorf("nothing was changed: host %s would be owner %s's and no longer %s's; if that is meant, run the same with --yes", would.Host, would.To, would.From)
		}
		done, err := c.TakeHost(cmd.Context(), request, false)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "taken: host %s is owner %s's now, for server %s/%s\n", done.Host, done.To, done.Account, done.Region)
		return nil
	})
	c.Flags().StringVar(&request.From, "from", "", "owner id whose host it is now, as kurad dns audit shows it")
	c.Flags().BoolVar(&yes, "yes", false, "do it; without it nothing is changed")
	_ = c.MarkFlagRequired("from") // fails only for a flag that is not there
	return c
}

// printTaken shows a host as it is and as it would be.
func printTaken(w io.Writer, v fleet.Taken) {
	t := newTable(w, "", "Name", "Type", "Content")
	for _, side := range []struct {
		name string
		list []fleet.DNSRecord
	}{{"is", v.Before}, {"becomes", v.After}} {
		for _, r := range side.list {
			t.AppendRow(table.Row{side.name, fleet.Printable(r.Name), r.Type, text.WrapSoft(fleet.Printable(r.Content), 80)})
		}
	}
	t.Render()
}
