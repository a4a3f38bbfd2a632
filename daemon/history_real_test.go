//go:build real

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
	"github.com/kurafleet/terraform-provider-kura/internal/world/process"
)

var historySeed = flag.Uint64("history.seed", 0, "seed of the history test's choices; 0: another one each time")

// It is not parallel: it keeps the engine busy, and others hold kurad to times.
func TestG1_killedAtRandomDuring50RollOutsUnder16ClientsNothingAcknowledgedIsLost(t *testing.T) {
	const (
		servers  = 8
		callers  = 16
		rollOuts = 50
		kills    = 25
		limit    = 20 * time.Minute // far more than it takes
	)
	seed := *historySeed
	for seed == 0 {
		seed = rand.Uint64()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the choices again: -history.seed=%d", seed)
		}
	})
	address := freeAddress(t)
	k := startKurad(t, "--listen", address)
	var keys []fleet.ServerKey
	var accounts []string
	for i := range servers {
		accounts = append(accounts, fmt.Sprintf("a%d", i))
		keys = append(keys, fleet.ServerKey{Account: accounts[i], Region: "eu-storm"})
	}
	grace := cache(func(s *fleet.Service) { s.GracePeriod = fleet.Duration(time.Second) })
	k.declare(region(keys[0].Region, grace, stallAfter(3*time.Second)), accounts...)
	token, err := os.ReadFile(filepath.Join(k.dir, tokenFile))
	if err != nil {
		t.Fatal(err)
	}

	book := newChronicle()
	caller := func(id int) *caller {
		return newCaller(id, rand.New(rand.NewPCG(seed, uint64(id))), book, address, strings.TrimSpace(string(token)), keys)
	}
	seen, stop := newWitness(t, keys[0].Region)
	ctx, calm := context.WithCancel(t.Context())
	defer calm()
	var clients sync.WaitGroup
	for id := range callers {
		c := caller(id)
		clients.Go(func() { c.storm(ctx) })
	}
	killer := &killer{kurad: k, random: rand.New(rand.NewPCG(seed, 1000)), keys: keys, book: book, ended: map[string]fleet.DeploymentStatus{}, hit: map[fleet.TaskKind]int{}}
	for len(killer.ended) < rollOuts || killer.kills < kills {
		if time.Since(book.begun) > limit {
			t.Fatalf("after %s there were %d roll-outs and %d kills", limit, len(killer.ended), killer.kills)
		}
		killer.strike()
	}
	calm()
	clients.Wait()
	storm := time.Since(book.begun)
	defer book.linearizable(t, keys) // whatever else fails

	// All is well again: one server less, a good image for the others.
	healer := caller(callers)
	healer.delete(keys[servers-1])
	for _, key := range keys {
		healer.heal(t, key)
	}
	for _, key := range keys {
		if v, exists := healer.get(key); exists && v.Intent.Deleting == nil {
			k.converged(key, "v3")
		} else {
			k.gone(key)
		}
		healer.get(key)
	}
	healer.list()
	stop()

	killer.look()
	t.Logf("seed %d: %s of storm, %d kills, %d roll-outs %v, killed during %v", seed, storm.Round(time.Second), killer.kills, len(killer.ended), killer.ends(), killer.hit)
	t.Logf("calls %v; %d looks at the engine saw %d runs of containers", book.heard, seen.looks, len(seen.spans))
	if errs := k.log.with("[ERROR]"); len(errs) > 0 {
		t.Logf("kurad logged %d errors, such as\n%s", len(errs), strings.Join(errs[:min(5, len(errs))], "\n"))
	}
	if len(book.faults) > 0 {
		t.Errorf("%d answers that no rule allows (seed %d):\n%s", len(book.faults), seed, strings.Join(book.faults[:min(20, len(book.faults))], "\n"))
	}
	k.acknowledged(book.acks, keys)
	k.accounted(keys[0].Region)
	if pairs := seen.overlaps(); len(pairs) > 0 {
		t.Errorf("containers of one service ran at once:\n%s", strings.Join(pairs, "\n"))
	}
}

// freeAddress is an address for a kurad that comes back to it.
func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := process.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	return address
}

// heal declares a good image that no caller has declared, unless the server is on its
// way out or gone.
func (c *caller) heal(t *testing.T, key fleet.ServerKey) {
	t.Helper()
	if v, exists := c.get(key); !exists || v.Intent.Deleting != nil {
		return
	}
	if !c.put(key, apiCall{Verb: verbPut, Image: "v3"}) {
		t.Errorf("kurad runs, nobody else calls, and the declaration of %s got no answer", key)
	}
}

// killer kills kurad and starts it again, and counts the roll-outs meanwhile.
type killer struct {
	*kurad
	random *rand.Rand
	keys   []fleet.ServerKey
	book   *chronicle
	kills  int
	hit    map[fleet.TaskKind]int            // kills by the tasks that were running
	ended  map[string]fleet.DeploymentStatus // roll-outs that are over
}

