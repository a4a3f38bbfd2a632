package main

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// kuradCommand runs a command line in this process.
func kuradCommand(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), late)
	defer cancel()
	var out, said bytes.Buffer
	c := command()
	c.SetArgs(args)
	c.SetOut(&out)
	c.SetErr(&said)
	err = c.ExecuteContext(ctx)
	return out.String(), said.String(), err
}

// noEnvironment takes what this shell has set out of the way.
func noEnvironment(t *testing.T) {
	t.Helper()
	for _, name := range []string{"KURA_ENVIRONMENT", "KURA_DATA_DIR", "KURA_ENDPOINT", "KURA_TOKEN", "KURA_TOKEN_FILE", "KURA_CA_CERTIFICATE"} {
		t.Setenv(name, "")
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestServe_refusesFlagsThatMeanNothingBeforeItOpensAnything(t *testing.T) {
	noEnvironment(t)
	t.Cleanup(restoreLoggers)
	staging := func(args ...string) []string { return append([]string{"--environment", "staging"}, args...) }
	local := "local=unix:///run/podman.sock"
	kubeconfig := file(t, "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: https://127.0.0.1:6443}}]\n"+
		"users: [{name: u, user: {token: t}}]\ncontexts: [{name: admin, context: {cluster: c, user: u}}]\n")
	for name, tt := range map[string]struct {
		args []string
		want []string // parts of the error
	}{
		"no environment":                         {nil, []string{"--environment", "staging", "--env-suffix"}},
		"L25: unknown environment, no suffix":    {[]string{"--environment", "preview"}, []string{`"preview"`, "suffix", `"-preview"`}},
		"H1: suffix without its dash":            {[]string{"--environment", "preview", "--env-suffix", "preview"}, []string{`"preview"`, `"-preview"`}},
		"H1: another suffix for staging":         {staging("--env-suffix", "-stage"), []string{`"staging"`, `"-staging"`, `"-stage"`}},
		"H2: suffix that ends in another":        {[]string{"--environment", "x", "--env-suffix", "-x-staging"}, []string{`"-x-staging"`, `"-staging"`}},
		"neighbour without a suffix":             {staging("--zone-environment", "preview="), []string{`"preview"`, "suffix"}},
		"endpoint without a socket":              {staging("--container-endpoint", "local"), []string{`"local"`, "name=unix:///"}},
		"endpoint over tcp without TLS":          {staging("--container-endpoint", "local=tcp://10.0.0.1:2375"), []string{"tcp://", "has no TLS"}},
		"endpoint with files that are not there": {staging("--container-endpoint", "local=tcp://10.0.0.1:2376,ca=/no/such.pem"), []string{`"local"`, "/no/such.pem"}},
		"endpoint with a bad range":              {staging("--container-endpoint", local+",ports=9-5"), []string{"9-5", "20000-29999"}},
		"endpoint given twice":                   {staging("--container-endpoint", local, "--container-endpoint", local), []string{`"local"`, "twice"}},
		"bad cidr":                               {staging("--probe-allow-cidr", "10/8"), []string{"--probe-allow-cidr", `"10/8"`, "10.0.0.0/8"}},
		"cidr with bits after its length":        {staging("--probe-allow-cidr", "10.0.0.1/8"), []string{"--probe-allow-cidr", "10.0.0.0/8"}},
		"CA file that is not there":              {staging("--probe-ca", "/no/such.pem"), []string{"--probe-ca", "/no/such.pem"}},
		"CA file without a certificate":          {staging("--probe-ca", file(t, "hello")), []string{"--probe-ca", "PEM"}},
		"tick too short":                         {staging("--tick", "1ms"), []string{"--tick", "1ms", "100ms"}},
		"H8: an alias period of no length":       {staging("--alias-period", "0s"), []string{"--alias-period", "168h"}},
		"K5: an orphan period that is too short": {staging("--orphan-period", "10s"), []string{"--orphan-period", "1m"}},
		"C9: an address of the network":          {staging("--listen", "0.0.0.0:7433"), []string{"--listen", "0.0.0.0:7433", "loopback"}},
		"an address without a port":              {staging("--listen", "127.0.0.1"), []string{"--listen", "127.0.0.1:7433"}},
		"log level":                              {staging("--log-level", "loud"), []string{"--log-level", `"loud"`, "debug"}},
		"log format":                             {staging("--log-format", "xml"), []string{"--log-format", `"xml"`, "json"}},
		"a cluster without its context":          {staging("--cluster", "eu"), []string{"--cluster eu", "name=context"}},
		"a cluster given twice":                  {staging("--kubeconfig", kubeconfig, "--cluster", "eu=admin", "--cluster", "eu=admin"), []string{`"eu"`, "twice"}},
		"a context that is not there":            {staging("--kubeconfig", kubeconfig, "--cluster", "eu=other"), []string{"--cluster eu=other", `"other"`, "admin"}},
		"a kubeconfig that is not there":         {staging("--kubeconfig", "/no/such/config", "--cluster", "eu=admin"), []string{"/no/such/config"}},
		"a kubeconfig and no cluster":            {staging("--kubeconfig", kubeconfig), []string{"--kubeconfig", "--cluster"}},
		"variable set that is not there":         {staging("--container-endpoint", local, "--env-set", "s3=/no/such.env"), []string{"--env-set s3", "/no/such.env"}},
		"variable set with a line that is not":   {staging("--env-set", "s3="+file(t, "# keys\n\nKEY=a=b\nNONSENSE\n")), []string{"--env-set s3", "line 4", "NAME=value"}},
		"an argument":                            {staging("now"), []string{`"now"`}},
		"a flag that does not exist":             {staging("--tock", "1s"), []string{"--tock"}},
		"a duration without its unit":            {staging("--tick", "10"), []string{"--tick", "10"}},
		"a zone environment without a name=text": {staging("--zone-environment", "preview"), []string{"--zone-environment", "preview"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			_, _, err := kuradCommand(t, append([]string{"serve", "--data-dir", dir}, tt.args...)...)
			if err == nil {
				t.Fatalf("serve %v was not refused", tt.args)
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("serve %v: error %q does not say %q", tt.args, err, part)
				}
			}
			for _, flag := range []string{"--probe-ca", "--probe-allow-cidr", "--listen"} {
				if strings.Count(err.Error(), flag) > 1 {
					t.Errorf("serve %v: error %q stutters", tt.args, err)
				}
			}
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("serve %v left a data directory", tt.args)
			}
		})
	}
}

