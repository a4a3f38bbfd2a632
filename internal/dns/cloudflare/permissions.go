package cloudflare

import (
	"context"
	"errors"
	"fmt"

	"github.com/cloudflare/cloudflare-go/v7/option"

	"github.com/kurafleet/terraform-provider-kura/internal/dns"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// Permissions finds out by a read of each kind what the token may not, and names it as Cloudflare
// does. That it may edit what it may read shows only when something is changed: no read tells, and
// Cloudflare says of a token that it is active, not what it may (API documentation).
//
// A zone that is not there for the token is an error, like a token that is not valid.
func (z *Zone) Permissions(ctx context.Context) (missing []string, err error) {
	if _, err := z.find(ctx); err != nil {
		return lacking(nil, "find the zone", zoneRead, err)
	}
	missing, err = may(ctx, z, z.records(), missing)
	if err == nil {
		missing, err = may(ctx, z, z.balancers(), missing)
	}
	if err == nil {
		missing, err = may(ctx, z, z.pools(), missing)
	}
	return missing, err
}

// may reads a few of a kind.
func may[T any](ctx context.Context, z *Zone, k kind[T], missing []string) ([]string, error) {
	_, err := sent[[]T](ctx, z, call{what: "list its " + k.name, need: k.need}, func(is identity, ctx context.Context, with ...option.RequestOption) error {
		return k.list(is, ctx, append(with, option.WithQuery("per_page", "5"))...)
	})
	return lacking(missing, "list "+k.name, k.need, err)
}

// lacking adds a permission to those that are missing where the error says so.
func lacking(missing []string, what, need string, err error) ([]string, error) {
	e, ok := errors.AsType[*dns.Error](err)
	if ok && e.Reason == fleet.ReasonZoneForbidden && e.Class == fleet.ClassRefused && !e.NotFound {
		return append(missing, fmt.Sprintf("%s (it may not %s)", need, what)), nil
	}
	return missing, err
}
