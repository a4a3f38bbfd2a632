package etcd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/kurafleet/terraform-provider-kura/internal/store/kv"
)

const (
	// DefaultLeaseTTL is how long a leader that is silent keeps others from leading.
	DefaultLeaseTTL = 5 * time.Second

	dialTimeout    = 10 * time.Second
	attemptTimeout = 2 * time.Second
	writeTimeout   = 4 * time.Second  // of a transaction: its outcome is then unknown
	keepalive      = 10 * time.Second // gRPC allows no less
	keepaliveWait  = 3 * time.Second
	renewAgain     = 100 * time.Millisecond // after a renewal that was not answered
)

// ClusterOptions say how to reach an etcd cluster.
type ClusterOptions struct {
	// Endpoints are the client URLs of its members, all http:// or all https://.
	Endpoints []string
	// CAFile is a PEM file of the authorities that the members' certificates are checked
	// with; "": those of the system. CertFile and KeyFile are the client certificate and
	// its key; they are read again for each connection.
	CAFile, CertFile, KeyFile string
	// LeaseTTL is how long a leader that is silent keeps others from leading; 0:
	// DefaultLeaseTTL. etcd counts in seconds.
	LeaseTTL time.Duration
	// Logger gets what etcd's client logs; nil: nothing is logged.
	Logger hclog.Logger
}

// Cluster is a Store that is an etcd cluster which somebody else runs. That it does not
// answer is never its failure: it may at any time again.
type Cluster struct {
	client
	ttl    time.Duration
	leases etcdserverpb.LeaseClient
	scouts *scouts
}

// OpenCluster connects to an etcd cluster and returns once a member answers.
func OpenCluster(o ClusterOptions) (*Cluster, error) {
	endpoints, tlsConfig, err := o.check()
	if err != nil {
		return nil, err
	}
	c := &Cluster{ttl: o.LeaseTTL}
	if c.ttl == 0 {
		c.ttl = DefaultLeaseTTL
	}
	c.init(o.Logger)
	c.attempt, c.write = attemptTimeout, writeTimeout
	config := clientv3.Config{
		Endpoints: endpoints, TLS: tlsConfig, DialTimeout: dialTimeout,
		DialKeepAliveTime: keepalive, DialKeepAliveTimeout: keepaliveWait, PermitWithoutStream: true,
		// What a member says of itself is logged where it matters to us; the client's own
		// warnings repeat the errors that it returns.
		Logger:  zap.NewNop(),
		Context: context.Background(),
	}
	if c.api, err = clientv3.New(config); err != nil {
		return nil, fmt.Errorf("open the store at %s: %w", strings.Join(endpoints, ", "), err)
	}
	c.leases = etcdserverpb.NewLeaseClient(c.api.ActiveConnection())
	if c.scouts, err = newScouts(config, endpoints); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), c.Close())
	}
	if err := c.scouts.anyAnswers(); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store: %w", err), c.Close())
	}
	c.watches.Go(func() { c.scouts.run(c.life, c.reach) })
	return c, nil
}

// reach takes in which endpoints answer. Calls and watches leave those that do not: gRPC
// would notice that a member is cut off, or stopped, only after its keepalive.
func (c *Cluster) reach(endpoints []string, lost bool) {
	c.api.SetEndpoints(endpoints...)
	if lost {
		c.reroute()
	}
}

// Campaign implements Store. The leader's key is attached to a lease, which the leader
// keeps renewing; who waits has none.
func (c *Cluster) Campaign(ctx context.Context, prefix string, value []byte) (kv.Leadership, error) {
	var lease clientv3.LeaseID
	take := func(ctx context.Context, key string, value []byte) (*kv.Held, error) {
		ctx, cancel := context.WithTimeout(ctx, c.ttl)
		defer cancel()
		sent := time.Now()
		grant, err := c.leases.LeaseGrant(ctx, &etcdserverpb.LeaseGrantRequest{TTL: seconds(c.ttl)}, grpc.WaitForReady(true))
		if err != nil {
			return nil, c.translate(ctx, err)
		}
		lease = clientv3.LeaseID(grant.ID)
		revision, err := c.txn(ctx, kv.Txn{If: []kv.Compare{kv.Absent(key)}, Then: []kv.Op{kv.Put(key, value)}}, lease)
		if err != nil {
			// It may be stored in spite of the error: the lease would end it, now or later.
			c.revoke(context.WithoutCancel(ctx), grant.ID)
			return nil, err
		}
		return kv.Hold(c, kv.Unchanged(key, revision), sent.Add(certain(grant.TTL))), nil
	}
	l, err := kv.Election{Store: c, Log: c.log, Take: take}.Campaign(ctx, prefix, value)
	if err != nil {
		return nil, err
	}
	c.watches.Go(l.Watch)
	c.watches.Go(func() { c.renew(l, lease) })
	return l, nil
}

func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

// certain is how long after its renewal was sent a lease lasts at the least: etcd counts
// from when it came. A tenth is for clocks that do not run equally fast.
func certain(ttl int64) time.Duration { return time.Duration(ttl) * time.Second / 10 * 9 }

// renew keeps the lease until the leadership is lost. An answer counts from when its
// question was sent.
func (c *Cluster) renew(l *kv.Held, lease clientv3.LeaseID) {
	step := c.ttl / 5
	wait := step
	for kv.Pause(l.Life(), min(wait, l.Remaining())) && l.Valid() {
		sent := time.Now()
		ttl, err := c.keepAlive(l.Life(), min(step, l.Remaining()), lease)
		switch {
		case err != nil:
			c.log.Debug("the lease was not renewed, trying again", "error", err)
			wait = renewAgain
		case ttl > 0:
			l.Extend(sent.Add(certain(ttl)))
			wait = step
		default:
			l.GiveUp()
		}
	}
}

// keepAlive renews the lease and returns its time to live, 0 when it has run out.
func (c *Cluster) keepAlive(ctx context.Context, within time.Duration, lease clientv3.LeaseID) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel() // ends the stream
	stream, err := c.leases.LeaseKeepAlive(ctx, grpc.WaitForReady(true))
	if err != nil {
		return 0, err
	}
	if err := stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(lease)}); err != nil {
		return 0, err
	}
	answer, err := stream.Recv()
	if err != nil {
		return 0, err
	}
	return answer.TTL, nil
}

func (c *Cluster) revoke(ctx context.Context, lease int64) {
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	if _, err := c.leases.LeaseRevoke(ctx, &etcdserverpb.LeaseRevokeRequest{ID: lease}); err != nil {
		c.log.Debug("a lease that nobody needs was not revoked and runs out", "error", err)
	}
}

// Close implements Store. A leader that does not resign before leaves its key until the
// lease runs out.
func (c *Cluster) Close() (err error) {
	c.once.Do(func() {
		c.closing.Store(true)
		c.end()
		err = c.shut()
		if c.scouts != nil {
			err = errors.Join(err, c.scouts.close())
		}
	})
	return err
}
