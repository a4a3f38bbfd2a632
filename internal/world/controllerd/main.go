// Command controllerd is the KuraInstance controller of the demo, and what goes with it in
// a cluster: it rolls instances out, makes a certificate authority and serves their hosts,
// serves DNS for the zone, and can be told to misbehave (see kubecontroller.Control). It
// prints a line of JSON that says where all of it is, and stays until SIGTERM.
//
//	controllerd --kubeconfig FILE --dir DIR [--context NAME] [--namespace kura] [--zone kura.test] [--roll-out 1s]
//	{"https":"127.0.0.1:41000","dns":"127.0.0.1:40123","control":"http://127.0.0.1:42000","ca":"DIR/ca.pem"}
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubecontroller"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return
		}
		fmt.Fprintln(os.Stderr, "controllerd:", err)
		os.Exit(1)
	}
}

// ready is what is printed once everything answers.
type ready struct {
	HTTPS   string `json:"https"`
	DNS     string `json:"dns"`
	Control string `json:"control"`
	CA      string `json:"ca"`
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("controllerd", flag.ContinueOnError)
	kubeconfig := flags.String("kubeconfig", "", "file that says where the API server is (required)")
	named := flags.String("context", "", "context of the file; its current one by default")
	namespace := flags.String("namespace", "", "namespace of the instances; all by default")
	dir := flags.String("dir", "", "folder for ca.pem (required)")
	zone := flags.String("zone", "kura.test", "DNS zone to serve")
	rollOut := flags.Duration("roll-out", time.Second, "how long a roll-out takes")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *kubeconfig == "" || *dir == "" {
		return errors.New("--kubeconfig and --dir are required: name the file of the cluster and a folder for the certificate")
	}
	config, err := load(*kubeconfig, *named)
	if err != nil {
		return err
	}
	ca, err := world.NewCA()
	if err != nil {
		return err
	}
	where := ready{CA: filepath.Join(*dir, "ca.pem")}
	if err := errors.Join(os.MkdirAll(*dir, 0o755), os.WriteFile(where.CA, ca.PEM(), 0o644)); err != nil {
		return err
	}
	dns, err := world.StartDNS(*zone)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dns.Close()) }()
	controller, err := kubecontroller.Start(kubecontroller.Config{REST: config, Namespace: *namespace, CA: ca, DNS: dns, RollOut: *rollOut})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, controller.Close()) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control := &http.Server{Handler: controller.Control(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = control.Serve(listener) }() // ends by Close
	defer control.Close()

	where.HTTPS, where.DNS, where.Control = controller.Address(), dns.Addr(), "http://"+listener.Addr().String()
	if err := json.NewEncoder(out).Encode(where); err != nil {
		return fmt.Errorf("print where the controller is: %w", err)
	}
	<-ctx.Done()
	return nil
}

// load reads how the API server is reached.
func load(kubeconfig, named string) (*rest.Config, error) {
	c, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		&clientcmd.ClientConfigLoadingRules{ExplicitPath: kubeconfig}, &clientcmd.ConfigOverrides{CurrentContext: named}).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig %s: %w", kubeconfig, err)
	}
	return c, nil
}
