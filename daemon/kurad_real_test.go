//go:build real

package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// patience is how long a test waits for what must happen: far above what it takes.
const patience = 3 * time.Minute

// kurad is the daemon as a process of its own, so that it can be killed.
type kurad struct {
	t      *testing.T
	dir    string
	env    string
	flags  []string
	log    *output
	cmd    *exec.Cmd
	ended  chan error
	client *api.Client
}

// startKurad starts a daemon for staging.
func startKurad(t *testing.T, flags ...string) *kurad { return startKuradFor(t, "staging", flags...) }

func startKuradFor(t *testing.T, environment string, flags ...string) *kurad {
	t.Helper()
	k := newKurad(t, environment, t.TempDir(), real.portRange(), flags...)
	k.start()
	return k
}

// newKurad returns a daemon that start starts. It ends with the test.
func newKurad(t *testing.T, environment, dir, ports string, flags ...string) *kurad {
	t.Helper()
	return newBareKurad(t, environment, dir, append([]string{
		"--container-endpoint", "local=unix://" + real.engine.Socket() + ",address=127.0.0.1,ports=" + ports + ",mounts=" + real.tls,
	}, flags...)...)
}

// newBareKurad is newKurad without a runtime.
func newBareKurad(t *testing.T, environment, dir string, flags ...string) *kurad {
	t.Helper()
	k := &kurad{t: t, dir: dir, env: environment, log: &output{}}
	k.flags = append([]string{
		"serve", "--environment", environment, "--data-dir", k.dir, "--listen", "127.0.0.1:0", "--tick", "1s", "--log-level", "debug",
		"--resolver", real.dns.Addr(), "--probe-ca", real.files.CA, "--probe-allow-cidr", "127.0.0.0/8",
	}, flags...)
	t.Cleanup(func() {
		if k.cmd != nil {
			k.stop()
		}
		if t.Failed() {
			t.Logf("what kurad logged last:\n%s", k.log.tail(120))
		}
	})
	return k
}

func (k *kurad) start() {
	k.t.Helper()
	endpoint := filepath.Join(k.dir, endpointFile)
	if err := os.Remove(endpoint); err != nil && !errors.Is(err, os.ErrNotExist) {
		k.t.Fatal(err)
	}
	k.cmd = exec.Command(real.kurad, k.flags...)
	k.cmd.Stdout, k.cmd.Stderr = k.log, k.log
	if err := k.cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	ended := make(chan error, 1)
	k.ended = ended
	go func(cmd *exec.Cmd) { ended <- cmd.Wait() }(k.cmd)
	eventually(k.t, "kurad answers", func() error {
		select {
		case err := <-ended:
			k.cmd = nil
			k.t.Fatalf("kurad ended: %v\n%s", err, k.log.tail(20))
		default:
		}
		if _, err := os.Stat(endpoint); err != nil {
			return err
		}
		client, err := (&target{dataDir: k.dir}).client()
		if err != nil {
			return err
		}
		k.client = client
		_, err = client.Version(k.t.Context())
		return err
	})
}

// kill ends the daemon as a power cut would.
func (k *kurad) kill() {
	k.t.Helper()
	if err := k.cmd.Process.Kill(); err != nil {
		k.t.Fatal(err)
	}
	_ = k.await() // how it ended is known: it was killed
	k.cmd = nil
}

func (k *kurad) await() error { return <-k.ended }

// stop ends the daemon in order.
func (k *kurad) stop() {
	k.t.Helper()
	if err := k.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		k.t.Errorf("stop kurad: %v", err)
	}
	select {
	case err := <-k.ended:
		if err != nil {
			k.t.Errorf("kurad ended with %v", err)
		}
	case <-time.After(patience):
		k.t.Errorf("kurad does not end %s after SIGTERM", patience)
		_ = k.cmd.Process.Kill()
		_ = k.await() // how it ended is known: it was killed
	}
	k.cmd = nil
}

