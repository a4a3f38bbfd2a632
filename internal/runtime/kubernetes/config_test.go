package kubernetes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

const kubeconfig = `
apiVersion: v1
kind: Config
clusters:
- {name: eu, cluster: {server: "https://eu.example.dev:6443"}}
- {name: us, cluster: {server: "https://us.example.dev"}}
users:
- {name: kurad, user: {token: secret}}
contexts:
- {name: eu-admin, context: {cluster: eu, user: kurad}}
- {name: us, context: {cluster: us, user: kurad}}
- {name: torn, context: {cluster: gone, user: kurad}}
current-context: us
`

func writeConfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(path, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestParseClusters_readsContextsAndLimits(t *testing.T) {
	path := writeConfig(t)
	got, err := ParseClusters(path, []string{"eu=eu-admin,qps=20,burst=40", "us=us"})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Name != "eu" || got[0].QPS != 20 || got[0].Burst != 40 || got[0].REST.Host != "https://eu.example.dev:6443" || got[0].REST.BearerToken != "secret" {
		t.Errorf("first: %+v", got[0])
	}
	if got[1].Name != "us" || got[1].QPS != 50 || got[1].Burst != 100 || got[1].REST.Host != "https://us.example.dev" {
		t.Errorf("second: %+v", got[1])
	}
	t.Setenv("KUBECONFIG", path)
	if got, err := ParseClusters("", []string{"us=us"}); err != nil || len(got) != 1 {
		t.Errorf("by KUBECONFIG: %v, %v", got, err)
	}
	if got, err := ParseClusters("", nil); err != nil || len(got) != 0 {
		t.Errorf("without clusters: %v, %v", got, err)
	}
}

func TestParseClusters_saysWhatIsWrongAndWhatToDo(t *testing.T) {
	path := writeConfig(t)
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for flags, want := range map[string]string{
		"":                    "name those of its contexts that kurad may use, such as --cluster",
		"eu":                  "write name=context",
		"=us":                 "write name=context",
		"eu=":                 "write name=context",
		"EU=us":               `the name "EU" may hold only lower-case`,
		"-eu=us":              "begins and ends with a letter or digit",
		"eu=us,qps=0":         "qps=0 is no number of calls per second",
		"eu=us,qps=NaN":       "qps=NaN",
		"eu=us,burst=x":       "burst=x is no number of calls",
		"eu=us,burst=1,qps":   "qps= is no number",
		"eu=us,qps=1,qps=2":   "qps is given twice",
		"eu=us,color=red":     `"color=red" is neither qps=… nor burst=…`,
		"eu=us eu=eu-admin":   `the name "eu" is given twice`,
		"eu=nothing":          `has no context "nothing" (it has: eu-admin, torn, us)`,
		"eu=torn":             `context "torn"`,
		"eu=in-cluster":       "does not run in a pod",
		"eu=us ok=eu-admin,x": `--cluster ok=eu-admin,x: "x" is neither`,
	} {
		_, err := ParseClusters(path, strings.Fields(flags))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", flags, err, want)
		}
	}
	if _, err := ParseClusters(filepath.Join(t.TempDir(), "none"), []string{"eu=us"}); err == nil || !strings.Contains(err.Error(), "none") {
		t.Errorf("without a file: %v", err)
	}
}

func TestOpen_refusesWhatCannotBeTrusted(t *testing.T) {
	env := fleet.Environment{Name: "test"}
	for want, cfg := range map[string]Config{
		"no way to reach it":      {Environment: env},
		"no environment is given": {REST: &rest.Config{Host: "https://a"}},
		"is not https":            {REST: &rest.Config{Host: "http://a.example.dev:8080"}, Environment: env},
		"certificates":            {REST: &rest.Config{Host: "https://a", TLSClientConfig: rest.TLSClientConfig{CAFile: "/nowhere"}}, Environment: env},
	} {
		cfg.Name = "eu"
		c, err := Open(cfg)
		if want == "certificates" {
			want = "/nowhere"
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `open cluster "eu"`) {
			t.Errorf("%v, %v, want %q", c, err, want)
		}
	}
	for _, host := range []string{"http://127.0.0.1:8001", "http://localhost:8001", "http://[::1]:8001", "https://a.example.dev"} {
		c, err := Open(Config{Name: "eu", REST: &rest.Config{Host: host}, Environment: env})
		if err != nil || c.cfg.Name != "eu" || c.Close() != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}
