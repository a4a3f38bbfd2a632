package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/kurafleet/terraform-provider-kura/internal/api/audit"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/declare"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/readiness"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// options are the flags of serve.
type options struct {
	environment  string
	suffix       string
	neighbours   map[string]string
	dataDir      string
	store        storeOptions
	listen       string
	health       string
	tls          tlsOptions
	auditLog     string
	advertise    string
	peerRoots    []string
	endpoints    []string
	kubeconfig   string
	clusters     []string
	zones        []string
	envSets      map[string]string
	resolver     string
	allow        []string
	roots        []string
	tick         time.Duration
	aliasPeriod  time.Duration
	orphanPeriod time.Duration
	paused       bool
	logLevel     string
	logFormat    string
}

func serveCommand() *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon",
		Long: "Run the daemon of one environment. The first start writes an admin token to <data-dir>/token;\n" +
			"the other commands find it, and the address, in the data directory.\n\n" +
			"Servers run on what the daemon is given and regions name: container engines (--container-endpoint)\n" +
			"and Kubernetes clusters (--cluster). A cluster is a context of the kubeconfig: that of --kubeconfig,\n" +
			"else of KUBECONFIG, else ~/.kube/config; in a pod, name=in-cluster is the pod's own service account.\n" +
			"It needs get, list, watch, create, patch and delete of kurainstances.kura.tuist.dev in the namespaces\n" +
			"that regions name, and get of those namespaces. Besides, kurad reads how the API describes that type, and no other resource.",
		Example: "  kurad serve --environment staging --data-dir /var/lib/kurad \\\n" +
			"    --container-endpoint local=unix:///run/podman/podman.sock,address=127.0.0.1,ports=20000-29999\n\n" +
			"  kurad serve --environment production --data-dir /var/lib/kurad --kubeconfig /etc/kurad/kubeconfig \\\n" +
			"    --cluster eu-1=kurad@eu-1 --cluster us-1=kurad@us-1,qps=100,burst=200",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := newLogger(o.logLevel, o.logFormat, cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			d, err := newDaemon(cmd.Context(), o, log)
			if err != nil {
				return err
			}
			return d.run(cmd.Context())
		},
	}
	f := c.Flags()
	f.StringVar(&o.environment, "environment", os.Getenv("KURA_ENVIRONMENT"), "environment that this daemon serves: production, staging, canary, or another one with --env-suffix (KURA_ENVIRONMENT)")
	f.StringVar(&o.suffix, "env-suffix", "", "suffix of a custom environment's hosts, for example -preview")
	f.StringToStringVar(&o.neighbours, "zone-environment", nil, "another environment that shares the DNS zone, with its suffix: preview=-preview; production, staging and canary are known")
	f.StringVar(&o.dataDir, "data-dir", defaultDataDir(), "where the store and the first token are kept (KURA_DATA_DIR)")
	o.store.flags(f)
	f.StringVar(&o.listen, "listen", "127.0.0.1:7433", "address of the API; any other than loopback needs TLS")
	f.StringVar(&o.health, "health-listen", "", "address that answers /healthz and /readyz alone, without TLS, whatever goes on at --listen, for example 0.0.0.0:7434; none by default")
	o.tls.flags(f)
	f.StringVar(&o.auditLog, "audit-log", "", "file of the audit log; by default <data-dir>/audit.log")
	f.StringVar(&o.advertise, "advertise", "", "URL at which the other kurads of the same store reach this one; by default where it listens")
	f.StringArrayVar(&o.peerRoots, "peer-ca", nil, "PEM file of a certificate authority that signed the certificates of the other kurads, besides the system's; repeatable")
	f.StringArrayVar(&o.endpoints, "container-endpoint", nil, "container engine that regions may name: name=unix:///run/podman.sock or name=tcp://host:port,ca=/ca.pem,cert=/cert.pem,key=/key.pem, then [,address=127.0.0.1][,ports=20000-29999][,mounts=/srv/kura]; repeatable")
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig with the contexts of --cluster; by default KUBECONFIG, else ~/.kube/config")
	f.StringArrayVar(&o.clusters, "cluster", nil, "Kubernetes cluster that regions may name: name=context[,qps=50][,burst=100], or name=in-cluster for the pod's own account; qps and burst bound the requests to it; repeatable")
	f.StringArrayVar(&o.zones, "zone", nil, "DNS zone in which whose hosts are is checked: kura.example.dev[=name][,server=host:port][,txt-prefix=…|txt-suffix=…], read by queries to its own servers; with [,cloudflare=/file|env:NAME][,account=…][,plan=free|paid][,api=url] by its API, so that kurad can write records and load balancers too; repeatable")
	f.StringToStringVar(&o.envSets, "env-set", nil, "file of NAME=value lines that documents may name by env_from: name=/path; of a Kubernetes region only the names of the variables are used, and the values are those of the Secret of the set's name; repeatable")
	f.StringVar(&o.resolver, "resolver", "", "DNS server that probes ask, host:port; the system's by default")
	f.StringArrayVar(&o.allow, "probe-allow-cidr", nil, "loopback, private or link-local addresses that may be probed, for example 127.0.0.0/8; repeatable")
	f.StringArrayVar(&o.roots, "probe-ca", nil, "PEM file of a certificate authority that probes trust besides the system's; repeatable")
	f.DurationVar(&o.tick, "tick", 10*time.Second, "time between listings of a container endpoint")
	f.DurationVar(&o.aliasPeriod, "alias-period", 7*24*time.Hour, "how long a host or a handle that an account gave up, by a rename or a deletion, is kept for it, so that no other account gets it")
	f.DurationVar(&o.orphanPeriod, "orphan-period", 24*time.Hour, "how long a KuraInstance must have belonged to no declared server before it is deleted, where its region has delete_orphans; a fleet that is declared again after a loss has that time")
	f.BoolVar(&o.paused, "paused", false, "observe and answer, but change nothing on any runtime")
	f.StringVar(&o.logLevel, "log-level", "info", "trace, debug, info, warn or error")
	f.StringVar(&o.logFormat, "log-format", "text", "text or json")
	return c
}

