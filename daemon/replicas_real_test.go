//go:build real

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world"
	"github.com/kurafleet/terraform-provider-kura/internal/world/etcd"
)

// mostGap is how long the writes of a leader, and those of clients, may stand still on a
// machine that keeps up (G2).
const mostGap = 10 * time.Second

// replica is one of several kurads on one etcd cluster, with a proxy before each member,
// so that it can be cut off.
type replica struct {
	*kurad
	proxies []*world.Proxy

	mu     sync.Mutex
	out    bool // a fault is under way: nothing is to be expected of it
	faults int  // so far
}

func (r *replica) isOut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.out
}

func (r *replica) setOut(out bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out = out
	if out {
		r.faults++
	}
}

// hit returns how many faults it had so far, the one under way included.
func (r *replica) hit() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.faults
}

// replicas are the kurads of one environment.
type replicas struct {
	t   *testing.T
	all []*replica
}

// startReplicas starts kurads that share a store. The first one's token is everybody's.
func startReplicas(t *testing.T, environment string, n int, cluster *etcd.Cluster) *replicas {
	t.Helper()
	rs := &replicas{t: t}
	ports := real.portRange()
	for range n {
		r := &replica{}
		var endpoints []string
		for _, m := range cluster.Members {
			p, err := world.StartProxy("tcp", "", m.Address())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(p.Close)
			r.proxies = append(r.proxies, p)
			endpoints = append(endpoints, "https://"+p.Addr())
		}
		dir := t.TempDir()
		if len(rs.all) > 0 {
			token, err := os.ReadFile(filepath.Join(rs.all[0].dir, tokenFile))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, tokenFile), token, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		r.kurad = newKurad(t, environment, dir, ports, "--store-endpoints", strings.Join(endpoints, ","),
			"--store-ca", cluster.Files.CA, "--store-cert", cluster.Files.Cert, "--store-key", cluster.Files.Key)
		r.start()
		rs.all = append(rs.all, r)
	}
	return rs
}

// stop ends all replicas, those that a failed test left in a fault too.
func (rs *replicas) stop() {
	for _, r := range rs.all {
		if r.cmd == nil {
			continue
		}
		_ = r.cmd.Process.Signal(syscall.SIGCONT) // it runs, or the next signal says that it does not
		for _, p := range r.proxies {
			_ = p.Set(world.ProxyPass, 0) // the etcd that it shares goes last
		}
		r.kurad.stop()
	}
}

// present are the replicas that no fault is under way at.
func (rs *replicas) present() (list []*replica) {
	for _, r := range rs.all {
		if !r.isOut() {
			list = append(list, r)
		}
	}
	return list
}

// leader waits until one of the present replicas leads, and returns it.
func (rs *replicas) leader() (leader *replica) {
	rs.t.Helper()
	eventually(rs.t, "one leads", func() error {
		for _, r := range rs.present() {
			v, err := r.client.Version(rs.t.Context())
			if err == nil && v.Leader.Self {
				leader = r
				return nil
			}
		}
		return fmt.Errorf("none does")
	})
	return leader
}

// follower returns a present replica that does not lead, another one for each n.
func (rs *replicas) follower(leader *replica, n int) *replica {
	rs.t.Helper()
	var list []*replica
	for _, r := range rs.present() {
		if r != leader {
			list = append(list, r)
		}
	}
	if len(list) == 0 {
		rs.t.Fatal("there is no follower")
	}
	return list[n%len(list)]
}

// A fault is what happens to the leader, and how it ends.
type fault struct {
	name, environment string
	begin, end        func(*replica)
}

