package cloudflare

import (
	"github.com/cloudflare/cloudflare-go/v7/dns"
	"github.com/cloudflare/cloudflare-go/v7/load_balancers"
	"github.com/cloudflare/cloudflare-go/v7/option"
	"github.com/cloudflare/cloudflare-go/v7/zones"
)

// services are the parts of the API that are called.
type services struct {
	zones     *zones.ZoneService
	records   *dns.RecordService
	balancers *load_balancers.LoadBalancerService
	pools     *load_balancers.PoolService
}

// newServices returns services that call base through client, each call once.
func newServices(base string, client option.HTTPClient) services {
	with := []option.RequestOption{option.WithBaseURL(base), option.WithHTTPClient(client), option.WithMaxRetries(0)}
	return services{
		zones: zones.NewZoneService(with...), records: dns.NewRecordService(with...),
		balancers: load_balancers.NewLoadBalancerService(with...), pools: load_balancers.NewPoolService(with...),
	}
}
