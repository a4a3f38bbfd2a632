package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"golang.org/x/term"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// statusOptions are the flags of status.
type statusOptions struct {
	target
	region, account string
	watch, fresh    bool
	output          string
}

func statusCommand() *cobra.Command {
	var o statusOptions
	c := &cobra.Command{
		Use:   "status [account/region]",
		Short: "Show what is wanted and what runs",
		Example: "  kurad status\n" +
			"  kurad status acme/eu --fresh\n" +
			"  kurad status --region eu --watch",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return showStatus(cmd.Context(), cmd.OutOrStdout(), o, args)
		},
	}
	o.flags(c)
	f := c.Flags()
	f.StringVar(&o.region, "region", "", "only servers of this region")
	f.StringVar(&o.account, "account", "", "only servers of this account")
	f.BoolVarP(&o.watch, "watch", "w", false, "show every change until interrupted")
	f.BoolVar(&o.fresh, "fresh", false, "read the runtime and probe the endpoint first (10 s at most)")
	f.StringVarP(&o.output, "output", "o", "table", "table or json")
	return c
}

func showStatus(ctx context.Context, w io.Writer, o statusOptions, args []string) error {
	if o.output != "table" && o.output != "json" {
		return fmt.Errorf("--output %q is neither table nor json", o.output)
	}
	c, err := o.client()
	if err != nil {
		return err
	}
	if len(args) == 1 {
		key, err := fleet.ParseServerKey(args[0])
		if err != nil {
			return err
		}
		return showServer(ctx, w, c, key, o)
	}
	show := func() error {
		list, err := c.ListServers(ctx, api.ServerFilter{Account: o.account, Region: o.region})
		if err != nil {
			return err
		}
		if o.fresh {
			if list, err = observed(ctx, c, list); err != nil {
				return err
			}
		}
		return printServers(w, list, o)
	}
	if err := show(); err != nil || !o.watch {
		return err
	}
	cursor := ""
	for ctx.Err() == nil {
		changes, err := c.WaitServers(ctx, o.region, cursor, 30*time.Second)
		if err != nil {
			return err
		}
		news := cursor != "" && (len(changes.Items) > 0 || len(changes.Gone) > 0)
		cursor = changes.Cursor
		if !news {
			continue
		}
		if err := show(); err != nil {
			return err
		}
	}
	return nil
}

// observed asks for a fresh observation of every server, a few at a time.
func observed(ctx context.Context, c *api.Client, list []fleet.ServerView) ([]fleet.ServerView, error) {
	fresh := make([]fleet.ServerView, len(list))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(8)
	for i, s := range list {
		g.Go(func() (err error) {
			fresh[i], err = c.GetServer(ctx, fleet.ServerKey{Account: s.Account, Region: s.Region}, api.GetOptions{ObserveNow: true})
			return err
		})
	}
	return fresh, g.Wait()
}

func showServer(ctx context.Context, w io.Writer, c *api.Client, key fleet.ServerKey, o statusOptions) error {
	s, err := c.GetServer(ctx, key, api.GetOptions{ObserveNow: o.fresh})
	if err != nil {
		return err
	}
	cursor := ""
	for {
		if err := printServer(ctx, w, c, s, o); err != nil || !o.watch {
			return err
		}
		for {
			change, err := c.WaitServer(ctx, key, cursor, 30*time.Second)
			if err != nil {
				return err
			}
			news := cursor != "" && change.Changed
			cursor = change.Cursor
			if news && change.Server == nil {
				fmt.Fprintf(w, "%s is gone\n", key)
				return nil
			}
			if news {
				s = *change.Server
				break
			}
		}
	}
}

func printServers(w io.Writer, list []fleet.ServerView, o statusOptions) error {
	if o.output == "json" {
		return printJSON(w, list)
	}
	if o.watch && isTerminal(w) {
		fmt.Fprint(w, "\x1b[H\x1b[2J")
	}
	if len(list) == 0 {
		fmt.Fprintln(w, "no servers are declared here")
		return nil
	}
	slices.SortFunc(list, func(a, b fleet.ServerView) int {
		return strings.Compare(a.Region+"/"+a.Account, b.Region+"/"+b.Account)
	})
	t := newTable(w)
	t.AppendHeader(table.Row{"Server", "Verdict", "Reason", "Desired", "Observed", "Serving", "Ready", "For", "Seen"})
	for _, s := range list {
		ready, since := readyOf(s)
		t.AppendRow(table.Row{
			s.Account + "/" + s.Region, paint(w, s.Verdict), dash(string(s.Reason)), s.Intent.ImageTag,
			dash(s.ObservedImageTag), dash(s.ServingImageTag), ready, since, seen(s),
		})
	}
	t.Render()
	return nil
}

