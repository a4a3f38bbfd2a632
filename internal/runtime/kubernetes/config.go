package kubernetes

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/runtime"
)

// Config describes one cluster.
type Config struct {
	Name string
	// REST says how the API server is reached. Its UserAgent is how we call ourselves
	// there; QPS and Burst below count, not its own.
	REST  *rest.Config
	QPS   float32 // calls per second; 0: 50
	Burst int     // calls at once; 0: 100

	Environment fleet.Environment
	Logger      hclog.Logger     // nil: none
	Now         func() time.Time // nil: time.Now
}

const (
	defaultQPS   = float32(50)
	defaultBurst = 100
)

// inCluster is the context that stands for the account of the pod that kurad runs in.
const inCluster = "in-cluster"

const clusterExample = "name=context[,qps=50][,burst=100] or name=in-cluster"

// ParseClusters reads clusters as they are given on the command line:
//
//	name=context[,qps=50][,burst=100]
//	name=in-cluster
//
// A context is one of the file kubeconfig, or, where that is "", of those that KUBECONFIG
// lists or of ~/.kube/config; in-cluster is the account of the pod that kurad runs in.
// What is not said here (environment, logger, clock) is for the caller to add.
func ParseClusters(kubeconfig string, flags []string) ([]Config, error) {
	if kubeconfig != "" && len(flags) == 0 {
		return nil, fmt.Errorf("--kubeconfig %s is given, and no --cluster: name those of its contexts that kurad may use, such as --cluster eu=<context>", kubeconfig)
	}
	var out []Config
	seen := map[string]bool{}
	for _, flag := range flags {
		c, context, err := parseCluster(flag)
		if err == nil && seen[c.Name] {
			err = fmt.Errorf("the name %q is given twice; choose another", c.Name)
		}
		if err == nil {
			c.REST, err = restConfig(kubeconfig, context)
		}
		if err != nil {
			return nil, fmt.Errorf("--cluster %s: %w", flag, err)
		}
		seen[c.Name] = true
		out = append(out, c)
	}
	return out, nil
}

func parseCluster(flag string) (c Config, context string, err error) {
	c = Config{QPS: defaultQPS, Burst: defaultBurst}
	c.Name, context, err = runtime.ParseFlag(flag, "name=context", c.set)
	if err != nil {
		err = fmt.Errorf("%w; write %s", err, clusterExample)
	}
	return c, context, err
}

func (c *Config) set(key, value string) error {
	switch key {
	case "qps":
		f, err := strconv.ParseFloat(value, 32)
		if err != nil || math.IsNaN(f) || f < 1 || f > 10000 {
			return fmt.Errorf("qps=%s is no number of calls per second from 1 to 10000", value)
		}
		c.QPS = float32(f)
	case "burst":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > 10000 {
			return fmt.Errorf("burst=%s is no number of calls from 1 to 10000", value)
		}
		c.Burst = n
	default:
		return fmt.Errorf("%q is neither qps=… nor burst=…", strings.TrimSuffix(key+"="+value, "="))
	}
	return nil
}

// restConfig says how the API server of a context is reached.
func restConfig(kubeconfig, context string) (*rest.Config, error) {
	if context == inCluster {
		cfg, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("kurad does not run in a pod with a service account (%w); name a context of a kubeconfig", err)
		}
		return cfg, nil
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = kubeconfig
	from := cmp.Or(kubeconfig, strings.Join(rules.Precedence, ", "))
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: context})
	loaded, err := loader.RawConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", from, err)
	}
	if _, ok := loaded.Contexts[context]; !ok {
		return nil, fmt.Errorf("kubeconfig %s has no context %q (it has: %s)", from, context, runtime.OrNone(sortedKeys(loaded.Contexts)))
	}
	cfg, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s, context %q: %w", from, context, err)
	}
	return cfg, nil
}
