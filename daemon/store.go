package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/go-hclog"
	"github.com/spf13/pflag"

	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// storeOptions say where the records are kept: in the data directory, or in an etcd
// cluster that several kurads share.
type storeOptions struct {
	cluster store.ClusterOptions
}

func (o *storeOptions) flags(f *pflag.FlagSet) {
	f.StringSliceVar(&o.cluster.Endpoints, "store-endpoints", nil, "client URLs of an etcd cluster that keeps the records, https://host:2379 or http://host:2379, separated by commas; by default they are kept in the data directory")
	f.StringVar(&o.cluster.CAFile, "store-ca", "", "PEM file of the certificate authority of --store-endpoints; the system's by default")
	f.StringVar(&o.cluster.CertFile, "store-cert", "", "PEM file of the client certificate for --store-endpoints; read again when it was renewed")
	f.StringVar(&o.cluster.KeyFile, "store-key", "", "PEM file of the key of --store-cert")
}

// shared reports whether other kurads may use the same store.
func (o *storeOptions) shared() bool { return len(o.cluster.Endpoints) > 0 }

// open opens the store, and makes the data directory where there is none yet: the first
// token and the address are kept there in any case.
func (o *storeOptions) open(dataDir string, log hclog.Logger) (store.Store, error) {
	if !o.shared() {
		if o.cluster.CAFile+o.cluster.CertFile+o.cluster.KeyFile != "" {
			return nil, errors.New("--store-ca, --store-cert and --store-key are for an etcd cluster: give --store-endpoints as well")
		}
		s, err := store.OpenEmbedded(store.Options{Dir: filepath.Join(dataDir, "store"), Logger: log})
		if err != nil {
			return nil, fmt.Errorf("open the store: %w", err)
		}
		return s, nil
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return nil, fmt.Errorf("make the data directory: %w", err)
	}
	options := o.cluster
	options.Logger = log
	s, err := store.OpenCluster(options)
	if err != nil {
		return nil, err
	}
	return s, nil
}
