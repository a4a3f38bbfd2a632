package etcd

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

const (
	scoutEvery  = time.Second
	scoutWait   = 1500 * time.Millisecond
	alertWait   = 300 * time.Millisecond
	scoutedKey  = "/kura/v1/"
	dialAdvice  = "check that etcd runs there, and --store-endpoints"
	trustAdvice = "check --store-ca, --store-cert and --store-key"
)

// scouts ask every endpoint of a cluster by itself whether it answers. An endpoint that
// does not may be stopped, cut off from us, or from the other members.
type scouts struct{ all []*scout }

type scout struct {
	endpoint string
	tls      *tls.Config
	api      *clientv3.Client
}

func newScouts(config clientv3.Config, endpoints []string) (*scouts, error) {
	s := &scouts{}
	for _, endpoint := range endpoints {
		config.Endpoints = []string{endpoint}
		api, err := clientv3.New(config)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", endpoint, err), s.close())
		}
		s.all = append(s.all, &scout{endpoint, config.TLS, api})
	}
	return s, nil
}

// probe returns nil where the endpoint answers a linearizable read in time.
func (s *scout) probe(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	_, err := s.api.Get(ctx, scoutedKey)
	switch {
	case errors.Is(err, rpctypes.ErrPermissionDenied):
		return nil // an answer as well
	case ctx.Err() != nil:
		return fmt.Errorf("%s did not answer within %s: %s", s.endpoint, within, dialAdvice)
	case err != nil:
		return fmt.Errorf("%s: %w: %s", s.endpoint, err, dialAdvice)
	}
	return nil
}

// dial connects by itself and says what is in the way, which etcd's client, that tries
// again and again, keeps to itself.
func (s *scout) dial(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	u, err := url.Parse(s.endpoint)
	if err != nil {
		return err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return fmt.Errorf("%s: %w: %s", s.endpoint, err, dialAdvice)
	}
	defer conn.Close()
	if s.tls == nil {
		return nil
	}
	config := s.tls.Clone()
	config.ServerName, config.NextProtos = u.Hostname(), []string{"h2"}
	secure := tls.Client(conn, config)
	if err := secure.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("%s: %w: %s", s.endpoint, err, trustAdvice)
	}
	// A client certificate that is not accepted shows only after the handshake.
	if err := secure.SetReadDeadline(time.Now().Add(alertWait)); err != nil {
		return err
	}
	if _, err := secure.Read(make([]byte, 1)); err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("%s: %w: %s", s.endpoint, err, trustAdvice)
	}
	return nil
}

// anyAnswers returns nil as soon as one endpoint answers, and what all said if none does.
func (s *scouts) anyAnswers() error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	answers := make(chan error, len(s.all))
	for _, scout := range s.all {
		go func() {
			err := scout.dial(ctx)
			if err == nil {
				err = scout.probe(ctx, dialTimeout)
			}
			answers <- err
		}()
	}
	var all error
	for range s.all {
		err := <-answers
		if err == nil {
			return nil
		}
		all = errors.Join(all, err)
	}
	return all
}

// run tells reach which endpoints answer, whenever that changes, until ctx ends; lost
// says that one does not any more. Where none answers all are as good as each other.
func (s *scouts) run(ctx context.Context, reach func(endpoints []string, lost bool)) {
	var all []string
	for _, scout := range s.all {
		all = append(all, scout.endpoint)
	}
	for known := all; kv.Pause(ctx, scoutEvery); {
		var answering []string
		for i, err := range s.probeAll(ctx) {
			if err == nil {
				answering = append(answering, all[i])
			}
		}
		if ctx.Err() != nil {
			return
		}
		if len(answering) == 0 {
			answering = all
		}
		if slices.Equal(answering, known) {
			continue
		}
		lost := slices.ContainsFunc(known, func(e string) bool { return !slices.Contains(answering, e) })
		known = answering
		reach(known, lost)
	}
}

// probeAll asks all endpoints at once.
func (s *scouts) probeAll(ctx context.Context) []error {
	errs := make([]error, len(s.all))
	var group sync.WaitGroup
	for i, scout := range s.all {
		group.Go(func() { errs[i] = scout.probe(ctx, scoutWait) })
	}
	group.Wait()
	return errs
}

func (s *scouts) close() error {
	var all error
	for _, scout := range s.all {
		if err := scout.api.Close(); err != nil && !errors.Is(err, context.Canceled) {
			all = errors.Join(all, err)
		}
	}
	return all
}
