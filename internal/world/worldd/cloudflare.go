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
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/world/cloudflare"
)

func runCloudflare(ctx context.Context, args []string, out io.Writer) (err error) {
	var options cloudflare.Options
	flags := flag.NewFlagSet("worldd cloudflare", flag.ContinueOnError)
	flags.Func("zone", "zone to serve, with its plan: kura.test=pro; repeatable; kura.test by default", func(text string) error {
		name, plan, _ := strings.Cut(text, "=")
		options.Zones = append(options.Zones, cloudflare.Zone{Name: name, Plan: cloudflare.Plan(plan)})
		return nil
	})
	flags.Func("token", "token for everything: NAME=VALUE; repeatable", func(text string) error {
		name, value, ok := strings.Cut(text, "=")
		if !ok || value == "" {
			return errors.New("want NAME=VALUE")
		}
		options.Tokens = append(options.Tokens, cloudflare.Token{Name: name, Value: value})
		return nil
	})
	if err := flags.Parse(args); err != nil {
		return err
	}
	if options.Zones == nil {
		options.Zones = []cloudflare.Zone{{Name: "kura.test"}}
	}
	emulator, err := cloudflare.New(options)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, emulator.Close()) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	control := &http.Server{Handler: emulator.Control(), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = control.Serve(listener) }() // ends by Close
	defer control.Close()

	where := map[string]string{"dns": emulator.DNS().Addr(), "url": emulator.URL(), "control": "http://" + listener.Addr().String()}
	if err := json.NewEncoder(out).Encode(where); err != nil {
		return fmt.Errorf("print where Cloudflare is: %w", err)
	}
	<-ctx.Done()
	return nil
}
