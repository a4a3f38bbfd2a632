package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/store"
)

// byHand is a running container without labels that publishes the region's port.
func byHand(n int, name, tag string, port int) fleet.Container {
	return fleet.Container{
		Name: name, ID: strings.Repeat(fmt.Sprint(n), 64), Image: "localhost/cache:" + tag, State: fleet.ContainerRunning,
		Foreign: fleet.NotByKurad, Ports: map[string]int{"8443/tcp": port},
	}
}

// lists makes the endpoint list these containers.
func (w *world) lists(cs ...fleet.Container) {
	w.runtimes.listing = fleet.Listing{Begun: w.clock.now(), Containers: cs}
}

func (w *world) adopt(k fleet.ServerKey, tag, name string) (api.Written[fleet.ServerView], error) {
	w.t.Helper()
	return w.client.Adopt(w.t.Context(), k, api.AdoptRequest{ImageTag: tag, Containers: map[string]string{"cache": name}})
}

func TestAdopt_declaresTheServerWithThePortsThatItsContainerHas(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	k := key("acme", "eu")
	box := byHand(1, "made-by-hand", "v1", 31234)
	w.lists(byHand(2, "database", "v1", 5432), box)
	done, err := w.adopt(k, "v1", box.Name)
	if err != nil || !done.Created || !done.Changed {
		t.Fatalf("%+v, %v", done, err)
	}
	if v := done.Object; v.Ports["cache/http"] != 31234 || v.DeclaredURL != "https://acme-eu-staging.kura.test:31234" || v.Deployment.Seq != 1 {
		t.Errorf("ports %v, url %s, deployment %+v", v.Ports, v.DeclaredURL, v.Deployment)
	}
	g, err := w.records.Gather(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	a := g.Status.Adopted["cache"]
	if a.ID != box.ID || a.Name != box.Name || len(a.Digest) != 64 || g.Status.Runtime.EffectsUntil == nil || !g.Status.Runtime.EffectsUntil.Equal(w.clock.now()) {
		t.Errorf("record %+v, effects until %v", a, g.Status.Runtime.EffectsUntil)
	}
	claims, err := w.records.Claims(t.Context(), k)
	if err != nil {
		t.Fatal(err)
	}
	for _, res := range []store.Reservation{store.ReservePort("podman", 31234), store.ReserveContainer(box.ID)} {
		if !slices.Contains(claims.Value.Held, res) {
			t.Errorf("%s is not reserved: %v", res, claims.Value.Held)
		}
	}
	if events, err := w.client.Events(t.Context(), api.EventFilter{Account: "acme"}); err != nil || len(events) != 1 || events[0].Reason != "Adopted" {
		t.Errorf("events %+v, %v", events, err)
	}

	// The same again is success and no write, by whatever names it, the plan of the rename
	// or not; the declaration as Terraform makes it is equal.
	w.turn(k, func(s *fleet.Status) { s.Runtime.Plan = &fleet.Plan{ID: "rename"} })
	for _, ref := range []string{box.Name, box.ID, box.ID[:12]} {
		again, err := w.adopt(k, "v1", ref)
		if err != nil || again.Changed || again.Object.Generation != done.Object.Generation {
			t.Errorf("again as %s: %+v, %v", ref, again, err)
		}
	}
	if out, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{}); err != nil || out.Changed {
		t.Errorf("the same declaration: changed %t, %v", out.Changed, err)
	}
	if next := w.put(srv("acme", "eu", "v2")); next.Ports["cache/http"] != 31234 {
		t.Errorf("a new image moved the port: %v", next.Ports)
	}
}

