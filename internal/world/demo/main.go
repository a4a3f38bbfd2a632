// Command demo tells the product's story for real: OpenTofu applies HCL through the
// provider to a running kurad, which runs servers, probes them, heals them and rolls them
// forward. `make demo` runs it with containers on a Podman of the demo's own, `make
// demo-kubernetes` with KuraInstances on a kube-apiserver of its own, or on a cluster that
// is named. It exits 0 and leaves nothing behind, unless it is told to keep everything
// running.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

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
	var c cluster
	flag.StringVar(&c.context, "context", "", "context of KUBECONFIG whose cluster is played on, with the controller that is there; by default on a kube-apiserver of the demo's own")
	flag.StringVar(&c.namespace, "namespace", "kura", "namespace of the instances")
	flag.StringVar(&c.zone, "zone", "kura.test", "zone of the hosts")
	flag.StringVar(&c.image, "image", "registry.kura.test/kura/cache", "image without a tag")
	flag.StringVar(&c.ingress, "ingress-class", "", "ingress class of the hosts")
	flag.StringVar(&c.flags, "kurad-flags", "", "further flags of kurad serve, such as --probe-ca FILE")
	flag.Parse()

	err := o.choose(*tags, *kubernetes, c)
	if err == nil {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
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
		o.ground = &c
	} else {
		o.ground = &ownCluster{cluster: c}
	}
	return nil
}

func run(ctx context.Context, o options) (err error) {
	s, err := setUp(ctx, o)
	defer func() {
		// The demo cleans up whatever happened, and not in the time of an interrupted run.
		if cleanErr := s.tearDown(context.WithoutCancel(ctx), err != nil); err == nil {
			err = cleanErr
		}
	}()
	if err != nil {
		return err
	}
	if err := story(ctx, s); err != nil {
		return err
	}
	if o.keep {
		return s.keep(ctx)
	}
	return s.farewell(ctx)
}
