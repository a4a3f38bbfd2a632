package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"

	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/store/etcd"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// storeOptions say where the records are kept: in the data directory, or in an etcd
// cluster that several kurads share.
type storeOptions struct {
	cluster etcd.ClusterOptions
}

func (o *storeOptions) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.cluster.Endpoints, "store-endpoints", nil, "client URLs of an etcd cluster that keeps the records, https://host:2379 or http://host:2379, separated by commas; by default they are kept in the data directory")
	f.StringVar(&o.cluster.CAFile, "store-ca", "", "PEM file of the certificate authority of --store-endpoints; the system's by default")
	f.StringVar(&o.cluster.CertFile, "store-cert", "", "PEM file of the client certificate for --store-endpoints; read again when it was renewed")
	f.StringVar(&o.cluster.KeyFile, "store-key", "", "PEM file of the key of --store-cert")
}

// shared reports whether other kurads may use the same store.
func (o *storeOptions) shared() bool { return len(o.cluster.Endpoints) > 0 }

// environmentFile says in the data directory whose it is: the token, the address and the
// audit log are one environment's, wherever the records are.
const environmentFile = "environment"

// checkDataDir refuses the data directory of another environment, before anything in it is
// opened or written.
func checkDataDir(dataDir, environment string) error {
	text, err := os.ReadFile(filepath.Join(dataDir, environmentFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read whose data directory it is: %w", err)
	}
	if holds := strings.TrimSpace(string(text)); holds != "" && holds != environment {
		return ofAnotherEnvironment(dataDir, holds, environment)
	}
	return nil
}

// claimDataDir says whose the data directory is from now on.
func claimDataDir(dataDir, environment string) error {
	if err := os.WriteFile(filepath.Join(dataDir, environmentFile), []byte(environment+"\n"), 0o600); err != nil {
		return fmt.Errorf("say whose data directory it is: %w", err)
	}
	return nil
}

func ofAnotherEnvironment(dataDir, holds, environment string) error {
	return fmt.Errorf("data directory %s: this store holds environment %q and not %q; correct --environment, or give another --data-dir", dataDir, holds, environment)
}

// open opens the store for an environment, and makes the data directory where there is none
// yet: the first token and the address are kept there in any case. Environments may share an
// etcd cluster, but no data directory.
func (o *storeOptions) open(ctx context.Context, dataDir, environment string, log hclog.Logger) (kv.Store, error) {
	if !o.shared() {
		if o.cluster.CAFile+o.cluster.CertFile+o.cluster.KeyFile != "" {
			return nil, errors.New("--store-ca, --store-cert and --store-key are for an etcd cluster: give --store-endpoints as well")
		}
		s, err := etcd.OpenEmbedded(etcd.Options{Dir: filepath.Join(dataDir, "store"), Logger: log})
		if err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
		there, err := store.Environments(ctx, s)
		if err == nil && len(there) > 0 && !slices.Contains(there, environment) {
			err = ofAnotherEnvironment(dataDir, there[0], environment)
		}
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		return s, nil
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	options := o.cluster
	options.Logger = log
	s, err := etcd.OpenCluster(options)
	if err != nil {
		return nil, err
	}
	return s, nil
}
