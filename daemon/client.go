package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
)

// files in the data directory, by which the other commands find a daemon.
const (
	tokenFile    = "token"
	endpointFile = "endpoint"
)

// writeEndpoint leaves the API's address for the other commands.
func writeEndpoint(dataDir string, addr net.Addr) error {
	path := filepath.Join(dataDir, endpointFile)
	if err := os.WriteFile(path, []byte("http://"+addr.String()+"\n"), 0o600); err != nil {
		return fmt.Errorf("leave the address for the other commands: %w", err)
	}
	return nil
}

// target says which daemon a command talks to: flags first, then KURA_*, then the data
// directory.
type target struct {
	endpoint, token, tokenFile, dataDir string
}

func (t *target) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.endpoint, "endpoint", "", "address of the daemon (KURA_ENDPOINT, or found in the data directory)")
	f.StringVar(&t.tokenFile, "token-file", "", "file that holds the token (KURA_TOKEN_FILE or KURA_TOKEN, or found in the data directory)")
	f.StringVar(&t.dataDir, "data-dir", defaultDataDir(), "data directory of a daemon on this machine (KURA_DATA_DIR)")
}

func (t *target) client() (*api.Client, error) {
	endpoint := first(t.endpoint, os.Getenv("KURA_ENDPOINT"))
	if endpoint == "" {
		text, err := os.ReadFile(filepath.Join(t.dataDir, endpointFile))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("find the daemon: %w", err)
		}
		endpoint = first(strings.TrimSpace(string(text)), api.DefaultEndpoint)
	}
	token := t.token
	if token == "" && t.tokenFile == "" {
		token = os.Getenv("KURA_TOKEN")
	}
	if token == "" {
		path := first(t.tokenFile, os.Getenv("KURA_TOKEN_FILE"), filepath.Join(t.dataDir, tokenFile))
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read the token: %w; name another file with --token-file or KURA_TOKEN_FILE, or the daemon's data directory with --data-dir", err)
		}
		token = strings.TrimSpace(string(text))
	}
	return api.New(api.Config{Endpoint: endpoint, Token: api.NewSecret(token), UserAgent: "kurad/" + version})
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
