//go:build real

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store/etcd"
	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
	worldetcd "github.com/kurafleet/terraform-provider-kura/internal/world/etcd"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// closes writes a closed status into the latest deployment of a server, as another kurad
// may have left it: no request and no fault makes a latest one superseded or, while
// the server is wanted, cancelled.
func (k *kurad) closes(key fleet.ServerKey, seq int64, status fleet.DeploymentStatus) {
	t := k.t
	t.Helper()
	k.stop()
	s, err := (&storeOptions{}).open(t.Context(), k.dir, k.env, hclog.NewNullLogger())
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/kura/v1/%s/deployments/%s/%s/%010d", k.env, key.Region, key.Account, seq)
	item, err := s.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	var record map[string]any
	if err := json.Unmarshal(item.Value, &record); err != nil {
		t.Fatal(err)
	}
	deployment, _ := record["value"].(map[string]any)
	deployment["status"] = status
	value, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Txn(t.Context(), kv.Txn{If: []kv.Compare{{Key: path, Revision: item.Revision}}, Then: []kv.Op{kv.Put(path, value)}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	k.start()
}

func TestL1_P4_aVanishedInstanceIsMadeAgainWhateverTheLatestDeploymentSays(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	accounts := []string{"l1-failed", "l1-cancelled", "l1-superseded"}
	k, servers := s.serving(s.region("kube-l1"), accounts)

	// A real refusal makes a failed one; its server heals without another deployment.
	failed := keyOf(servers[0])
	s.proxy.Set(kubernetes.Fault{Status: 403, When: func(c kubernetes.Call) bool { return c.Apply && c.Name == servers[0].Instance }})
	k.put(failed, "v2")
	k.failed(failed, fleet.ReasonForbidden)
	s.proxy.Heal()
	k.converged(failed, "v2")
	for i, status := range []fleet.DeploymentStatus{fleet.DeploymentCancelled, fleet.DeploymentSuperseded} {
		k.closes(keyOf(servers[i+1]), 1, status)
	}

	for i, want := range []struct {
		status fleet.DeploymentStatus
		tag    string
	}{{fleet.DeploymentFailed, "v2"}, {fleet.DeploymentCancelled, "v1"}, {fleet.DeploymentSuperseded, "v1"}} {
		key, name := keyOf(servers[i]), servers[i].Instance
		k.converged(key, want.tag)
		history := k.deployments(key)
		if history[0].Status != want.status || history[0].ImageTag != want.tag {
			t.Fatalf("%s: the latest deployment is %+v, want %s", key, history[0], want.status)
		}
		applied, mark := s.applies(name), s.mark()
		s.remove(name)
		again := s.await(mark, name, "is made again", func(c change) bool { return c.kind == watch.Added })
		v := k.converged(key, want.tag)
		if image := at(again.object, "spec.image"); image != "registry.kura.test/kura/cache:"+want.tag {
			t.Errorf("%s was made again with %v, want %s", key, image, want.tag)
		}
		if n := s.applies(name) - applied; n != 1 {
			t.Errorf("%s was applied %d times, want once", key, n)
		}
		if d := cmp.Diff(history, k.deployments(key)); d != "" {
			t.Errorf("%s: deployments (-before +after):\n%s", key, d)
		}
		if v.PublishedURL != servers[i].PublishedURL {
			t.Errorf("%s: %s", key, brief(v))
		}
	}
}

// The API writes v1's end together with the new intent and its deployment. The next turn
// stores the plan together with the deployment's start, before any effect (S4).
func TestL8_P11_aNewerImageSupersedesTheOneThatIsStuckAndIsAppliedAtOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	member := worldetcd.Start(t, worldetcd.Options{}).Members[0]
	k := s.kurad("--store-endpoints", member.Endpoint)
	region := s.region("kube-l8")
	key := fleet.ServerKey{Account: "stuck", Region: region.Name}
	k.introduce(region, key.Account)
	name := s.stuck(k, key, "v1")

	written := watchStore(t, member.Endpoint)
	mark, begun := s.mark(), time.Now()
	put := k.put(key, "v2")
	if put.Deployment.Seq != 2 || put.Deployment.ImageTag != "v2" || !put.Deployment.Status.Open() {
		t.Errorf("the answer to PUT is %s; want deployment 2 open", brief(put))
	}
	applied := s.await(mark, name, "is applied with v2", func(c change) bool {
		return c.kind == watch.Modified && c.object.GetGeneration() > 1 && fmt.Sprint(at(c.object, "spec.image")) == imageOf("v2")
	})
	took := applied.at.Sub(begun)
	t.Logf("v2 was applied %s after its PUT began", took)
	if min(took, real.stopwatch.Since(begun)) > 5*time.Second {
		t.Errorf("v2 was applied %s after its PUT, want at once", took)
	}
	s.release(name)
	v := k.converged(key, "v2")
	if v.Deployment.Seq != 2 || v.Deployment.Status != fleet.DeploymentSucceeded || s.applies(name) != 2 {
		t.Errorf("the server is %s with %d applies; want deployment 2 succeeded, and one apply for each image", brief(v), s.applies(name))
	}

	// What was written, transaction by transaction.
	got, last := written(), -1
	for _, want := range []string{
		"deployment 1 superseded, deployment 2 pending, intent of v2",
		"plan of generation 2 pending",
		"deployment 2 running, plan of generation 2 running",
	} {
		i := slices.Index(got, want)
		if i <= last {
			t.Errorf("no transaction wrote %q in its turn; they wrote:\n%s", want, strings.Join(got, "\n"))
		}
		last = i
	}
	t.Logf("transactions:\n%s", strings.Join(got, "\n"))
}

// watchStore returns what tells what each transaction since has written of intents,
// deployments and plans.
func watchStore(t *testing.T, endpoint string) (written func() []string) {
	t.Helper()
	s, err := etcd.OpenCluster(etcd.ClusterOptions{Endpoints: []string{endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	page, err := s.List(t.Context(), "/kura/", kv.ListOptions{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	batches, err := s.Watch(ctx, "/kura/", page.Revision+1)
	if err != nil {
		t.Fatal(err)
	}
	var transactions []string
	var group sync.WaitGroup
	group.Go(func() {
		for b := range batches {
			var parts []string
			for _, e := range b.Events {
				parts = append(parts, describe(e)...)
			}
			slices.Sort(parts)
			if text := strings.Join(parts, ", "); text != "" && (len(transactions) == 0 || transactions[len(transactions)-1] != text) {
				transactions = append(transactions, text)
			}
		}
	})
	return func() []string { cancel(); group.Wait(); return transactions }
}

// describe says in words what a record holds; nothing, where the test does not ask for it.
func describe(e kv.Change) []string {
	var record struct {
		Value struct {
			ImageTag string     `json:"image_tag"`
			Seq      int64      `json:"seq"`
			Status   string     `json:"status"`
			Runtime  fleet.Work `json:"runtime"`
		} `json:"value"`
	}
	if e.Deleted || json.Unmarshal(e.Item.Value, &record) != nil {
		return nil
	}
	switch v := record.Value; {
	case strings.Contains(e.Key, "/deployments/"):
		return []string{fmt.Sprintf("deployment %d %s", v.Seq, v.Status)}
	case strings.HasSuffix(e.Key, "/intent"):
		return []string{"intent of " + v.ImageTag}
	case strings.HasSuffix(e.Key, "/status") && v.Runtime.Plan != nil:
		return []string{fmt.Sprintf("plan of generation %d %s", v.Runtime.Plan.Generation, v.Runtime.Plan.Tasks[0].State)}
	}
	return nil
}
