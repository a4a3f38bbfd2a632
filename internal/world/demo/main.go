// Command demo tells the product's story for real: OpenTofu applies HCL through the
// provider to a running kurad, which runs servers, probes them, heals them and rolls them
// forward. `make demo` runs it with containers on a Podman of the demo's own, `make
// demo-kubernetes` with KuraInstances on a kube-apiserver of its own, or on a cluster that
// is named. It exits 0 and leaves nothing behind, unless it is told to keep everything
// running.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// endings are the signals that end the demo: a closed terminal, too, takes away what was made.
var endings = []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}

// options are what the command line says.
type options struct {
	tofu, bin, hcl string
	keep           bool
	tags           []string
	ground         ground
}

func main() {
	var o options
	flag.StringVar(&o.tofu, "tofu", "", "path of the tofu binary")
	flag.StringVar(&o.bin, "bin", "bin", "folder with kurad and terraform-provider-kura")
	flag.StringVar(&o.hcl, "hcl", "examples/demo", "folder with the configuration")
	flag.BoolVar(&o.keep, "keep", false, "leave everything running until interrupted")
	tags := flag.String("tags", "v1,v2,v3", "three versions of the image; with the second, -lost appended names one that nobody built")
	kubernetes := flag.Bool("kubernetes", false, "play on Kubernetes")
	c := cluster{environment: "demo"}
	flag.StringVar(&c.context, "context", "", "context of KUBECONFIG whose cluster is played on, with the controller that is there; by default on a kube-apiserver of the demo's own")
	flag.StringVar(&c.namespace, "namespace", "kura", "namespace of the instances")
	flag.StringVar(&c.zone, "zone", zone, "zone of the hosts")
	flag.StringVar(&c.image, "image", "registry.kura.test/kura/cache", "image without a tag")
	flag.StringVar(&c.ingress, "ingress-class", "", "ingress class of the hosts")
	flag.StringVar(&c.flags, "kurad-flags", "", "further flags of kurad serve, such as --probe-ca FILE; by that and by --resolver the demo reaches the servers, too")
	flag.Parse()

	err := o.choose(*tags, *kubernetes, c)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), endings...)
		err = run(ctx, o)
		stop()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		os.Exit(1)
	}
}

// choose fills in the ground.
func (o *options) choose(tags string, kubernetes bool, c cluster) error {
	o.tags = strings.Split(tags, ",")
	if len(o.tags) != 3 {
		return fmt.Errorf("--tags %q are not three versions: write them as v1,v2,v3", tags)
	}
	if !kubernetes {
		o.ground = &containers{tags: o.tags}
		return nil
	}
	given := map[string]bool{}
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for _, name := range []string{"zone", "image", "tags"} {
		if given["context"] && !given[name] {
			return fmt.Errorf("a cluster of yours needs names of yours: give --%s besides --context, as in make demo-kubernetes CONTEXT=test ZONE=kura.example.dev IMAGE=registry.example.dev/kura/cache TAGS=1.0,1.1,1.2", name)
		}
	}
	if given["context"] {
		c.environment = ownName()
		o.ground = &c
	} else {
		o.ground = &ownCluster{cluster: c}
	}
	return nil
}

// ownName is an environment for one run on somebody's cluster: nobody else's instances bear
// its label, and nobody else's hosts its suffix.
func ownName() string { return fmt.Sprintf("demo-%06x", rand.N(1<<24)) }

func run(ctx context.Context, o options) (err error) {
	s, err := setUp(ctx, o)
	defer func() {
		// The demo cleans up whatever happened, and not in the time of an interrupted run.
		err = errors.Join(err, s.tearDown(context.WithoutCancel(ctx), err != nil))
	}()
	if err != nil {
		return err
	}
	if err := story(ctx, s); err != nil {
		return err
	}
	if o.keep {
		if err := s.keep(ctx); err != nil || !s.ground.stays() {
			return err
		}
		// The first Ctrl-C ended the waiting. A second one breaks off this, too.
		ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), endings...)
		defer stop()
		return s.farewell(ctx)
	}
	if err := s.farewell(ctx); err != nil {
		return err
	}
	chapter("The end. `make %s KEEP=1` leaves it running for you to play with.", s.ground.target())
	return nil
}