func defaultDataDir() string {
	if dir := os.Getenv("KURA_DATA_DIR"); dir != "" {
		return dir
	}
	if dir, err := os.UserConfigDir(); err == nil {
		return filepath.Join(dir, "kurad")
	}
	return "kurad-data"
}

// daemon is everything that serve runs, wired.
type daemon struct {
	options    options
	log        hclog.Logger
	env        fleet.Environment
	store      kv.Store
	records    *store.Records
	view       *store.View
	prober     *readiness.Prober
	declared   *declaredProbes
	runtimes   *runtimes
	zones      *zones
	term       currentTerm // what runs while this kurad leads
	declare    *declare.Declarer
	api        *server.Server
	audit      *anchors // the audit log; nil until it was opened
	listener   net.Listener
	health     net.Listener // nil: there is none
	advertised string
}

// newDaemon checks every flag before it opens anything, then opens the address and the
// store. What it returns has started nothing but the store.
func newDaemon(ctx context.Context, o options, log hclog.Logger) (_ *daemon, err error) {
	if o.environment == "" {
		return nil, errors.New("no environment is given: set --environment to production, staging or canary, or to another name together with --env-suffix")
	}
	env, err := fleet.NewEnvironment(o.environment, o.suffix, o.neighbours)
	if err != nil {
		return nil, err
	}
	if o.tick < 100*time.Millisecond {
		return nil, fmt.Errorf("--tick %s is too short: 100ms is the least", o.tick)
	}
	if o.aliasPeriod <= 0 {
		return nil, fmt.Errorf("--alias-period %s is no length of time: give one such as 168h", o.aliasPeriod)
	}
	if o.orphanPeriod < time.Minute {
		return nil, fmt.Errorf("--orphan-period %s is too short: 1m is the least, for what is just being declared is no orphan", o.orphanPeriod)
	}
	allow, err := readiness.ParseAllow(o.allow)
	if err != nil {
		return nil, err
	}
	roots, err := readiness.LoadRoots(o.roots...)
	if err != nil {
		return nil, err
	}
	peers, err := readiness.LoadRoots(o.peerRoots...)
	if err != nil {
		return nil, fmt.Errorf("--peer-ca: %w", err)
	}
	sets, names, err := readEnvSets(o.envSets)
	if err != nil {
		return nil, err
	}
	env.VariableSets = names
	rts, err := openRuntimes(o, sets, env, log.Named("runtime"))
	if err != nil {
		return nil, err
	}
	zs, err := openZones(o, env, readiness.NewPolicy(allow))
	if err != nil {
		return nil, err
	}
	if err := o.tls.check(o.listen); err != nil {
		return nil, err
	}
	if err := checkDataDir(o.dataDir, env.Name); err != nil {
		return nil, err
	}
	d := &daemon{options: o, log: log, env: env, runtimes: rts, zones: zs}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	if d.listener, err = server.Listen(o.listen, o.tls.on()); err != nil {
		return nil, fmt.Errorf("--listen: %w", err)
	}
	if o.health != "" {
		if d.health, err = server.ListenHealth(o.health); err != nil {
			return nil, fmt.Errorf("--health-listen: %w", err)
		}
	}
	if d.store, err = o.store.open(ctx, o.dataDir, env.Name, log.Named("store")); err != nil {
		return nil, err
	}
	// Only now: the store's lock says that nobody else uses the data directory.
	if d.listener, err = o.tls.secure(d.listener, o.listen, o.dataDir, log.Named("tls")); err != nil {
		return nil, err
	}
	auditLog := cmp.Or(o.auditLog, filepath.Join(o.dataDir, auditFile))
	trail, err := audit.OpenTrail(audit.Config{Path: auditLog, Anchored: true, Logger: log.Named("audit")})
	if err != nil {
		return nil, err
	}
	d.audit = &anchors{Trail: trail, log: log.Named("audit")}
	d.records = store.NewRecords(d.store, env.Name)
	if err = d.records.Prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare the store: %w", err)
	}
	if err = claimDataDir(o.dataDir, env.Name); err != nil {
		return nil, err
	}
	if !o.store.shared() {
		if err = d.records.BreakLock(ctx); err != nil {
			return nil, fmt.Errorf("prepare the store: %w", err)
		}
	}
	changes, denied := anchorName(auditLog, o.dataDir, o.store.shared()), anchorName(audit.DeniedPath(auditLog), o.dataDir, o.store.shared())
	if err = d.audit.compare(ctx, d.records, changes, denied); err != nil {
		return nil, err
	}
	d.view = store.NewView(d.records, log.Named("view"))
	for _, e := range rts.containers {
		e.KnowRegions(func() []fleet.Region { return store.Values(d.view.Regions()) })
	}
	d.prober = readiness.NewProber(readiness.Config{Resolver: o.resolver, AllowCIDR: allow, RootCAs: roots})
	d.declared = &declaredProbes{view: d.view, probe: d.prober.Probe}
	d.term.records = d.records
	if d.advertised, err = advertised(o, d.listener.Addr(), d.url()); err != nil {
		return nil, err
	}
	if u, perr := url.Parse(d.advertised); perr == nil && o.store.shared() && isLoopback(u.Hostname()) {
		log.Warn("kurads of the same store on other machines cannot ask this one while it leads: it advertises a loopback address; give --advertise", "address", d.advertised)
	}
	tokens := server.NewTokens(d.records, time.Now)
	asked := &dnsAPI{zones: zs, env: env, records: d.records, view: d.view, term: &d.term, desired: func(g fleet.Gathered) fleet.Desired { return d.declare.Desired(g) }}
	d.declare = declare.New(declare.Config{
		Records: d.records, View: d.view, Environment: env, Runtimes: rts, Zones: zs, Hosts: asked, Turns: &d.term,
		Logger: log.Named("declare"), Now: time.Now, AliasPeriod: o.aliasPeriod,
	})
	d.api, err = server.New(server.Config{
		Records: d.records, View: d.view, Environment: env, Tokens: tokens, Turns: &d.term, Runtimes: rts, Declare: d.declare, Declared: d.declared, ZoneNames: zs.Domains(), DNSModes: zs.Modes(), ZoneTrouble: d.term.zoneTrouble, DNS: asked,
		Leader: &d.term, PeerTLS: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: peers},
		Version: version, Logger: log.Named("api"), Audit: d.audit, Now: time.Now,
	})
	if err != nil {
		return nil, fmt.Errorf("build the API: %w", err)
	}
	path, made, err := tokens.Bootstrap(ctx, o.dataDir)
	if err != nil {
		return nil, err
	}
	if made {
		log.Info("the first start made an admin token", "file", path)
	}
	if err = writeEndpoint(o.dataDir, d.url()); err != nil {
		return nil, err
	}
	return d, nil
}