func TestAdopt_saysWhyItCannot(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme", "umbra", "globex")
	w.must(w.client.PutRegion(t.Context(), fixed(region("fixed"), 8443), api.PutOptions{}))
	taken := w.put(srv("umbra", "eu", "v1")).Ports["cache/http"]
	stopped := byHand(4, "stopped", "v1", 31004)
	stopped.State = fleet.ContainerExited
	ours := byHand(5, "kura-umbra-eu-cache-staging", "v1", taken)
	ours.Foreign, ours.Account, ours.Region, ours.Service = "", "umbra", "eu", "cache"
	theirs := byHand(6, "theirs", "v1", 31006)
	theirs.Foreign = "server acme/eu of environment production"
	silent := byHand(7, "silent", "v1", 0)
	w.lists(byHand(1, "good", "v1", 31001), byHand(2, "port-taken", "v1", taken), byHand(3, "other-tag", "v2", 31003), stopped, ours, theirs, silent,
		byHand(8, "kura-acme-eu-cache-staging-next", "v1", 31008), byHand(9, "untagged", "", 31009), another("other-image", "docker.io/library/postgres:v1", 31010), another("mirrored", "mirror.dev:5000/hub/cache:v1", 31011),
		another("automatic", "localhost/cache:v1", 31012), another("unseen", "localhost/cache:v1", 31013))
	w.runtimes.adoptable = map[string]error{
		"automatic-id": fleet.Errorf(fleet.CodeInvalid, "the engine starts container automatic again by itself"),
		"unseen-id":    fleet.Errorf(fleet.CodeUnavailable, "look at container unseen: connection refused"),
	}
	for _, c := range []struct {
		account, region, tag, service, ref string
		code                               fleet.Code
		says                               string
	}{
		{"acme", "eu", "v1", "cache", "nobody", fleet.CodeInvalid, `has no container with the name or id "nobody"`},
		{"acme", "eu", "v1", "cache", strings.Repeat("1", 11), fleet.CodeInvalid, "at least 12 characters"},
		{"acme", "eu", "v1", "proxy", "good", fleet.CodeInvalid, `has no service "proxy" (it has: cache)`},
		{"acme", "eu", "v1", "cache", "port-taken", fleet.CodeInvalid, "is assigned to server umbra/eu"},
		{"acme", "eu", "v1", "cache", "other-tag", fleet.CodeInvalid, "runs image localhost/cache:v2, and the service is image localhost/cache:v1"},
		{"acme", "eu", "v1", "cache", "untagged", fleet.CodeInvalid, "runs image localhost/cache:, and the service is image localhost/cache:v1"},
		{"acme", "eu", "v1", "cache", "other-image", fleet.CodeInvalid, "runs image docker.io/library/postgres:v1, and the service is image localhost/cache:v1"},
		{"acme", "eu", "v1", "cache", "automatic", fleet.CodeInvalid, "the engine starts container automatic again by itself"},
		{"acme", "eu", "v1", "cache", "unseen", fleet.CodeUnavailable, "connection refused"},
		{"acme", "eu", "v1", "cache", "stopped", fleet.CodeInvalid, "does not run (it is exited)"},
		{"acme", "eu", "v1", "cache", ours.Name, fleet.CodeInvalid, "carries the labels of server umbra/eu"},
		{"acme", "eu", "v1", "cache", "theirs", fleet.CodeInvalid, "server acme/eu of environment production"},
		{"acme", "eu", "v1", "cache", "silent", fleet.CodeInvalid, "does not publish 8443/tcp"},
		{"acme", "eu", "v1", "cache", "kura-acme-eu-cache-staging-next", fleet.CodeInvalid, "rename it first"},
		{"acme", "fixed", "v1", "cache", "good", fleet.CodeInvalid, "on host port 31001, and the region declares 8443"},
		{"acme", "eu", "v 1", "cache", "good", fleet.CodeInvalid, "image"},
		{"acme", "nowhere", "v1", "cache", "good", fleet.CodeInvalid, `region "nowhere" does not exist`},
		{"nobody", "eu", "v1", "cache", "good", fleet.CodeInvalid, `account "nobody" does not exist`},
		{"umbra", "eu", "v2", "cache", "good", fleet.CodeConflict, "is declared with image v1, not v2"},
		{"umbra", "eu", "v1", "cache", "good", fleet.CodeConflict, "has a container of its own"},
	} {
		_, err := w.client.Adopt(t.Context(), key(c.account, c.region), api.AdoptRequest{ImageTag: c.tag, Containers: map[string]string{c.service: c.ref}})
		if fleet.CodeOf(err) != c.code || !strings.Contains(fmt.Sprint(err), c.says) {
			t.Errorf("%s/%s %s %s=%s: %v, want %s that says %q", c.account, c.region, c.tag, c.service, c.ref, err, c.code, c.says)
		}
	}
	if list, err := w.client.ListServers(t.Context(), api.ServerFilter{}); err != nil || len(list) != 1 {
		t.Errorf("refusals left %d servers, %v; want umbra's alone", len(list), err)
	}
	_, err := w.client.Adopt(t.Context(), key("acme", "eu"), api.AdoptRequest{ImageTag: "v1"})
	wantFault(t, err, fleet.CodeInvalid, "/containers", "at least one container")

	// One container is one server's.
	w.must(w.adopt(key("globex", "eu"), "v1", "good"))
	if _, err := w.adopt(key("acme", "eu"), "v1", "good"); fleet.CodeOf(err) != fleet.CodeInvalid || !strings.Contains(err.Error(), "globex/eu") {
		t.Errorf("the second adoption of one container: %v", err)
	}

	// So it is where two endpoints are one engine; the image may come from a mirror.
	w.runtimes.more = []string{"podman-again"}
	again := region("again")
	again.Containers.Endpoint = "podman-again"
	w.must(w.client.PutRegion(t.Context(), again, api.PutOptions{}))
	w.must(w.adopt(key("umbra", "again"), "v1", "mirrored"))
	if _, err := w.adopt(key("acme", "eu"), "v1", "mirrored"); fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "umbra/again has container mirrored-id") {
		t.Errorf("the second adoption of one container, by another endpoint: %v", err)
	}

	w.runtimes.listing = fleet.Listing{Unreadable: &fleet.ReadFailure{Reason: fleet.ReasonEndpointUnreachable, Message: "connection refused"}}
	if _, err := w.client.Adopt(t.Context(), key("acme", "eu"), api.AdoptRequest{ImageTag: "v1", Containers: map[string]string{"cache": "good"}}); fleet.CodeOf(err) != fleet.CodeUnavailable {
		t.Errorf("an endpoint that cannot be read: %v", err)
	}
}

