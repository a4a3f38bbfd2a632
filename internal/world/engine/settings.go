package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// variant is one way to configure Podman on this machine.
type variant struct {
	name       string
	says       string // what is changed and why, for the log
	containers string // lines of [containers]
	engine     string // lines of [engine]
	driver     string // storage driver; empty: the machine's
}

// variants in the order in which they are tried. On kernels with cgroup v1, where
// raising limits is forbidden (as in many sandboxes), crun fails with "hybrid mode"
// and "setrlimit"; runc with modest limits works. Where the folder lies on a file
// system that overlay cannot stand on, vfs works.
func variants() []variant {
	const ulimits = `default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]` + "\n"
	const runc = `runtime = "runc"` + "\n"
	return []variant{
		{name: "machine", says: "the machine's own settings"},
		{name: "runc", says: "runc with limits of 1024 instead of the machine's runtime and limits", containers: ulimits, engine: runc},
		{name: "vfs", says: "runc with limits of 1024 and the vfs storage driver instead of the machine's", containers: ulimits, engine: runc, driver: "vfs"},
	}
}

// settings are a configured Podman below dir.
type settings struct {
	dir    string // images, containers, networks
	state  string // what lives as long as the machine runs
	driver string
}

// settingsOf places variant v of the engine in dir with its short state folder.
func settingsOf(v variant, dir, state string) settings {
	return settings{dir: filepath.Join(dir, v.name), state: filepath.Join(state, v.name), driver: v.driver}
}

func (s settings) flags() []string {
	flags := []string{
		"--root", filepath.Join(s.dir, "root"),
		"--runroot", filepath.Join(s.state, "run"),
		"--tmpdir", filepath.Join(s.state, "tmp"),
		"--network-config-dir", filepath.Join(s.dir, "net"),
	}
	if s.driver != "" {
		flags = append(flags, "--storage-driver", s.driver)
	}
	return flags
}

func (s settings) env() []string {
	env := append(os.Environ(), "CONTAINERS_CONF="+filepath.Join(s.dir, "containers.conf"))
	if _, err := os.Stat(s.registries()); err == nil {
		env = append(env, "CONTAINERS_REGISTRIES_CONF="+s.registries())
	}
	return env
}

func (s settings) registries() string { return filepath.Join(s.dir, "registries.conf") }

// run runs podman with these settings. Its error carries what podman said.
func (s settings) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "podman", append(s.flags(), args...)...)
	cmd.Env = s.env()
	// Whatever keeps the pipes open after podman (conmon) must not keep us.
	cmd.WaitDelay = 5 * time.Second
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("podman %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(said.String()))
	}
	return out.String(), nil
}

// clear removes every container, at once; with it go its network namespace and the
// processes that watch it.
func (s settings) clear(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.dir, "containers.conf")); err != nil {
		return nil
	}
	if _, err := s.run(ctx, "rm", "--all", "--force", "--time", "0"); err != nil {
		return err
	}
	return nil
}

// chooseSettings takes the first variant that runs a container with a published port.
func (e *Engine) chooseSettings(ctx context.Context, plain []string) error {
	worker, err := buildWorker(ctx)
	if err != nil {
		return err
	}
	var refused []error
	for _, v := range variants() {
		s := settingsOf(v, e.dir, e.state)
		err := s.write(v, e.net, plain)
		if err == nil {
			err = s.try(ctx, worker)
		}
		if err == nil {
			if len(refused) > 0 {
				e.log.Info("podman: changed settings, for this engine only", "settings", v.says, "because", refused[0])
			}
			e.settings = s
			return nil
		}
		refused = append(refused, fmt.Errorf("with %s: %w", v.says, err))
		if err := errors.Join(s.clear(ctx), removeTree(s.state), removeTree(s.dir)); err != nil {
			return err
		}
		if ctx.Err() != nil {
			break
		}
	}
	return fmt.Errorf("podman runs no container on this machine (needed: podman runc crun netavark iptables): %w", errors.Join(refused...))
}

// write makes the folder with a containers.conf and the network of this engine.
func (s settings) write(v variant, n network, plain []string) error {
	if err := os.MkdirAll(filepath.Join(s.dir, "net"), 0o700); err != nil {
		return err
	}
	machine, err := machineConf()
	if err != nil {
		return err
	}
	// File locks: the default ones are one shared memory segment for all engines of
	// the machine, which a new engine clears when it starts.
	conf := merge(machine, map[string]string{
		"containers": v.containers,
		"engine":     "lock_type = \"file\"\nevents_logger = \"file\"\n" + v.engine,
		"network":    "network_backend = \"netavark\"\ndefault_network = \"" + n.name() + "\"\n",
	})
	if len(plain) > 0 {
		var registries strings.Builder
		for _, host := range plain {
			fmt.Fprintf(&registries, "[[registry]]\nlocation = %q\ninsecure = true\n", host)
		}
		if err := os.WriteFile(s.registries(), []byte(registries.String()), 0o600); err != nil {
			return err
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(s.dir, "containers.conf"), []byte(conf), 0o600),
		os.WriteFile(filepath.Join(s.dir, "net", n.name()+".json"), n.document(), 0o600),
	)
}

// try runs a container once, with a published port.
func (s settings) try(ctx context.Context, worker string) error {
	const image = "localhost/kura-engine-try:1"
	if err := s.buildImage(ctx, image, worker); err != nil {
		return err
	}
	if _, err := s.run(ctx, "run", "--rm", "--publish", "127.0.0.1::8080", image, "exit", "0"); err != nil {
		return err
	}
	_, err := s.run(ctx, "rmi", image)
	return err
}

// answers reports whether something accepts connections at the socket.
func answers(ctx context.Context, socket string) bool {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}
