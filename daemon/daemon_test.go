package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"go.uber.org/goleak"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

// inProcess is a daemon in this process, with an endpoint whose engine is not there.
type inProcess struct {
	*daemon
	client *api.Client
	end    func() error // ends it in order and returns what run returned
}

func optionsFor(t *testing.T) options {
	return options{
		environment: "staging", dataDir: t.TempDir(), listen: "127.0.0.1:0", tick: 100 * time.Millisecond, aliasPeriod: 7 * 24 * time.Hour, orphanPeriod: time.Hour,
		resolver:  "127.0.0.1:1", // nobody answers there, at once
		endpoints: []string{"local=unix://" + filepath.Join(t.TempDir(), "no.sock") + ",ports=20000-20009"},
	}
}

func startInProcess(t *testing.T, o options, change ...func(*daemon)) *inProcess {
	t.Helper()
	d, err := newDaemon(t.Context(), o, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range change {
		c(d)
	}
	return runInProcess(t, o, d)
}

func runInProcess(t *testing.T, o options, d *daemon) *inProcess {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- d.run(ctx) }()
	p := &inProcess{daemon: d}
	p.end = func() error {
		cancel()
		select {
		case err := <-ended:
			ended <- err
			return err
		case <-time.After(late):
			return errors.New("the daemon does not end")
		}
	}
	t.Cleanup(func() { _ = p.end() }) // for the tests that failed before they ended it
	var err error
	if p.client, err = (&target{dataDir: o.dataDir}).client(); err != nil {
		t.Fatal(err)
	}
	soon(t, "the API answers", func() error { _, err := p.client.Version(t.Context()); return err })
	return p
}

// late is when a test gives up on what must happen: far above what it takes.
const late = 2 * time.Minute

// soon tries until it succeeds; the last error is told.
func soon(t *testing.T, what string, try func() error) {
	t.Helper()
	pace, end := time.NewTicker(5*time.Millisecond), time.After(late)
	defer pace.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-pace.C:
		case <-end:
			t.Fatalf("%s: not within %s: %v", what, late, err)
		}
	}
}

var acme = fleet.ServerKey{Account: "acme", Region: "eu"}