// raw sends a request as it stands, and returns the status and the body.
func (k *kurad) raw(method, path, body string, header ...string) (int, string) {
	k.t.Helper()
	endpoint, err := os.ReadFile(filepath.Join(k.dir, endpointFile))
	if err != nil {
		k.t.Fatal(err)
	}
	token, err := os.ReadFile(filepath.Join(k.dir, tokenFile))
	if err != nil {
		k.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(k.t.Context(), method, strings.TrimSpace(string(endpoint))+path, strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		k.t.Fatal(err)
	}
	return res.StatusCode, string(answer)
}

// until waits for a server to be as ok says, and returns it.
func (k *kurad) until(key fleet.ServerKey, what string, ok func(fleet.ServerView) bool) fleet.ServerView {
	k.t.Helper()
	var v fleet.ServerView
	eventually(k.t, key.String()+": "+what, func() (err error) {
		if v, err = k.client.GetServer(k.t.Context(), key, api.GetOptions{}); err != nil {
			return err
		}
		if !ok(v) {
			return fmt.Errorf("it is %s", brief(v))
		}
		return nil
	})
	return v
}

// converged waits for a server to serve an image with nothing open.
func (k *kurad) converged(key fleet.ServerKey, tag string) fleet.ServerView {
	k.t.Helper()
	return k.until(key, "converges on "+tag, func(v fleet.ServerView) bool { return isConverged(v) && v.ServingImageTag == tag })
}

func isConverged(v fleet.ServerView) bool {
	return v.Verdict == fleet.VerdictConverged && v.Reason == "" && v.Plan == nil && v.Status == fleet.StatusActive
}

// failed waits for a server to have failed for a reason.
func (k *kurad) failed(key fleet.ServerKey, reason fleet.Reason) fleet.ServerView {
	k.t.Helper()
	return k.until(key, "fails with "+string(reason), func(v fleet.ServerView) bool {
		return v.Status == fleet.StatusFailed && v.Verdict == fleet.VerdictFailed && v.Reason == reason
	})
}

// gone waits for a server's record to be gone.
func (k *kurad) gone(key fleet.ServerKey) {
	k.t.Helper()
	eventually(k.t, key.String()+" is gone", func() error {
		v, err := k.client.GetServer(k.t.Context(), key, api.GetOptions{})
		if fleet.CodeOf(err) == fleet.CodeNotFound {
			return nil
		}
		return cmp.Or(err, fmt.Errorf("it is %s", brief(v)))
	})
}

// events returns the reasons of a server's events, the oldest first, and their messages.
func (k *kurad) events(key fleet.ServerKey) (reasons []string, messages string) {
	k.t.Helper()
	list, err := k.client.Events(k.t.Context(), api.EventFilter{Account: key.Account, Region: key.Region, Limit: 200})
	if err != nil {
		k.t.Fatal(err)
	}
	var b strings.Builder
	for i := len(list) - 1; i >= 0; i-- {
		reasons = append(reasons, list[i].Reason)
		fmt.Fprintf(&b, "%s %s: %s\n", list[i].Type, list[i].Reason, list[i].Message)
	}
	return reasons, b.String()
}

// ticks waits for n more listings of the engine, as the server's time of the last good
// read tells.
func (k *kurad) ticks(key fleet.ServerKey, n int) {
	k.t.Helper()
	seen := map[time.Time]bool{}
	k.until(key, fmt.Sprintf("is observed %d times more", n), func(v fleet.ServerView) bool {
		if v.LastObservedAt != nil {
			seen[*v.LastObservedAt] = true
		}
		return len(seen) > n
	})
}

func brief(v fleet.ServerView) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s (%s), generation %d, observed %q, serving %q, published %q", v.Status, v.Verdict, v.Reason, v.Message, v.Generation, v.ObservedImageTag, v.ServingImageTag, v.PublishedURL)
	if v.Deployment != nil {
		fmt.Fprintf(&b, "\n  deployment %d %s %s %s", v.Deployment.Seq, v.Deployment.ImageTag, v.Deployment.Status, v.Deployment.Reason)
	}
	for _, p := range []*fleet.Plan{v.Plan, v.IntendedPlan} {
		if text, err := json.Marshal(p); err == nil && p != nil {
			fmt.Fprintf(&b, "\n  plan %s", text)
		}
	}
	for _, c := range v.Conditions {
		fmt.Fprintf(&b, "\n  %s=%s/%s %s", c.Type, c.Status, c.Reason, c.Message)
	}
	for _, c := range v.Containers {
		fmt.Fprintf(&b, "\n  container %s %.12s %s %s", c.Name, c.ID, c.State, c.Image)
	}
	return b.String()
}

// eventually tries until it succeeds; the last error is told.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	pace := time.NewTicker(25 * time.Millisecond)
	defer pace.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
	}
}

// up asks a server as its clients do, over TLS at its published url, and returns the
// version that answers.
func up(t *testing.T, url string) (version string, err error) {
	t.Helper()
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: real.ca.Pool()},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			_, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			return (&net.Dialer{}).DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port))
		},
	}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/up", nil)
	if err != nil {
		return "", err
	}
	res, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var body struct{ Status, Version string }
	if err := json.NewDecoder(res.Body).Decode(&body); err != nil {
		return "", err
	}
	if res.StatusCode != http.StatusOK {
		return body.Version, fmt.Errorf("%s/up answers %d %s", url, res.StatusCode, body.Status)
	}
	return body.Version, nil
}

// output collects what a process writes.
type output struct{ lockedBuffer }

func (o *output) tail(n int) string {
	lines := strings.Split(strings.TrimSpace(o.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