// strike waits for a moment and kills.
func (x *killer) strike() {
	x.t.Helper()
	x.look()
	var during []fleet.TaskKind
	if x.random.IntN(2) == 0 {
		during = x.atATask(pick(x.random, fleet.TaskPull, fleet.TaskCreate, fleet.TaskStop, fleet.TaskRename, fleet.TaskStart, fleet.TaskRemove))
	} else {
		pause(x.t.Context(), time.Duration(x.random.Int64N(int64(4*time.Second))))
		during = x.running()
	}
	x.kill()
	for _, kind := range during {
		x.hit[kind]++
	}
	x.book.died()
	x.kills++
	x.start()
}

func pick[T any](random *rand.Rand, from ...T) T { return from[random.IntN(len(from))] }

// atATask waits for a task of the kind to run somewhere, for a few seconds at most.
func (x *killer) atATask(kind fleet.TaskKind) []fleet.TaskKind {
	x.t.Helper()
	ctx, cancel := context.WithTimeout(x.t.Context(), 4*time.Second)
	defer cancel()
	pace := time.NewTicker(10 * time.Millisecond)
	defer pace.Stop()
	for {
		kinds := x.running()
		if slices.Contains(kinds, kind) || ctx.Err() != nil {
			return kinds
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
		}
	}
}

// running are the kinds of the tasks that run now.
func (x *killer) running() (kinds []fleet.TaskKind) {
	x.t.Helper()
	list, err := x.client.ListServers(x.t.Context(), api.ServerFilter{Region: x.keys[0].Region})
	if err != nil {
		x.t.Fatal(err)
	}
	for _, v := range list {
		if i := v.Plan.Current(); i >= 0 && v.Plan.Tasks[i].State == fleet.TaskRunning {
			kinds = append(kinds, v.Plan.Tasks[i].Kind)
		}
	}
	return kinds
}

// look notes which roll-outs are over: they had an effect, and did not end for the
// server was to go.
func (x *killer) look() {
	x.t.Helper()
	for _, key := range x.keys {
		list, err := x.client.Deployments(x.t.Context(), key)
		if err != nil && fleet.CodeOf(err) != fleet.CodeNotFound {
			x.t.Fatal(err)
		}
		for _, d := range list {
			if d.StartedAt != nil && !d.Status.Open() && d.Status != fleet.DeploymentCancelled {
				x.ended[fmt.Sprintf("%s %d %s", d.Account, d.Seq, d.CreatedAt)] = d.Status
			}
		}
	}
}

func (x *killer) ends() map[fleet.DeploymentStatus]int {
	n := map[fleet.DeploymentStatus]int{}
	for _, s := range x.ended {
		n[s]++
	}
	return n
}

// acknowledged checks that each deployment that was acknowledged is in the list of its
// server, unless that server is gone or the deployment is older than those that are kept.
func (k *kurad) acknowledged(acks []fleet.Deployment, keys []fleet.ServerKey) {
	t := k.t
	t.Helper()
	for _, key := range keys {
		v, err := k.client.GetServer(t.Context(), key, api.GetOptions{})
		if fleet.CodeOf(err) == fleet.CodeNotFound {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		bySeq := map[int64]fleet.Deployment{}
		for _, d := range k.deployments(key) {
			bySeq[d.Seq] = d
		}
		for _, ack := range acks {
			if ack.Account != key.Account || ack.CreatedAt.Before(v.Intent.CreatedAt) {
				continue // another server's, or of one of this name that is gone
			}
			d, kept := bySeq[ack.Seq]
			same := d.Generation == ack.Generation && d.ImageTag == ack.ImageTag && d.CreatedAt.Equal(ack.CreatedAt) && d.IdempotencyKey == ack.IdempotencyKey
			if kept && !same || !kept && ack.Seq > v.Intent.Deployment-store.MaxDeployments {
				t.Errorf("%s: deployment %+v was acknowledged, and there is %+v", key, ack, d)
			}
			if ack.Generation > v.Generation {
				t.Errorf("%s: generation %d was acknowledged, and it is %s", key, ack.Generation, brief(v))
			}
		}
	}
}

// drawing writes a history where it outlasts the test, for a browser.
func drawing(t *testing.T, key fleet.ServerKey, info porcupine.LinearizationInfo) string {
	t.Helper()
	f, err := os.CreateTemp("", "kura-history-"+key.Account+"-*.html") //nolint:usetesting // it is to outlast the test
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(porcupine.Visualize(serverModel(), info, f), f.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// with returns the lines that hold a text.
func (o *output) with(text string) (lines []string) {
	for line := range strings.Lines(o.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
