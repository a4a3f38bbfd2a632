package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

func snapshotCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "snapshot",
		Short: "Save, verify and restore all that a daemon has stored",
		Long: "A snapshot holds all records of one environment at one revision. It can be restored into an empty data\n" +
			"directory or an empty etcd cluster, whatever it was taken from. It holds what was declared, variables of\n" +
			"workloads included, and the hashes of tokens: keep it as you keep the data directory.",
	}
	c.AddCommand(snapshotSaveCommand(), snapshotVerifyCommand(), snapshotRestoreCommand())
	return c
}

func snapshotSaveCommand() *cobra.Command {
	var output string
	c := asks(&cobra.Command{
		Use:     "save",
		Short:   "Save a snapshot of the running daemon",
		Example: "  kurad snapshot save --output /backup/kura.snapshot",
		Args:    cobra.NoArgs,
	}, func(cmd *cobra.Command, c *api.Client, _ []string) error {
		if output == "" {
			output = "kura-" + time.Now().UTC().Format("20060102-150405") + ".snapshot"
		}
		info, err := saveSnapshot(output, cmd.OutOrStdout(), func(w io.Writer) error { return c.SaveSnapshot(cmd.Context(), w) })
		if err != nil {
			return err
		}
		if output != "-" {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: %d records of environment %s at revision %d\n", output, info.Records, info.Environment, info.Revision)
		}
		return nil
	})
	c.Flags().StringVar(&output, "output", "", "file to write, or - for standard output; kura-<time>.snapshot in this folder by default")
	return c
}

// saveSnapshot writes a snapshot to a file that nobody else can read, and checks it
// before it takes its name: what is there under that name stays until a whole one is.
func saveSnapshot(output string, stdout io.Writer, save func(io.Writer) error) (info store.Snapshot, err error) {
	dir := filepath.Dir(output)
	if output == "-" {
		dir = ""
	}
	f, err := os.CreateTemp(dir, ".kura-*.snapshot") // 0600
	if err != nil {
		return info, fmt.Errorf("save a snapshot: %w", err)
	}
	defer func() {
		f.Close()
		if err != nil || output == "-" {
			os.Remove(f.Name())
		}
	}()
	if err := save(f); err != nil {
		return info, err
	}
	if info, err = store.Verify(fromStart(f)); err != nil {
		return info, fmt.Errorf("save a snapshot: what the daemon sent is not whole (its log may say why): %w", err)
	}
	if output == "-" {
		_, err = io.Copy(stdout, fromStart(f))
	} else if err = f.Sync(); err == nil {
		err = os.Rename(f.Name(), output)
	}
	if err != nil {
		return info, fmt.Errorf("save a snapshot: %w", err)
	}
	return info, nil
}

// fromStart reads all of a file, wherever it was read before.
func fromStart(f *os.File) io.Reader { return io.NewSectionReader(f, 0, math.MaxInt64) }

func snapshotVerifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify FILE",
		Short: "Check that a snapshot is whole and say what it holds",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			info, err := store.Verify(f)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			listSnapshot(cmd.OutOrStdout(), info)
			return nil
		},
	}
}

// listSnapshot says what a snapshot holds: how many of what, never a value or a name.
func listSnapshot(w io.Writer, info store.Snapshot) {
	out := newTable(w)
	out.AppendRows([]table.Row{
		{"Environment", info.Environment}, {"Taken at", info.TakenAt.Format(time.RFC3339)}, {"Store", info.StoreID},
		{"Revision", info.Revision}, {"Schema", info.Schema}, {"Records", info.Records},
	})
	for _, kind := range slices.Sorted(maps.Keys(info.Kinds)) {
		out.AppendRow(table.Row{"  " + string(kind), info.Kinds[kind]})
	}
	out.Render()
}

func snapshotRestoreCommand() *cobra.Command {
	var (
		environment, dataDir string
		in                   storeOptions
	)
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Restore a snapshot into an empty store; no daemon may run on it",
		Long: "Restore a snapshot into an empty data directory, or with --store-endpoints into an etcd cluster that holds\n" +
			"nothing of the environment yet. The whole file is checked before anything is written, and a restore that\n" +
			"was broken off is repeated by the same command. This is also how a daemon moves from its data directory to\n" +
			"an etcd cluster: save, stop it, restore with --store-endpoints, start it with --store-endpoints.",
		Example: "  kurad snapshot restore kura.snapshot --environment production --data-dir /var/lib/kurad\n" +
			"  kurad snapshot restore kura.snapshot --environment production --store-endpoints https://etcd-1:2379,https://etcd-2:2379",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if environment == "" {
				return errors.New("no environment is given: set --environment to the one that the snapshot holds; kurad snapshot verify says which")
			}
			info, err := restoreSnapshot(cmd.Context(), args[0], environment, dataDir, in)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			next := "--data-dir " + dataDir
			if in.shared() {
				next = "--store-endpoints"
			}
			fmt.Fprintf(cmd.OutOrStdout(), "restored %d records of environment %s as of %s\nnext: start the daemon with the flags it had before and %s; the tokens of the snapshot are valid again\n",
				info.Records, info.Environment, info.TakenAt.Format(time.RFC3339), next)
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&environment, "environment", os.Getenv("KURA_ENVIRONMENT"), "environment that the snapshot must hold (KURA_ENVIRONMENT)")
	f.StringVar(&dataDir, "data-dir", defaultDataDir(), "data directory to restore into (KURA_DATA_DIR)")
	in.flags(f)
	return c
}

func restoreSnapshot(ctx context.Context, path, environment, dataDir string, in storeOptions) (info store.Snapshot, err error) {
	f, err := os.Open(path)
	if err != nil {
		return info, err
	}
	defer f.Close()
	// Once more than Restore does, but before an empty data directory is made for nothing.
	if _, err := store.Verify(fromStart(f)); err != nil {
		return info, err
	}
	if err := checkDataDir(dataDir, environment); err != nil {
		return info, err
	}
	s, err := in.open(ctx, dataDir, environment, hclog.NewNullLogger())
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return store.Restore(ctx, s, environment, f)
}