func TestServe_everyFlagIsInTheReadme(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]bool{}
	for line := range strings.Lines(string(readme)) {
		cells := strings.Split(line, "|")
		if len(cells) < 2 || !strings.HasPrefix(line, "| `--") {
			continue
		}
		for _, flag := range regexp.MustCompile("`--([a-z-]+)`").FindAllStringSubmatch(cells[1], -1) {
			table[flag[1]] = true
		}
	}
	serveCommand().Flags().VisitAll(func(f *pflag.Flag) {
		if !table[f.Name] {
			t.Errorf("README's table of flags lacks --%s: %s", f.Name, f.Usage)
		}
		delete(table, f.Name)
	})
	if len(table) > 0 {
		t.Errorf("README's table has flags that serve has not: %v", slices.Sorted(maps.Keys(table)))
	}
}

func TestServe_readsVariableSetsWithoutTheirComments(t *testing.T) {
	got, err := readEnvSet(file(t, "# keys of the bucket\n\n KEY=a=b\nEMPTY=\n"))
	if err != nil || len(got) != 2 || got["KEY"] != "a=b" || got["EMPTY"] != "" {
		t.Errorf("read %v, %v", got, err)
	}
}

func TestRuntimes_sayAtWhichFieldARegionAsksForWhatIsNotThere(t *testing.T) {
	o := optionsFor(t)
	d, err := newDaemon(t.Context(), o, discardLog())
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	p := d.runtimes
	if got := p.ContainerEndpoints(); len(got) != 1 || got[0] != "local" {
		t.Errorf("endpoints %v", got)
	}
	for name, tt := range map[string]struct {
		region string
		want   []string
	}{
		"another endpoint": {"containers", []string{"/containers/endpoint", `"other"`, "local", "--container-endpoint other="}},
		"a cluster":        {"kubernetes", []string{"/kubernetes/cluster", `"prod-1"`, "none", "--cluster prod-1="}},
	} {
		t.Run(name, func(t *testing.T) {
			err := p.Region(regionOf(tt.region))
			if err == nil {
				t.Fatal("it was accepted")
			}
			for _, part := range tt.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
			if _, _, ok := p.PortRange(regionOf(tt.region)); ok {
				t.Error("it has a range of ports")
			}
		})
	}
}
