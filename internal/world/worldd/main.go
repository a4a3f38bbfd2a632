// Command worldd is the demo's outside world: it makes a certificate authority
// and a wildcard certificate, serves DNS for the zone with every name leading to
// one address, prints a line of JSON that says where all of it is, and stays
// until SIGTERM.
//
//	worldd --dir DIR [--zone kura.test] [--address 127.0.0.1]
//	{"dns":"127.0.0.1:40123","ca":"DIR/ca.pem","cert":"DIR/server.pem","key":"DIR/server-key.pem"}
//
// As worldd cloudflare it is a Cloudflare instead, which others tell by its control endpoint what to do wrong (see
// cloudflare.Control):
//
//	worldd cloudflare [--zone kura.test[=free|pro|enterprise]]… [--token NAME=VALUE]…
//	{"dns":"127.0.0.1:40123","url":"http://127.0.0.1:41000/client/v4","control":"http://127.0.0.1:42000"}
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"syscall"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "worldd:", err)
		os.Exit(1)
	}
}

// ready is what is printed once everything answers.
type ready struct {
	DNS string `json:"dns"`
	world.Files
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) > 0 && args[0] == "cloudflare" {
		return runCloudflare(ctx, args[1:], out)
	}
	flags := flag.NewFlagSet("worldd", flag.ContinueOnError)
	dir := flags.String("dir", "", "folder for ca.pem, server.pem and server-key.pem (required)")
	zone := flags.String("zone", "kura.test", "DNS zone to serve")
	address := flags.String("address", "127.0.0.1", "address that every name of the zone leads to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *dir == "" {
		return errors.New("--dir is required: name a folder for the certificates")
	}
	target, err := netip.ParseAddr(*address)
	if err != nil {
		return fmt.Errorf("--address %q is not an IP address", *address)
	}

	ca, err := world.NewCA()
	if err != nil {
		return err
	}
	certificate, err := ca.IssueWildcard(*zone)
	if err != nil {
		return err
	}
	files, err := ca.WriteFiles(*dir, certificate)
	if err != nil {
		return err
	}
	server, err := world.StartDNS(*zone)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	server.SetWildcard(target)

	if err := json.NewEncoder(out).Encode(ready{DNS: server.Addr(), Files: files}); err != nil {
		return fmt.Errorf("print where the world is: %w", err)
	}
	<-ctx.Done()
	return nil
}