func leaderFaults() []fault {
	proxies := func(r *replica, mode world.ProxyMode) {
		for _, p := range r.proxies {
			if err := p.Set(mode, 0); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	send := func(s syscall.Signal) func(*replica) {
		return func(r *replica) {
			if err := r.cmd.Process.Signal(s); err != nil {
				r.t.Fatal(err)
			}
		}
	}
	return []fault{
		{"killed", "staging", func(r *replica) { r.kill() }, func(r *replica) { r.start() }},
		{"stopped", "canary", send(syscall.SIGSTOP), send(syscall.SIGCONT)},
		{"cut off", "production", func(r *replica) { proxies(r, world.ProxyHalfOpen) }, func(r *replica) { proxies(r, world.ProxyPass) }},
	}
}

// Three kurads on three members of etcd: whatever happens to the one that leads, another
// goes on where it was, the rest answer all the time, and no effect happens twice (G2).
func TestG2_aLeaderThatIsLostIsReplacedAndNothingHappensTwice(t *testing.T) {
	t.Parallel()
	times := lostTimes(t)
	cluster := etcd.Start(t, etcd.Options{Members: 3, TLS: true})
	for _, f := range leaderFaults() {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			rs := startReplicas(t, f.environment, 3, cluster)
			name := "lead-" + strings.ReplaceAll(f.name, " ", "-")
			first := rs.leader()
			accounts := []string{"a", "b", "c"}
			first.declare(region(name, stallAfter(2*time.Minute)), accounts...)
			t.Cleanup(rs.stop) // all of them, before what they made is discarded
			for _, a := range accounts {
				first.put(fleet.ServerKey{Account: a, Region: name}, "v1")
			}
			for _, a := range accounts {
				first.converged(fleet.ServerKey{Account: a, Region: name}, "v1")
			}
			seen := watchContainers(t, f.environment, name)
			clients := rs.write(name)
			var gaps []time.Duration
			for i := range times {
				key := fleet.ServerKey{Account: accounts[i%len(accounts)], Region: name}
				gaps = append(gaps, rs.survive(f, key, i))
			}
			slices.Sort(gaps)
			clients.stop()
			if clients.gap > mostGap {
				t.Errorf("the writes of clients stood still for %s, want %s at most", clients.gap, mostGap)
			}
			t.Logf("%d times %s: the next leader had stored its first turn after %s (median), %s (worst), writes of clients stood still for %s at most (%d writes, %d reads); the machine was late by %s in all since the tests began",
				times, f.name, gaps[times/2], gaps[times-1], clients.gap, clients.writes, clients.reads, real.stopwatch.Late())
			eventually(t, "each server has its one container", func() error {
				if n := len(boxes(t, name, f.environment)); n != len(accounts) {
					return fmt.Errorf("there are %d for %d servers", n, len(accounts))
				}
				return nil
			})
			seen.check(t, accounts, times)
		})
	}
}

// survive begins a roll-out, lets the fault hit the leader in the middle of it, and sees
// another one lead it to its end. It returns for how much of the time in which the machine
// kept up nobody led.
func (rs *replicas) survive(f fault, key fleet.ServerKey, i int) time.Duration {
	t := rs.t
	t.Helper()
	leader := rs.leader()
	follower := rs.follower(leader, i)
	d, err := follower.client.Redeploy(t.Context(), key, fmt.Sprintf("%s-%d", f.environment, i))
	if err != nil {
		t.Fatalf("redeploy %s through a follower: %v", key, err)
	}
	if i%4 != 3 { // most hit a running task, some the moment before the first
		follower.until(key, "the roll-out has begun", func(v fleet.ServerView) bool {
			return v.Plan != nil && v.Plan.Current() >= i%4 || v.Deployment.Seq == d.Seq && !v.Deployment.Status.Open()
		})
	}
	leader.setOut(true)
	f.begin(leader)
	start := time.Now()
	next := rs.leader()
	next.until(key, "is looked at by the next leader", func(v fleet.ServerView) bool { return v.LastObservedAt != nil && v.LastObservedAt.After(start) })
	gap := real.stopwatch.Since(start)
	if gap > mostGap {
		t.Errorf("%s, time %d: nobody led for %s, want %s at most", f.name, i, gap, mostGap)
	}
	done := func(v fleet.ServerView) bool {
		return isConverged(v) && len(v.Containers) == 1 && v.Deployment.Seq == d.Seq && v.Deployment.Status == fleet.DeploymentSucceeded
	}
	v := rs.follower(next, i).until(key, "has been redeployed", done)
	f.end(leader)
	eventually(t, "the former leader answers again", func() error {
		_, err := leader.client.Version(t.Context())
		return err
	})
	again := leader.until(key, "reads the same from the former leader", done)
	if v.Containers[0].ID != again.Containers[0].ID {
		t.Errorf("%s, time %d: containers %+v, and after the former leader went on %+v", f.name, i, v.Containers, again.Containers)
	}
	leader.setOut(false)
	return gap
}

