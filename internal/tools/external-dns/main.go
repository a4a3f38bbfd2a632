// Command external-dns is external-dns without Kubernetes: what it would find in a cluster, it is told.
//
//	CF_API_TOKEN=… CLOUDFLARE_BASE_URL=… external-dns OWNER ZONE [TXT-PREFIX [TXT-SUFFIX]]
//
// Each line on standard input is a round of its controller: a JSON list of all endpoints that there are to be, such as
// {"Name": "a.kura.test", "Type": "A", "Targets": ["192.0.2.1"]}. Each is answered by a line, {"Error": "", "Said":
// [what it logged of level debug and above]}.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	log "github.com/sirupsen/logrus"
	"sigs.k8s.io/external-dns/endpoint"
	"sigs.k8s.io/external-dns/pkg/apis/externaldns"
	"sigs.k8s.io/external-dns/plan"
	"sigs.k8s.io/external-dns/provider/cloudflare"
	"sigs.k8s.io/external-dns/registry"
	"sigs.k8s.io/external-dns/registry/txt"
)

type wish struct {
	Name, Type string
	Targets    []string
}

type answer struct {
	Error string
	Said  []string
}

func main() {
	if err := run(context.Background(), append(os.Args[1:], "", "", "", "")); err != nil {
		fmt.Fprintln(os.Stderr, "external-dns:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	cfg := &externaldns.Config{
		TXTOwnerID: args[0], TXTPrefix: args[2], TXTSuffix: args[3], ManagedDNSRecordTypes: []string{"A", "AAAA", "CNAME"},
		CloudflareDNSRecordsPerPage: 100, BatchChangeSize: 200, // its defaults
	}
	filter := endpoint.NewDomainFilter([]string{args[1]})
	provider, err := cloudflare.New(ctx, cfg, filter)
	if err != nil {
		return err
	}
	records, err := txt.New(cfg, provider)
	if err != nil {
		return err
	}
	said := &memory{}
	log.SetLevel(log.DebugLevel)
	log.SetOutput(io.Discard)
	log.AddHook(said)
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var wishes []wish
		if err := in.Decode(&wishes); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		a := answer{}
		if err := round(ctx, cfg, records, filter, wishes); err != nil {
			a.Error = err.Error()
		}
		a.Said, said.lines = said.lines, nil
		if err := out.Encode(a); err != nil {
			return err
		}
	}
}

// round is what the controller's RunOnce does.
func round(ctx context.Context, cfg *externaldns.Config, records registry.Registry, filter *endpoint.DomainFilter, wishes []wish) error {
	current, err := records.Records(ctx)
	if err != nil {
		return err
	}
	var desired []*endpoint.Endpoint
	for _, w := range wishes {
		desired = append(desired, endpoint.NewEndpoint(w.Name, w.Type, w.Targets...).WithLabel(endpoint.ResourceLabelKey, "ingress/kura/test"))
	}
	if desired, err = records.AdjustEndpoints(desired); err != nil {
		return err
	}
	p := (&plan.Plan{
		Policies: []plan.Policy{&plan.SyncPolicy{}}, Current: current, Desired: desired,
		DomainFilter: endpoint.MatchAllDomainFilters{filter}, ManagedRecords: cfg.ManagedDNSRecordTypes, OwnerID: cfg.TXTOwnerID,
	}).Calculate()
	if !p.Changes.HasChanges() {
		return nil
	}
	return records.ApplyChanges(ctx, p.Changes)
}

// memory keeps what is logged in a round.
type memory struct{ lines []string }

// Levels implements logrus.Hook.
func (*memory) Levels() []log.Level { return log.AllLevels }

// Fire implements logrus.Hook.
func (m *memory) Fire(e *log.Entry) error {
	m.lines = append(m.lines, e.Level.String()+": "+e.Message)
	return nil
}
