// Command demo tells the product's story for real: OpenTofu applies HCL through the
// provider to a running kurad, which runs containers on a Podman of the demo's own,
// probes them, heals them and rolls them forward. `make demo` runs it; it exits 0 and
// leaves nothing behind, unless it is told to keep everything running.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	tofu := flag.String("tofu", "", "path of the tofu binary")
	bin := flag.String("bin", "bin", "folder with kurad and terraform-provider-kura")
	hcl := flag.String("hcl", "examples/demo", "folder with the configuration")
	keep := flag.Bool("keep", false, "leave everything running until interrupted")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *tofu, *bin, *hcl, *keep); err != nil {
		fmt.Fprintln(os.Stderr, "\ndemo:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, tofu, bin, hcl string, keep bool) (err error) {
	s, err := setUp(ctx, tofu, bin, hcl)
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
	if keep {
		return s.keep(ctx)
	}
	return s.farewell(ctx)
}
