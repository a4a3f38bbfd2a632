package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// printServers is the fleet as a table.
func printServers(w io.Writer, list []fleet.ServerView) {
	sortServers(list)
	printTable(w, list, 0)
	var stale []string
	for _, s := range list {
		if s.Stale {
			stale = append(stale, s.Account+"/"+s.Region)
		}
	}
	if len(stale) > 0 {
		fmt.Fprintf(w, "not seen anew within %s: %s; what is shown of them was known before\n", api.MaxObserve, strings.Join(stale, ", "))
	}
}

func sortServers(list []fleet.ServerView) {
	slices.SortFunc(list, func(a, b fleet.ServerView) int {
		return strings.Compare(a.Region+"/"+a.Account, b.Region+"/"+b.Account)
	})
}

// printTable prints the table of servers in lines of at most width columns; 0: of any
// length. What matters least goes first: texts are cut short, then columns are left out.
func printTable(w io.Writer, list []fleet.ServerView, width int) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no servers are declared here")
		return
	}
	rows := []table.Row{{"Server", "Verdict", "Reason", "Desired", "Observed", "Serving", "Ready", "For", "Seen"}}
	for _, s := range list {
		ready, since := readyOf(s)
		rows = append(rows, table.Row{
			s.Account + "/" + s.Region, paint(w, s.Verdict), dash(string(s.Reason)), s.Intent.ImageTag,
			dash(s.ObservedImageTag), dash(s.ServingImageTag), ready, since, seen(s),
		})
	}
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for j, cell := range row {
			widths[j] = max(widths[j], text.StringWidthWithoutEscSequences(fmt.Sprint(cell)))
		}
	}
	fit(widths, width)
	t := newTable(w, rows[0]...)
	var configs []table.ColumnConfig
	for j, most := range widths {
		configs = append(configs, table.ColumnConfig{Number: j + 1, Hidden: most == 0, WidthMax: most, WidthMaxEnforcer: func(cell string, most int) string {
			return text.Snip(cell, most, "…")
		}})
	}
	t.SetColumnConfigs(configs)
	t.AppendRows(rows[1:])
	t.Render()
}

// fit makes the columns of the table of servers narrower until they fit; 0 leaves one out.
func fit(widths []int, width int) {
	const server, reason, desired, observed, serving, ready, since, last = 0, 2, 3, 4, 5, 6, 7, 8
	wide := func() bool {
		sum := 0
		for _, w := range widths {
			if w > 0 {
				sum += w + 2 // a blank on either side
			}
		}
		return width > 0 && sum > width
	}
	shorten := func(least int, columns ...int) {
		for wide() {
			widest := columns[0]
			for _, c := range columns {
				if widths[c] > widths[widest] {
					widest = c
				}
			}
			if widths[widest] <= least {
				return
			}
			widths[widest]--
		}
	}
	shorten(16, reason, desired, observed, serving, last)
	for _, column := range []int{last, serving, since, ready, observed, desired} {
		if wide() {
			widths[column] = 0
		}
	}
	shorten(8, server, reason)
}

// readyOf says whether the endpoint answers, and for how long the summary has been as
// it is.
func readyOf(s fleet.ServerView) (ready, since string) {
	ready, since = "-", "-"
	for _, c := range s.Conditions {
		if c.Type == fleet.ConditionEndpointReady {
			ready = map[fleet.ConditionStatus]string{fleet.True: "yes", fleet.False: "no", fleet.Unknown: "?"}[c.Status]
		}
		if c.Type == fleet.ConditionReady {
			since = age(c.LastTransitionTime)
		}
	}
	return ready, since
}

// printServer is all that is known of one server.
func printServer(w io.Writer, s serverStory) {
	key := fleet.ServerKey{Account: s.Account, Region: s.Region}
	line := func(name, format string, args ...any) {
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-11s %s", name, fmt.Sprintf(format, args...)), " "))
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
	line("seen", "%s", seen(s.ServerView))
	if s.Stale {
		line("", "not seen anew within %s: this is what was known before", api.MaxObserve)
	}
	fmt.Fprintln(w)

	t := newTable(w, "Condition", "Status", "Reason", "For", "Message")
	for _, c := range s.Conditions {
		if c.Reason == fleet.ReasonNotApplicable {
			continue // what the region does not declare is no news; --output json has it
		}
		t.AppendRow(table.Row{c.Type, c.Status, c.Reason, age(c.LastTransitionTime), text.WrapSoft(c.Message, 60)})
	}
	t.Render()
	if len(s.Containers) > 0 {
		fmt.Fprintln(w)
		t = newTable(w, "Container", "Id", "State", "Image")
		for _, c := range s.Containers {
			t.AppendRow(table.Row{c.Name, short(c.ID), c.State, c.Image})
		}
		t.Render()
	}
	if len(s.Events) > 0 {
		fmt.Fprintln(w)
		printEvents(w, s.Events)
	}
}

func printEvents(w io.Writer, events []fleet.Event) {
	if len(events) == 0 {
		fmt.Fprintln(w, "nothing has happened yet")
		return
	}
	t := newTable(w, "When", "Server", "Type", "Event", "Message")
	for _, e := range events {
		t.AppendRow(table.Row{age(e.At) + " ago", e.Account + "/" + e.Region, e.Type, e.Reason, text.WrapSoft(e.Message, 80)})
	}
	t.Render()
}

// newTable returns a table that is printed to w, with a line of headers if there are any.
func newTable(w io.Writer, headers ...any) table.Writer {
	t := table.NewWriter()
	t.SetOutputMirror(w)
	t.SuppressTrailingSpaces()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.Options{SeparateHeader: true}
	t.Style().Format.Header = text.FormatUpper
	if len(headers) > 0 {
		t.AppendHeader(headers)
	}
	return t
}

// colour colours a text on a terminal, unless NO_COLOR says not to.
func colour(w io.Writer, c text.Color, s string) string {
	if _, drawn := w.(*canvas); !drawn && !isTerminal(w) || os.Getenv("NO_COLOR") != "" {
		return s
	}
	return c.Sprint(s)
}

func paint(w io.Writer, v fleet.Verdict) string {
	switch v {
	case fleet.VerdictConverged:
		return colour(w, text.FgGreen, string(v))
	case fleet.VerdictFailed, fleet.VerdictStalled:
		return colour(w, text.FgRed, string(v))
	case fleet.VerdictUnobserved, fleet.VerdictHeld, fleet.VerdictDrifted, fleet.VerdictAbsent:
		return colour(w, text.FgYellow, string(v))
	case fleet.VerdictProgressing, fleet.VerdictDestroying:
		return colour(w, text.FgCyan, string(v))
	default:
		return string(v)
	}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

func seen(s fleet.ServerView) string {
	failed := fmt.Sprintf("%d reads failed", s.FailedReads)
	if s.FailedReads == 1 {
		failed = "1 read failed"
	}
	switch {
	case s.LastObservedAt == nil && s.FailedReads > 0:
		return "never, " + failed
	case s.LastObservedAt == nil:
		return "never"
	case s.FailedReads > 0:
		return fmt.Sprintf("%s ago, %s since", age(*s.LastObservedAt), failed)
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

func dash(s string) string { return cmp.Or(s, "-") }

// short is what identifies a container well enough, as engines show it.
func short(id string) string { return id[:min(len(id), 12)] }
