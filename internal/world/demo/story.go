package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
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
}

func story(ctx context.Context, s *stage) error {
	for _, part := range []func(context.Context, *stage) error{
		firstPlan, firstApply, theyAnswer, killed, rollOut, broken, healed,
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
	show(lines(out, ".kura.test\"", "Plan:"))
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
		hostPort := strings.TrimPrefix(v.PublishedURL, "https://")
		out, err := s.run(ctx, "curl", "--silent", "--show-error", "--fail", "--max-time", "10",
			"--cacert", s.ca, "--resolve", hostPort+":127.0.0.1", v.PublishedURL+"/up")
		if err != nil {
			return err
		}
		tell("curl %s/up → %s", v.PublishedURL, strings.TrimSpace(out))
	}
	return nil
}

func killed(ctx context.Context, s *stage) error {
	chapter("A container is removed behind kurad's back")
	before, err := s.one(ctx, "acme", "eu")
	if err != nil {
		return err
	}
	if _, err := s.engine.Podman(ctx, "rm", "--force", "--time", "0", before.Containers[0].Name); err != nil {
		return err
	}
	started := time.Now()
	err = wait(ctx, time.Minute, "the server is back", func() error {
		v, err := s.one(ctx, "acme", "eu")
		if err != nil {
			return err
		}
		if v.Verdict != "converged" || len(v.Containers) != 1 || v.Containers[0].ID == before.Containers[0].ID {
			return fmt.Errorf("verdict %s %s", v.Verdict, v.Reason)
		}
		tell("podman rm -f %s", before.Containers[0].Name)
		tell("%.1f s later it runs again: %.12s is now %.12s, at the same url", time.Since(started).Seconds(), before.Containers[0].ID, v.Containers[0].ID)
		return nil
	})
	if err != nil {
		return err
	}
	return s.events(ctx, "acme/eu", 6)
}

func rollOut(ctx context.Context, s *stage) error {
	chapter("A new image rolls forward: v2, one graceful replace by id for each server")
	before, err := s.servers(ctx)
	if err != nil {
		return err
	}
	if err := s.apply(ctx, "-var", "image_tag=v2"); err != nil {
		return err
	}
	after, err := s.servers(ctx)
	if err != nil {
		return err
	}
	for i, v := range after {
		tell("%s/%s: %.12s → %.12s, still at %s", v.Account, v.Region, before[i].Containers[0].ID, v.Containers[0].ID, v.PublishedURL)
		if v.PublishedURL != before[i].PublishedURL || v.Containers[0].ID == before[i].Containers[0].ID || v.ServingImageTag != "v2" {
			return fmt.Errorf("%s/%s was not rolled forward at its url: %+v", v.Account, v.Region, v)
		}
	}
	return nil
}

// The one exception from image_tag that the story makes.
const exception = `image_tags={"acme/eu"="%s"}`

func broken(ctx context.Context, s *stage) error {
	chapter("A broken image: acme/eu wants a version that nobody built")
	before, err := s.servers(ctx)
	if err != nil {
		return err
	}
	args := []string{"-var", "image_tag=v2", "-var", fmt.Sprintf(exception, "v2-lost")}
	err = s.apply(ctx, args...)
	if err == nil {
		return errors.New("the apply of an image that does not exist succeeded")
	}
	show(lines(err.Error(), "Error:", "ImagePullFailed", "image_tag", "kurad"))
	if err := s.status(ctx); err != nil {
		return err
	}
	after, err := s.servers(ctx)
	if err != nil {
		return err
	}
	for i, v := range after {
		if v.Containers[0].ID != before[i].Containers[0].ID || v.ServingImageTag != "v2" {
			return fmt.Errorf("%s/%s was touched: %+v", v.Account, v.Region, v)
		}
	}
	tell("nothing was touched: all four still run and serve v2. And the next plan tells the truth:")
	out, err := s.run(ctx, s.tofu, append([]string{"plan", "-no-color", "-input=false"}, args...)...)
	if err != nil {
		return err
	}
	if !strings.Contains(out, `"v2" -> "v2-lost"`) {
		return fmt.Errorf("the plan does not show the difference:\n%s", out)
	}
	show(lines(out, "kura_server.this", "image_tag", "Warning", "ImagePullFailed", "Plan:"))
	return nil
}

func healed(ctx context.Context, s *stage) error {
	chapter("A good image heals it: v3 for acme/eu")
	if err := s.apply(ctx, "-var", "image_tag=v2", "-var", fmt.Sprintf(exception, "v3")); err != nil {
		return err
	}
	if err := s.status(ctx); err != nil {
		return err
	}
	out, err := s.run(ctx, s.tofu, "plan", "-no-color", "-input=false", "-var", "image_tag=v2", "-var", fmt.Sprintf(exception, "v3"))
	if err != nil {
		return err
	}
	if !strings.Contains(out, "No changes.") {
		return fmt.Errorf("the plan after the apply is not empty:\n%s", out)
	}
	show(lines(out, "No changes."))
	return nil
}

// farewell destroys everything and sees that no container is left.
func (s *stage) farewell(ctx context.Context) error {
	chapter("tofu destroy leaves nothing")
	err := progress("destroying", func() error {
		_, err := s.run(ctx, s.tofu, "destroy", "-no-color", "-input=false", "-auto-approve")
		return err
	})
	if err != nil {
		return err
	}
	for _, what := range [][]string{{"ps", "--all", "--quiet"}, {"volume", "ls", "--quiet"}} {
		out, err := s.engine.Podman(ctx, what...)
		if err != nil {
			return err
		}
		if strings.TrimSpace(out) != "" {
			return fmt.Errorf("podman %s still lists:\n%s", strings.Join(what, " "), out)
		}
	}
	tell("podman ps --all: nothing; podman volume ls: nothing")
	fmt.Printf("\n[%3.0fs] The end. `make demo KEEP=1` leaves it running for you to play with.\n", time.Since(begun).Seconds())
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