// another is a container made by hand from any image.
func another(name, image string, port int) fleet.Container {
	c := byHand(0, name, "", port)
	c.ID, c.Image = name+"-id", image
	return c
}

// A service whose image does not carry the tag has all of its reference compared.
func TestAdopt_anImageWithoutTheTagIsComparedAsAWhole(t *testing.T) {
	w := newWorld(t)
	w.seed(nil, "acme")
	r := region("eu")
	r.Containers.Services["proxy"] = fleet.Service{Image: "ghcr.io/kura/proxy:7"}
	w.must(w.client.PutRegion(t.Context(), r, api.PutOptions{}))
	w.lists(byHand(1, "cache", "v1", 31001), another("old-proxy", "ghcr.io/kura/proxy:6", 0), another("others-proxy", "ghcr.io/other/proxy:7", 0), another("proxy", "mirror.dev/kura/proxy:7", 0))
	adopt := func(proxy string) error {
		_, err := w.client.Adopt(t.Context(), key("acme", "eu"), api.AdoptRequest{ImageTag: "v1", Containers: map[string]string{"cache": "cache", "proxy": proxy}})
		return err
	}
	wantFault(t, adopt("old-proxy"), fleet.CodeInvalid, "/containers/proxy", "ghcr.io/kura/proxy:6", "ghcr.io/kura/proxy:7")
	wantFault(t, adopt("others-proxy"), fleet.CodeInvalid, "/containers/proxy", "ghcr.io/other/proxy:7", "ghcr.io/kura/proxy:7")
	w.must(nil, adopt("proxy"))
}

func fixed(r fleet.Region, port int) fleet.Region {
	r.Containers.Services["cache"].Ports["http"] = fleet.Port{Container: 8443, Host: port, Endpoint: fleet.EndpointPublic}
	return r
}

// A try of what failed before is claimed beside the status (G12), and is under way all the same.
func TestG12_S4_adoptWaitsForATryThatIsClaimedBesideTheStatus(t *testing.T) {
	w, kube := newWorld(t), newKubeWorld(t, "acme")
	w.seed([]string{"eu"}, "acme")
	w.lists(byHand(1, "made-by-hand", "v1", 31234))
	kube.runtimes.kube.holds("kura-acme-eu", made("uid-1", "registry.test/cache:v1"))
	k := key("acme", "eu")
	for at, adopt := range map[*world]func() error{
		w:    func() error { _, err := w.adopt(k, "v1", "made-by-hand"); return err },
		kube: func() error { _, err := kube.client.Adopt(t.Context(), k, api.AdoptRequest{}); return err },
	} {
		at.put(srv("acme", "eu", "v1"))
		at.claims(k)
		if err := adopt(); fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "a plan is under way") {
			t.Errorf("while a task runs: %v", err)
		}
		if g, err := at.records.Gather(t.Context(), k); err != nil || g.Try == nil || g.Intent.Generation != 1 {
			t.Errorf("the claim is %+v, of generation %d: %v", g.Try, g.Intent.Generation, err)
		}
	}
}