// url is where the API answers.
func (d *daemon) url() string { return d.options.tls.urlOf(d.listener.Addr()) }

// run serves until ctx ends or the store stops. The order of the end: no new requests,
// no new turns, running tasks end, the store is closed.
func (d *daemon) run(ctx context.Context) error {
	defer d.close()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return unlessEnded(ctx, d.view.Run(ctx)) })
	if err := d.view.CatchUp(ctx); err != nil {
		err = unlessEnded(ctx, fmt.Errorf("load the records: %w", err))
		stop()
		return errors.Join(err, group.Wait())
	}
	cancel := d.view.Subscribe(d.onUpdate)
	defer cancel()
	d.runtimes.expect(d.view.Identities())

	answer := func(what string, api *http.Server, at net.Listener, end func() error) {
		group.Go(func() error {
			if err := api.Serve(at); err != nil && ctx.Err() == nil {
				return fmt.Errorf("serve %s: %w", what, err)
			}
			return nil
		})
		group.Go(func() error {
			<-ctx.Done() // whatever the reason: without it Serve would go on for ever
			return end()
		})
	}
	group.Go(func() error { return d.lead(ctx) })
	group.Go(func() error { d.audit.run(ctx); return nil })
	if d.health != nil {
		health := server.HTTPServer(d.health.Addr().String(), d.api.Health(), d.log.Named("health"))
		answer("--health-listen", health, d.health, health.Close)
		d.log.Info("liveness and readiness are answered", "address", d.health.Addr())
	}
	group.Go(func() error {
		select {
		case <-d.store.Failed():
			return fmt.Errorf("the store has stopped: %w", d.store.Err())
		case <-ctx.Done():
			return nil
		}
	})
	api := server.HTTPServer(d.listener.Addr().String(), d.api, d.log.Named("http"))
	answer("the API", api, d.listener, func() error {
		d.api.Close()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		return api.Shutdown(end)
	})
	d.log.Info("kurad serves", "environment", d.env.Name, "suffix", d.env.Suffix, "address", d.url(), "version", version)
	err := group.Wait()
	d.log.Info("kurad has ended")
	return err
}

// onUpdate makes the turns due that a change of a record concerns. A change of a status
// causes none: a turn that stores a runnable plan says so itself.
func (d *daemon) onUpdate(u store.Update) {
	if u.Kind == store.KindCluster {
		if cluster, namespace, ok := strings.Cut(u.Name, "/"); ok && u.Deleted {
			d.runtimes.expect([]fleet.KubeIdentity{{Cluster: cluster, Namespace: namespace}})
		}
		d.runtimes.expect(d.view.Identities())
	}
	d.term.kick(d.view.RenderedFrom(u)...)
}

func (d *daemon) close() {
	if d.listener != nil {
		_ = d.listener.Close() // closed already where the server was shut down
	}
	if d.health != nil {
		_ = d.health.Close() // as above
	}
	if d.audit != nil {
		if err := d.audit.close(); err != nil {
			d.log.Error("close the audit log", "error", err)
		}
	}
	if d.store != nil {
		if err := d.store.Close(); err != nil {
			d.log.Error("close the store", "error", err)
		}
	}
	d.runtimes.close()
}

// unlessEnded hides the error of a context that was meant to end.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
