package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// server is what `kurad status --output json` says of a server, as far as the story needs it.
type server struct {
	Account         string `json:"account"`
	Region          string `json:"region"`
	Verdict         string `json:"verdict"`
	Reason          string `json:"reason"`
	ServingImageTag string `json:"serving_image_tag"`
	PublishedURL    string `json:"published_url"`
	Containers      []struct {
		Name string `json:"name"`
		ID   string `json:"id"`
	} `json:"containers"`
	Conditions []struct {
		Type   string `json:"type"`
		Reason string `json:"reason"`
	} `json:"conditions"`
	Resource struct {
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		UID       string `json:"uid"`
	} `json:"resource"`
}

// id is what tells the server's container, or its instance, from one made again; "" while
// there is none, or more than one.
func (v server) id() string {
	if len(v.Containers) == 1 {
		return v.Containers[0].ID
	}
	return v.Resource.UID
}

// condition is the reason of a condition.
func (v server) condition(of string) string {
	for _, c := range v.Conditions {
		if c.Type == of {
			return c.Reason
		}
	}
	return ""
}

func story(ctx context.Context, s *stage) error {
	for _, part := range []func(context.Context, *stage) error{
		firstPlan, firstApply, theyAnswer, shadowed, nearest, killed, rollOut, broken, healed,
	} {
		if err := part(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

func firstPlan(ctx context.Context, s *stage) error {
	chapter("tofu plan: the hosts are known before anything exists")
	if _, err := s.run(ctx, s.tofu, "init", "-no-color", "-input=false"); err != nil {
		return err
	}
	out, err := s.run(ctx, s.tofu, "plan", "-no-color", "-input=false")
	if err != nil {
		return err
	}
	show(lines(out, "."+s.ground.zoned()+`"`, "Plan:"))
	return nil
}

func firstApply(ctx context.Context, s *stage) error {
	chapter("tofu apply: two accounts in two regions")
	if err := s.apply(ctx); err != nil {
		return err
	}
	return s.status(ctx)
}

func theyAnswer(ctx context.Context, s *stage) error {
	chapter("They answer, over TLS, at the urls that kurad published")
	list, err := s.servers(ctx)
	if err != nil {
		return err
	}
	for _, v := range list {
		out, err := s.asker.up(ctx, v.PublishedURL)
		if err != nil {
			return err
		}
		tell("GET %s/up → %s", v.PublishedURL, out)
	}
	return nil
}

// shadowed is what ownership is read for: another environment in the same zone has a name of ours.
func shadowed(ctx context.Context, s *stage) error {
	cf := s.ground.cloudflare()
	if cf == nil {
		return nil
	}
	before, err := s.one(ctx, "acme", "us")
	if err != nil {
		return err
	}
	host := fleet.HostOf(before.PublishedURL)
	chapter("Another environment in the zone takes a name: production's external-dns has %s now", host)
	show(lines(cf.Table(), host))
	if n := cf.Edit("a-"+host, "TXT", `"heritage=external-dns,external-dns/owner=production,external-dns/resource=ingress/kura/acme"`); n != 1 {
		return fmt.Errorf("%d ownership records of %s:\n%s", n, host, cf.Table())
	}
	err = progress("until kurad lists the zone again: a steady one within a minute, so that 10,000 hosts cost under 12 calls in five", func() error {
		return wait(ctx, 2*time.Minute, "kurad sees it", func() error {
			v, err := s.one(ctx, "acme", "us")
			if err == nil && v.condition("DNSOwned") != "ForeignOwner" {
				err = fmt.Errorf("DNSOwned says %s", v.condition("DNSOwned"))
			}
			return err
		})
	})
	if err != nil {
		return err
	}
	plan, err := s.run(ctx, s.tofu, "plan", "-no-color", "-input=false")
	if err != nil {
		return err
	}
	if !strings.Contains(plan, "production") {
		return fmt.Errorf("the plan does not name production:\n%s", plan)
	}
	tell("tofu plan")
	show(lines(plan, "Warning", host, "production"))
	tell("kurad dns audit")
	audit, err := s.run(ctx, s.kurad, "dns", "audit")
	if err == nil || !strings.Contains(audit, "production") {
		return fmt.Errorf("the audit does not name production: %w", err)
	}
	show(audit)
	if out, err := s.asker.up(ctx, before.PublishedURL); err == nil {
		tell("the server itself was left alone (%s), and clients are told of its url no more", out)
	}
	tell("kurad dns take %s --from production --yes", host)
	out, err := s.run(ctx, s.kurad, "dns", "take", host, "--from", "production", "--yes")
	if err != nil {
		return err
	}
	show(out)
	return wait(ctx, time.Minute, "the name is ours again", func() error {
		_, err := s.run(ctx, s.kurad, "dns", "audit")
		return err
	})
}

// Clients of the story (RFC 5737).
var inFrankfurt, inVirginia = netip.MustParseAddr("192.0.2.7"), netip.MustParseAddr("198.51.100.7")

// nearest is what the global host leads to, with both regions and with one.
func nearest(ctx context.Context, s *stage) error {
	cf, host := s.ground.cloudflare(), s.ground.global("acme")
	if host == "" {
		return nil
	}
	chapter("A host over both regions: %s leads to the nearer one, and follows when one goes", host)
	show(lines(cf.Table(), host))
	leads := func(frankfurt, virginia string) error {
		for client, want := range map[netip.Addr]string{inFrankfurt: frankfurt, inVirginia: virginia} {
			found, err := cf.Ask(ctx, host, client)
			if err != nil {
				return err
			}
			if fmt.Sprint(found) != "["+want+"]" {
				return fmt.Errorf("for %s it leads to %s, not to %s:\n%s", client, found, want, cf.Table())
			}
		}
		tell("asked from Frankfurt: %s; asked from Virginia: %s", frankfurt, virginia)
		return nil
	}
	if err := leads("127.0.0.1", "127.0.0.2"); err != nil {
		return err
	}
	err := progress("tofu destroy of acme/eu", func() error {
		_, err := s.run(ctx, s.tofu, "destroy", "-no-color", "-input=false", "-auto-approve", "-target", `kura_server.this["acme/eu"]`)
		return err
	})
	if err == nil {
		err = leads("127.0.0.2", "127.0.0.2")
	}
	if err == nil {
		err = s.apply(ctx)
	}
	if err != nil {
		return err
	}
	return leads("127.0.0.1", "127.0.0.2")
}

func killed(ctx context.Context, s *stage) error {
	chapter("The %s of acme/eu is removed behind kurad's back", s.ground.thing())
	before, err := s.one(ctx, "acme", "eu")
	if err != nil {
		return err
	}
	command, err := s.ground.remove(ctx, before)
	if err != nil {
		return err
	}
	started := time.Now()
	err = wait(ctx, time.Minute, "the server is back", func() error {
		v, err := s.one(ctx, "acme", "eu")
		if err != nil {
			return err
		}
		if v.Verdict != "converged" || v.id() == "" || v.id() == before.id() {
			return fmt.Errorf("verdict %s %s", v.Verdict, v.Reason)
		}
		tell("%s", command)
		tell("%.1f s later it runs again: %.12s is now %.12s, at the same url", time.Since(started).Seconds(), before.id(), v.id())
		return nil
	})
	if err != nil {
		return err
	}
	return s.events(ctx, "acme/eu", 6)
}

func rollOut(ctx context.Context, s *stage) error {
	chapter("A new image rolls forward: %s, %s", s.tags[1], s.ground.rolling())
	before, err := s.servers(ctx)
	if err != nil {
		return err
	}
	if err := s.apply(ctx, s.tagged()...); err != nil {
		return err
	}
	var after []server
	err = wait(ctx, time.Minute, "nothing is left of what was rolled forward", func() (err error) {
		after, err = s.servers(ctx)
		for _, v := range after {
			if v.id() == "" { // a replaced container is listed until it has ended in peace
				err = errors.Join(err, fmt.Errorf("%s/%s has containers %+v", v.Account, v.Region, v.Containers))
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	for i, v := range after {
		if v.PublishedURL != before[i].PublishedURL || v.ServingImageTag != s.tags[1] {
			return fmt.Errorf("%s/%s was not rolled forward at its url: %+v", v.Account, v.Region, v)
		}
		how, err := s.ground.rolled(before[i], v)
		if err != nil {
			return err
		}
		tell("%s/%s: %s, still at %s", v.Account, v.Region, how, v.PublishedURL)
	}
	return nil
}

// tagged are the variables of an apply of the second version, with the exceptions that the
// story makes for acme/eu.
func (s *stage) tagged(exception ...string) []string {
	args := []string{"-var", "image_tag=" + s.tags[1]}
	for _, tag := range exception {
		args = append(args, "-var", fmt.Sprintf(`image_tags={"acme/eu"=%q}`, tag))
	}
	return args
}

func broken(ctx context.Context, s *stage) error {
	chapter("A broken image: acme/eu wants a version that nobody built")
	before, err := s.servers(ctx)
	if err != nil {
		return err
	}
	lost := s.tags[1] + "-lost"
	args := s.tagged(lost)
	err = s.apply(ctx, args...)
	if err == nil {
		return errors.New("the apply of an image that does not exist succeeded")
	}
	show(lines(err.Error(), "Error:", s.ground.failure(), "image_tag", "kurad"))
	if err := s.status(ctx); err != nil {
		return err
	}
	after, err := s.servers(ctx)
	if err != nil {
		return err
	}
	for i, v := range after {
		if v.id() != before[i].id() || v.ServingImageTag != s.tags[1] {
			return fmt.Errorf("%s/%s was touched: %+v", v.Account, v.Region, v)
		}
		if _, err := s.asker.up(ctx, v.PublishedURL); err != nil {
			return err
		}
	}
	tell("nothing was lost: all four still run and serve %s. And the next plan tells the truth:", s.tags[1])
	out, err := s.run(ctx, s.tofu, append([]string{"plan", "-no-color", "-input=false"}, args...)...)
	if err != nil {
		return err
	}
	if !strings.Contains(out, fmt.Sprintf("%q -> %q", s.tags[1], lost)) {
		return fmt.Errorf("the plan does not show the difference:\n%s", out)
	}
	show(lines(out, "kura_server.this", "image_tag", "Warning", s.ground.failure(), "Plan:"))
	return nil
}

func healed(ctx context.Context, s *stage) error {
	chapter("A good image heals it: %s for acme/eu", s.tags[2])
	if err := s.apply(ctx, s.tagged(s.tags[2])...); err != nil {
		return err
	}
	if err := s.status(ctx); err != nil {
		return err
	}
	out, err := s.run(ctx, s.tofu, append([]string{"plan", "-no-color", "-input=false"}, s.tagged(s.tags[2])...)...)
	if err != nil {
		return err
	}
	if !strings.Contains(out, "No changes.") {
		return fmt.Errorf("the plan after the apply is not empty:\n%s", out)
	}
	show(lines(out, "No changes."))
	return nil
}

// farewell destroys everything and sees that nothing is left.
func (s *stage) farewell(ctx context.Context) error {
	chapter("tofu destroy leaves nothing")
	err := progress("destroying", func() error {
		_, err := s.run(ctx, s.tofu, "destroy", "-no-color", "-input=false", "-auto-approve")
		return err
	})
	if err != nil {
		return err
	}
	said, err := s.ground.nothingLeft(ctx)
	if err != nil {
		return err
	}
	tell("%s", said)
	return nil
}

// apply applies the configuration.
func (s *stage) apply(ctx context.Context, args ...string) error {
	var out string
	err := progress("tofu apply "+strings.Join(args, " "), func() (err error) {
		out, err = s.run(ctx, s.tofu, append([]string{"apply", "-no-color", "-input=false", "-auto-approve"}, args...)...)
		return err
	})
	if err == nil {
		show(lines(out, "Apply complete!"))
	}
	return err
}

// status shows the table that a person would look at.
func (s *stage) status(ctx context.Context) error {
	out, err := s.run(ctx, s.kurad, "status")
	if err == nil {
		tell("kurad status")
		show(out)
	}
	return err
}

func (s *stage) events(ctx context.Context, key string, n int) error {
	out, err := s.run(ctx, s.kurad, "events", key, "--limit", fmt.Sprint(n))
	if err == nil {
		show(out)
	}
	return err
}

// servers returns what kurad says of all servers, in a fixed order.
func (s *stage) servers(ctx context.Context) ([]server, error) {
	out, err := s.run(ctx, s.kurad, "status", "--output", "json")
	if err != nil {
		return nil, err
	}
	var list []server
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		return nil, fmt.Errorf("read what kurad status printed: %w", err)
	}
	return list, nil
}

func (s *stage) one(ctx context.Context, account, region string) (server, error) {
	list, err := s.servers(ctx)
	if err != nil {
		return server{}, err
	}
	for _, v := range list {
		if v.Account == account && v.Region == region {
			return v, nil
		}
	}
	return server{}, fmt.Errorf("kurad knows no server %s/%s", account, region)
}