// declareAcme declares one server of one account in one region.
func declareAcme(t *testing.T, c *api.Client) {
	t.Helper()
	_, err := c.PutHostTemplate(t.Context(), fleet.HostTemplate{Name: "public", Pattern: "{account_handle}-{cluster_id}{env_suffix}.kura.test"}, api.PutOptions{})
	if err == nil {
		_, err = c.PutAccount(t.Context(), fleet.Account{ID: acme.Account}, api.PutOptions{})
	}
	if err == nil {
		_, err = c.PutRegion(t.Context(), fleet.Region{
			Name: acme.Region, Hosts: fleet.RegionHosts{Public: "public"},
			Containers: &fleet.Containers{Endpoint: "local", Services: map[string]fleet.Service{"cache": {
				Image: "localhost/cache:{image_tag}", Ports: map[string]fleet.Port{"https": {Container: 8443, Endpoint: fleet.EndpointPublic}},
			}}},
		}, api.PutOptions{})
	}
	if err == nil {
		_, err = c.PutServer(t.Context(), fleet.Server{Account: acme.Account, Region: acme.Region, ImageTag: "v1"}, api.PutOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

func unobserved(t *testing.T, c *api.Client) (v fleet.ServerView) {
	t.Helper()
	soon(t, "the server is unobserved", func() (err error) {
		if v, err = c.GetServer(t.Context(), acme, api.GetOptions{}); err != nil {
			return err
		}
		if v.Verdict != fleet.VerdictUnobserved || v.Reason != fleet.ReasonEndpointUnreachable {
			return fmt.Errorf("it is %s %s", v.Verdict, v.Reason)
		}
		for _, c := range v.Conditions {
			if c.Type == fleet.ConditionEndpointReady && c.Status != fleet.False {
				return errors.New("its endpoint was not probed yet")
			}
		}
		return nil
	})
	return v
}

func TestP2_withoutAnEngineTheAPIAnswersAndServersAreUnobserved(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	o := optionsFor(t)
	p := startInProcess(t, o)
	declareAcme(t, p.client)
	v := unobserved(t, p.client)
	if v.Status != fleet.StatusProvisioning || v.Plan != nil || v.Deployment.Status != fleet.DeploymentPending {
		t.Errorf("the server is %s with plan %+v and deployment %+v; want nothing done and nothing failed (P2)", v.Status, v.Plan, v.Deployment)
	}
	info, err := os.Stat(filepath.Join(o.dataDir, tokenFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the first token's file: %v, %v; want mode 0600", info, err)
	}
	if err := p.end(); err != nil {
		t.Errorf("ended with %v, want nil", err)
	}
}

func TestG1_aRestartKeepsEverything(t *testing.T) {
	o := optionsFor(t)
	p := startInProcess(t, o)
	declareAcme(t, p.client)
	before := unobserved(t, p.client)
	tokens, err := p.client.ListTokens(t.Context())
	if err != nil || len(tokens) != 1 {
		t.Fatalf("tokens %+v, %v", tokens, err)
	}
	if err := p.end(); err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(filepath.Join(o.dataDir, tokenFile))
	if err != nil {
		t.Fatal(err)
	}

	p = startInProcess(t, o)
	after := unobserved(t, p.client)
	before.FailedReads, after.FailedReads = 0, 0
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("the server (-before +after):\n%s", d)
	}
	if again, err := p.client.ListTokens(t.Context()); err != nil || cmp.Diff(tokens, again) != "" {
		t.Errorf("tokens %+v, %v; want %+v", again, err, tokens)
	}
	if same, err := os.ReadFile(filepath.Join(o.dataDir, tokenFile)); err != nil || !bytes.Equal(same, secret) {
		t.Errorf("the first token was replaced (%v)", err)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestG7_aSecondKuradOnADataDirectoryIsRefused(t *testing.T) {
	o := optionsFor(t)
	p := startInProcess(t, o)
	_, err := newDaemon(t.Context(), o, hclog.NewNullLogger())
	if err == nil || !strings.Contains(err.Error(), o.dataDir) || !strings.Contains(err.Error(), "stop the other kurad") {
		t.Errorf("a second kurad: error %v, want one that names the directory and what to do", err)
	}
	if _, err := p.client.Version(t.Context()); err != nil {
		t.Errorf("the first one no longer answers: %v", err)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestServe_aTakenAddressIsRefused(t *testing.T) {
	p := startInProcess(t, optionsFor(t))
	o := optionsFor(t)
	o.listen = p.listener.Addr().String()
	if _, err := newDaemon(t.Context(), o, hclog.NewNullLogger()); err == nil || !strings.Contains(err.Error(), "--listen") || !strings.Contains(err.Error(), o.listen) {
		t.Errorf("a taken address: error %v, want one that names the flag and the address", err)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

// stopping is a store that stops when it is told to.
type stopping struct {
	kv.Store
	failed chan struct{}
}

func (s stopping) Failed() <-chan struct{} { return s.failed }
func (s stopping) Err() error              { return errors.New("the disk is full") }

func TestG7_theDaemonEndsWhenTheStoreStops(t *testing.T) {
	failed := make(chan struct{})
	o := optionsFor(t)
	d, err := newDaemon(t.Context(), o, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	d.store = stopping{d.store, failed}
	ended := make(chan error, 1)
	go func() { ended <- d.run(t.Context()) }()
	close(failed)
	select {
	case err := <-ended:
		if err == nil || !strings.Contains(err.Error(), "the store has stopped: the disk is full") {
			t.Errorf("ended with %v, want that the store has stopped, and why", err)
		}
	case <-time.After(late):
		t.Fatal("the daemon goes on without a store")
	}
}

func TestG9_livenessHasAListenerOfItsOwnIfAskedFor(t *testing.T) {
	o := optionsFor(t)
	o.health = "127.0.0.1:0"
	p := startInProcess(t, o)
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/v1/version": 404, "/": 404} {
		res, err := http.Get("http://" + p.daemon.health.Addr().String() + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
		}
	}
	taken := optionsFor(t)
	taken.health = p.daemon.health.Addr().String()
	if _, err := newDaemon(t.Context(), taken, hclog.NewNullLogger()); err == nil || !strings.Contains(err.Error(), "--health-listen") {
		t.Errorf("%v", err)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}
