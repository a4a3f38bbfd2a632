package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// files in the data directory, by which the other commands find a daemon.
const (
	tokenFile    = "token"
	endpointFile = "endpoint"
)

// writeEndpoint leaves the API's address for the other commands.
func writeEndpoint(dataDir, url string) error {
	path := filepath.Join(dataDir, endpointFile)
	if err := os.WriteFile(path, []byte(url+"\n"), 0o600); err != nil {
		return fmt.Errorf("leave the address for the other commands: %w", err)
	}
	return nil
}

// target says which daemon a command talks to: flags first, then KURA_*, then the data
// directory.
type target struct {
	endpoint, token, tokenFile, dataDir, caFile string
}

func (t *target) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.endpoint, "endpoint", "", "address of the daemon (KURA_ENDPOINT, or found in the data directory)")
	f.StringVar(&t.tokenFile, "token-file", "", "file that holds the token (KURA_TOKEN_FILE or KURA_TOKEN, or found in the data directory)")
	f.StringVar(&t.caFile, "ca-certificate", "", "PEM file of the certificate authority of the daemon's certificate (KURA_CA_CERTIFICATE, or found in the data directory; otherwise those that the system trusts)")
	f.StringVar(&t.dataDir, "data-dir", defaultDataDir(), "data directory of a daemon on this machine (KURA_DATA_DIR)")
}

func (t *target) client() (*api.Client, error) { return t.dial(false) }

// asks makes a command one that asks the daemon.
func asks(c *cobra.Command, do func(cmd *cobra.Command, c *api.Client, args []string) error) *cobra.Command {
	var t target
	t.flags(c)
	c.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := t.client()
		if err != nil {
			return err
		}
		return do(cmd, client, args)
	}
	return c
}

// shows makes a command one that prints what it reads, as a table or as json.
func shows[T any](c *cobra.Command, read func(*api.Client, context.Context) (T, error), table func(io.Writer, T)) *cobra.Command {
	var output string
	outputFlag(c, &output)
	return asks(c, func(cmd *cobra.Command, c *api.Client, _ []string) error {
		v, err := read(c, cmd.Context())
		if err != nil {
			return err
		}
		return show(cmd.OutOrStdout(), output, v, table)
	})
}

// show prints what was read as --output says.
func show[T any](w io.Writer, output string, v T, table func(io.Writer, T)) error {
	if output != "json" {
		table(w, v)
		return nil
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// outputFlag lets a command print a table, or json.
func outputFlag(c *cobra.Command, output *string) {
	c.Flags().StringVarP(output, "output", "o", "table", "table or json")
	c.PreRunE = func(*cobra.Command, []string) error {
		if *output != "table" && *output != "json" {
			return usagef("--output %q is neither table nor json", *output)
		}
		return nil
	}
}

// impatient returns a client that reports at once when nobody answers, for commands that
// try again by themselves.
func (t *target) impatient() (*api.Client, error) { return t.dial(true) }

// keepAsking asks the daemon again and again, until ctx ends or nobody wants the answers. After an
// error it goes on with a new client: a daemon that starts again may have another address.
func keepAsking[T any](ctx context.Context, t *target, ask func(*api.Client) (T, error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for ctx.Err() == nil {
			c, err := t.impatient()
			for {
				var v T
				if err == nil {
					v, err = ask(c)
				}
				if ctx.Err() != nil || !yield(v, err) {
					return
				}
				if err != nil {
					break
				}
			}
			kv.Pause(ctx, time.Second)
		}
	}
}

func (t *target) dial(impatient bool) (*api.Client, error) {
	endpoint := cmp.Or(t.endpoint, os.Getenv("KURA_ENDPOINT"))
	if endpoint == "" {
		text, err := os.ReadFile(filepath.Join(t.dataDir, endpointFile))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("find the daemon: %w", err)
		}
		endpoint = cmp.Or(strings.TrimSpace(string(text)), api.DefaultEndpoint)
	}
	token := t.token
	if token == "" && t.tokenFile == "" {
		token = os.Getenv("KURA_TOKEN")
	}
	if token == "" {
		path := cmp.Or(t.tokenFile, os.Getenv("KURA_TOKEN_FILE"), filepath.Join(t.dataDir, tokenFile))
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the token: %w; name another file with --token-file or KURA_TOKEN_FILE, or the daemon's data directory with --data-dir", err)
		}
		token = strings.TrimSpace(string(text))
	}
	ca, err := t.authority(endpoint)
	if err != nil {
		return nil, err
	}
	return api.New(api.Config{Endpoint: endpoint, Token: api.NewSecret(token), CACertificate: ca, Environment: os.Getenv("KURA_ENVIRONMENT"), Impatient: impatient, UserAgent: "kurad/" + version})
}

// authority returns the certificates that the daemon's own must come from; "" means
// those that the system trusts.
func (t *target) authority(endpoint string) (string, error) {
	if !strings.HasPrefix(endpoint, "https://") {
		return "", nil
	}
	named := cmp.Or(t.caFile, os.Getenv("KURA_CA_CERTIFICATE"))
	text, err := os.ReadFile(cmp.Or(named, filepath.Join(t.dataDir, tlsFolder, server.CAFile)))
	if named == "" && errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read the certificate authority: %w; name another file with --ca-certificate or KURA_CA_CERTIFICATE", err)
	}
	return string(text), nil
}