// claims stores the claim of a try of what failed before, as a turn does.
func (w *world) claims(k fleet.ServerKey) {
	w.t.Helper()
	task := fleet.Task{ID: "p1/1", Effect: fleet.Effect{Kind: fleet.TaskCreate}, State: fleet.TaskPending}
	w.turn(k, func(s *fleet.Status) {
		s.Runtime.Course = fleet.Course{Attempts: 1, Failing: &fleet.Failing{Kind: task.Kind, Count: 1}, LastFailed: &fleet.Plan{ID: "p1", Tasks: []fleet.Task{task}}}
	})
	g, err := w.records.Gather(w.t.Context(), k)
	w.must(nil, err)
	next := g.Status.Clone()
	next.Runtime.Plan, next.Runtime.LastFailed = next.Runtime.LastFailed, nil
	next.Runtime.Plan.Claim(0, w.clock.now().Add(time.Minute))
	_, err = w.records.CommitTry(w.t.Context(), fleet.TryWrite{Key: k, IntentRevision: g.IntentRevision, TryRevision: g.TryRevision, Try: next.Try(*g.Status, g.StatusRevision)})
	w.must(nil, err)
}

func TestAdopt_aServerThatIsDeclaredAndHasNoContainerTakesOne(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme", "umbra")
	k := key("acme", "eu")
	before := w.put(srv("acme", "eu", "v1"))
	lost := before.Ports["cache/http"]
	w.lists(byHand(1, "made-by-hand", "v1", 31234))
	w.turn(k, func(s *fleet.Status) { s.Runtime.Plan = &fleet.Plan{ID: "create"} })
	if _, err := w.adopt(k, "v1", "made-by-hand"); fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "a plan is under way") {
		t.Errorf("while a plan is under way: %v", err)
	}
	later := w.clock.now().Add(time.Second)
	w.turn(k, func(s *fleet.Status) { s.Runtime.Plan, s.Runtime.EffectsUntil = nil, &later })
	if _, err := w.adopt(k, "v1", "made-by-hand"); fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "may still land") {
		t.Errorf("while an effect may land: %v", err)
	}
	w.turn(k, func(s *fleet.Status) { s.Runtime.EffectsUntil = nil })
	done, err := w.adopt(k, "v1", "made-by-hand")
	if err != nil || done.Created || !done.Changed || done.Object.Ports["cache/http"] != 31234 || done.Object.Deployment.Seq != 1 {
		t.Fatalf("%+v, %v", done, err)
	}
	if owner, held, err := w.records.Owner(t.Context(), store.ReservePort("podman", lost)); held || err != nil {
		t.Errorf("port %d, which nothing publishes, is still %s's: %v", lost, owner, err)
	}
	w.must(w.client.DeleteServer(t.Context(), k))
	if _, err := w.adopt(k, "v1", "made-by-hand"); fleet.CodeOf(err) != fleet.CodeConflict || !strings.Contains(err.Error(), "being destroyed") {
		t.Errorf("while it is destroyed: %v", err)
	}
}

// The record of a server was lost: declared again, it goes on with the ports and the mark
// of the container that bears its labels.
func TestC12_aNewDeclarationTakesThePortsThatItsContainersPublish(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme", "umbra")
	ours := byHand(1, "kura-acme-eu-cache-staging", "v1", 20777)
	ours.Foreign, ours.Account, ours.Region, ours.Service, ours.RestartMark = "", "acme", "eu", "cache", "redeploy-2"
	w.lists(ours)
	dry, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{DryRun: true})
	if err != nil || dry.Object.Ports["cache/http"] != 20777 {
		t.Errorf("dry run: ports %v, %v", dry.Object.Ports, err)
	}
	v := w.put(srv("acme", "eu", "v1"))
	if v.Ports["cache/http"] != 20777 || v.Deployment.RestartMark != "redeploy-2" {
		t.Errorf("ports %v, deployment %+v", v.Ports, v.Deployment)
	}
	again, err := w.client.Redeploy(t.Context(), key("acme", "eu"), "once more")
	if err != nil || again.RestartMark == "redeploy-2" || again.RestartMark == "" {
		t.Errorf("a redeploy with the mark %q changes nothing: %v", again.RestartMark, err)
	}
	// A port that somebody else has by now is not taken.
	stolen := ours
	stolen.Account, stolen.Name = "umbra", "kura-umbra-eu-cache-staging"
	w.lists(ours, stolen)
	if v := w.put(srv("umbra", "eu", "v1")); v.Ports["cache/http"] == 20777 || v.Ports["cache/http"] == 0 {
		t.Errorf("umbra got port %v", v.Ports)
	}
}