// clients write and read all the time, through whatever replica no fault is under way at.
type clients struct {
	gap           time.Duration // the longest time without an acknowledged write, on a machine that keeps up
	writes, reads int
	stop          func()
}

func (rs *replicas) write(region string) *clients {
	ctx, cancel := context.WithCancel(rs.t.Context())
	c := &clients{}
	var group sync.WaitGroup
	group.Go(func() {
		last := time.Now()
		defer func() { c.gap = max(c.gap, real.stopwatch.Since(last)) }()
		for i := 0; ctx.Err() == nil; i++ {
			list := rs.present()
			r := list[i%len(list)]
			within, done := context.WithTimeout(ctx, 5*time.Second)
			_, err := r.client.PutAccount(within, fleet.Account{ID: "busy", Labels: map[string]string{"n": fmt.Sprint(i)}}, api.PutOptions{})
			done()
			if err == nil {
				c.gap, c.writes, last = max(c.gap, real.stopwatch.Since(last)), c.writes+1, time.Now()
			}
			pause(ctx, 50*time.Millisecond)
		}
	})
	group.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			list := rs.present()
			r := list[i%len(list)]
			within, done := context.WithTimeout(ctx, patience)
			faults, asked := r.hit(), time.Now()
			_, err := r.client.GetServer(within, fleet.ServerKey{Account: "a", Region: region}, api.GetOptions{})
			done()
			took := real.stopwatch.Since(asked)
			if ctx.Err() == nil && r.hit() == faults && !r.isOut() && (err != nil || took > mostGap) {
				rs.t.Errorf("a replica without a fault read for %s, want %s at most: %v", took, mostGap, err)
			}
			if err == nil {
				c.reads++
			}
			pause(ctx, 50*time.Millisecond)
		}
	})
	c.stop = func() {
		cancel()
		group.Wait()
		if c.writes == 0 || c.reads == 0 {
			rs.t.Errorf("%d writes and %d reads were acknowledged: that is too little to tell", c.writes, c.reads)
		}
	}
	rs.t.Cleanup(c.stop)
	return c
}

// Whichever member of etcd is lost, its leader included: nothing stops (G2).
func TestG2_anEtcdMemberThatIsLostStopsNothing(t *testing.T) {
	t.Parallel()
	cluster := etcd.Start(t, etcd.Options{Members: 3, TLS: true})
	rs := startReplicas(t, "staging", 2, cluster)
	key := fleet.ServerKey{Account: "a", Region: "member"}
	leader := rs.leader()
	leader.declare(region(key.Region), key.Account)
	t.Cleanup(rs.stop)
	leader.put(key, "v1")
	leader.converged(key, "v1")
	clients := rs.write(key.Region)
	for i, m := range cluster.Members {
		m.Kill()
		d, err := rs.all[i%2].client.Redeploy(t.Context(), key, fmt.Sprint("without-", i))
		if err != nil {
			t.Fatalf("redeploy without member %d: %v", i, err)
		}
		rs.all[(i+1)%2].until(key, fmt.Sprintf("is redeployed without member %d", i), func(v fleet.ServerView) bool {
			return isConverged(v) && v.Deployment.Seq == d.Seq && v.Deployment.Status == fleet.DeploymentSucceeded
		})
		m.Restart()
	}
	clients.stop()
	if clients.gap > mostGap {
		t.Errorf("the writes of clients stood still for %s, want %s at most", clients.gap, mostGap)
	}
	t.Logf("writes of clients stood still for %s at most (%d writes, %d reads)", clients.gap, clients.writes, clients.reads)
}