// readyOf says whether the endpoint answers, and for how long the summary has been as
// it is.
func readyOf(s fleet.ServerView) (ready, since string) {
	ready, since = "-", "-"
	for _, c := range s.Conditions {
		switch c.Type {
		case fleet.ConditionEndpointReady:
			ready = map[fleet.ConditionStatus]string{fleet.True: "yes", fleet.False: "no", fleet.Unknown: "?"}[c.Status]
		case fleet.ConditionReady:
			since = age(c.LastTransitionTime)
		default:
		}
	}
	return ready, since
}

func printServer(ctx context.Context, w io.Writer, c *api.Client, s fleet.ServerView, o statusOptions) error {
	if o.output == "json" {
		return printJSON(w, s)
	}
	key := fleet.ServerKey{Account: s.Account, Region: s.Region}
	events, err := c.Events(ctx, api.EventFilter{Account: s.Account, Region: s.Region, Limit: 8})
	if err != nil {
		return err
	}
	if o.watch && isTerminal(w) {
		fmt.Fprint(w, "\x1b[H\x1b[2J")
	}
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("server", "%s, instance %s", key, s.Instance)
	line("verdict", "%s %s", paint(w, s.Verdict), s.Reason)
	line("status", "%s, generation %d", s.Status, s.Generation)
	if s.Message != "" {
		line("", "%s", s.Message)
	}
	line("image", "wants %s, observed %s, serves %s", s.Intent.ImageTag, dash(s.ObservedImageTag), dash(s.ServingImageTag))
	line("url", "%s", dash(s.PublishedURL))
	if s.PublishedURL != s.DeclaredURL {
		line("", "declared: %s", s.DeclaredURL)
	}
	if d := s.Deployment; d != nil {
		line("deployment", "%d (%s): %s %s", d.Seq, d.ImageTag, d.Status, d.Reason)
	}
	if p := s.Plan; p != nil {
		line("plan", "%s for %s, attempt %d", p.Kind, p.Cause, p.Attempt)
		for _, task := range p.Tasks {
			line("", "  %-8s %s", task.State, task.Describe())
		}
	}
	if p := s.IntendedPlan; p != nil {
		line("intended", "%s for %s; held", p.Kind, p.Cause)
	}
	for _, h := range s.Holds {
		line("hold", "%s: %s", h.Kind, h.Message)
	}
	if s.NextAttempt != nil && s.NextAttempt.After(time.Now()) {
		line("next try", "in %s", time.Until(*s.NextAttempt).Round(time.Second))
	}
	line("seen", "%s", seen(s))
	fmt.Fprintln(w)

	t := newTable(w)
	t.AppendHeader(table.Row{"Condition", "Status", "Reason", "For", "Message"})
	for _, c := range s.Conditions {
		t.AppendRow(table.Row{c.Type, c.Status, c.Reason, age(c.LastTransitionTime), text.WrapSoft(c.Message, 60)})
	}
	t.Render()
	if len(s.Containers) > 0 {
		fmt.Fprintln(w)
		t = newTable(w)
		t.AppendHeader(table.Row{"Container", "Id", "State", "Image"})
		for _, c := range s.Containers {
			t.AppendRow(table.Row{c.Name, short(c.ID), c.State, c.Image})
		}
		t.Render()
	}
	if len(events) > 0 {
		fmt.Fprintln(w)
		printEvents(w, events)
	}
	return nil
}

func printEvents(w io.Writer, events []fleet.Event) {
	t := newTable(w)
	t.AppendHeader(table.Row{"When", "Server", "Type", "Event", "Message"})
	for _, e := range events {
		t.AppendRow(table.Row{age(e.At) + " ago", e.Account + "/" + e.Region, e.Type, e.Reason, text.WrapSoft(e.Message, 80)})
	}
	t.Render()
}

func newTable(w io.Writer) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.Options{SeparateHeader: true}
	t.Style().Format.Header = text.FormatUpper
	return t
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// paint colours a verdict on a terminal, unless NO_COLOR says not to.
func paint(w io.Writer, v fleet.Verdict) string {
	if !isTerminal(w) || os.Getenv("NO_COLOR") != "" {
		return string(v)
	}
	switch v {
	case fleet.VerdictConverged:
		return text.FgGreen.Sprint(v)
	case fleet.VerdictFailed, fleet.VerdictStalled:
		return text.FgRed.Sprint(v)
	case fleet.VerdictUnobserved, fleet.VerdictHeld, fleet.VerdictDrifted, fleet.VerdictAbsent:
		return text.FgYellow.Sprint(v)
	case fleet.VerdictProgressing, fleet.VerdictDestroying:
		return text.FgCyan.Sprint(v)
	default:
		return string(v)
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func seen(s fleet.ServerView) string {
	if s.LastObservedAt == nil {
		return "never"
	}
	if s.FailedReads > 0 {
		return fmt.Sprintf("%s ago, %d reads failed since", age(*s.LastObservedAt), s.FailedReads)
	}
	return age(*s.LastObservedAt) + " ago"
}

// age says how long ago a time was, in the two units that matter.
func age(t time.Time) string {
	d := max(time.Since(t), 0)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 24*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	default:
		return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
	}
}

func dash(s string) string { return first(s, "-") }

func short(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}