// The record was lost, and with it which ports are whose: what containers publish still
// tells. Whichever port is the new server's first choice, it gets the other one.
func TestC12_aPortThatAnotherServersContainerPublishesIsNotAssigned(t *testing.T) {
	const first, last = 20000, 20001
	publishing := func(port int) fleet.Container {
		c := byHand(1, "kura-umbra-eu-cache-staging", "v1", port)
		c.Foreign, c.Account, c.Region, c.Service = "", "umbra", "eu", "cache"
		return c
	}
	for theirs := first; theirs <= last; theirs++ {
		w := newWorld(t)
		w.runtimes.first, w.runtimes.last = first, last
		w.seed([]string{"eu"}, "acme", "umbra", "globex")
		w.lists(publishing(theirs))
		want := first + last - theirs
		dry, err := w.client.PutServer(t.Context(), srv("acme", "eu", "v1"), api.PutOptions{DryRun: true})
		if err != nil || dry.Object.Ports["cache/http"] != want {
			t.Errorf("dry run with %d published: ports %v, %v; want %d", theirs, dry.Object.Ports, err, want)
		}
		if v := w.put(srv("acme", "eu", "v1")); v.Ports["cache/http"] != want {
			t.Errorf("with %d published acme got %v, want %d", theirs, v.Ports, want)
		}
		_, err = w.client.PutServer(t.Context(), srv("globex", "eu", "v1"), api.PutOptions{})
		wantFault(t, err, fleet.CodeConflict, "/region", "no port of 20000-20001 is free")
		// Its own is what a server keeps, whatever else bears that port, such as a container that does not run.
		w.lists(publishing(theirs), another("stopped", "localhost/x:1", theirs))
		if v := w.put(srv("umbra", "eu", "v1")); v.Ports["cache/http"] != theirs {
			t.Errorf("umbra, which publishes %d, got %v", theirs, v.Ports)
		}
	}

	// A region that needs one port more finds it free, or says that there is none.
	w := newWorld(t)
	w.runtimes.first, w.runtimes.last = first, last
	w.seed([]string{"eu"}, "acme")
	has := w.put(srv("acme", "eu", "v1")).Ports["cache/http"]
	r := region("eu")
	r.Containers.Services["cache"].Ports["admin"] = fleet.Port{Container: 9000}
	w.lists(publishing(first + last - has))
	_, err := w.client.PutRegion(t.Context(), r, api.PutOptions{})
	wantFault(t, err, fleet.CodeConflict, "/region", "no port of 20000-20001 is free")
	w.lists()
	w.must(w.client.PutRegion(t.Context(), r, api.PutOptions{}))
}

func TestOrphans_areOursAndOfNoServerAndAnEndpointThatIsAwayIsSaid(t *testing.T) {
	w := newWorld(t)
	w.seed([]string{"eu"}, "acme")
	w.put(srv("acme", "eu", "v1"))
	orphan := func(account string) fleet.Container {
		c := byHand(1, "kura-"+account+"-eu-cache-staging", "v1", 20001)
		c.Foreign, c.Account, c.Region, c.Service = "", account, "eu", "cache"
		return c
	}
	since := w.clock.now()
	l := fleet.Listing{
		Endpoint: "podman", Begun: since, Containers: []fleet.Container{orphan("acme"), orphan("lost"), byHand(2, "database", "v1", 5432)},
		Since: map[string]time.Time{orphan("lost").ID: since},
	}
	get := func(token string, ls ...fleet.Listing) api.Orphans {
		t.Helper()
		w.turns.mu.Lock()
		w.turns.listings = ls
		w.turns.mu.Unlock()
		o, err := w.clientWith(token).Orphans(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	read := w.token("reader", fleet.ScopeRead)
	lost := orphan("lost")
	item := api.Orphan{Endpoint: "podman", Name: lost.Name, ID: lost.ID, Image: lost.Image, State: lost.State, Account: "lost", Region: "eu", Service: "cache", Since: &since}
	if d := cmp.Diff(api.Orphans{Items: []api.Orphan{item}}, get(read, l)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	away := l
	away.Unreadable = &fleet.ReadFailure{Reason: fleet.ReasonEndpointUnreachable, Message: "connection refused", Since: since, Count: 3}
	want := api.Orphans{Items: []api.Orphan{item}, Unreadable: []api.UnreadableEndpoint{{Endpoint: "podman", Reason: fleet.ReasonEndpointUnreachable, Message: "connection refused", Since: &since}}}
	if d := cmp.Diff(want, get(read, away)); d != "" {
		t.Errorf("an endpoint that is away (-want +got):\n%s", d)
	}
	for _, ls := range [][]fleet.Listing{nil, {{Endpoint: "podman"}}} {
		if o := get(read, ls...); len(o.Unreadable) != 1 || o.Unreadable[0].Reason != fleet.ReasonNotObservedYet || len(o.Items) != 0 {
			t.Errorf("before the first listing: %+v", o)
		}
	}
}
