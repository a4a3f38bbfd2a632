package provider

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// seeWithin is how long an import waits until the daemon has looked at what it took over.
const seeWithin = 30 * time.Second

// importServer imports a server by account/region, by the name of its instance or by its
// identity. One that the daemon does not know, and whose KuraInstance runs already, it
// takes over first.
func importServer(ctx context.Context, s *session, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	key, what := fleet.ServerKey{}, fmt.Sprintf("Import server %q", req.ID)
	if req.ID == "" {
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("account"), &key.Account)...)
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("region"), &key.Region)...)
		what = "Import server " + key.String()
	}
	if resp.Diagnostics.HasError() {
		return
	}
	client := s.use(ctx, what, &resp.Diagnostics)
	if client == nil {
		return
	}
	var err error
	if req.ID != "" {
		key, err = find(ctx, client, req.ID)
	}
	if err == nil {
		err = takeOver(ctx, s, client, key)
	}
	if err != nil {
		report(&resp.Diagnostics, nil, what, err)
		return
	}
	resp.Diagnostics.Append(setKey(ctx, resp, key)...)
}

func setKey(ctx context.Context, resp *resource.ImportStateResponse, key fleet.ServerKey) diag.Diagnostics {
	diags := resp.State.SetAttribute(ctx, path.Root("account"), key.Account)
	diags.Append(resp.State.SetAttribute(ctx, path.Root("region"), key.Region)...)
	return diags
}

// find returns the server that an import id means: account/region, or the name of its
// instance, whether the daemon knows the server or only its account and region.
func find(ctx context.Context, client *api.Client, id string) (fleet.ServerKey, error) {
	if strings.Contains(id, "/") {
		return fleet.ParseServerKey(id)
	}
	servers, err := client.ListServers(ctx, api.ServerFilter{})
	if err != nil {
		return fleet.ServerKey{}, err
	}
	fit, err := couldBe(ctx, client, id)
	if err != nil {
		return fleet.ServerKey{}, err
	}
	for _, v := range servers {
		if key := v.Key(); v.Instance == id && !slices.Contains(fit, key) {
			fit = append(fit, key)
		}
	}
	switch len(fit) {
	case 0:
		return fleet.ServerKey{}, fmt.Errorf("no server's instance is called %q, and no declared account and region make that name; write <account>/<region>, such as acme/eu-central, or the name that the attribute `instance` shows, and declare account and region first (kura_account, kura_region)", id)
	case 1:
		return fit[0], nil
	}
	var names []string
	for _, key := range fit {
		names = append(names, key.String())
	}
	slices.Sort(names)
	return fleet.ServerKey{}, fmt.Errorf("an instance called %q could be of each of the servers %s; write the one that you mean as <account>/<region>", id, strings.Join(names, ", "))
}

// couldBe returns the servers of Kubernetes regions whose instance would bear the name.
func couldBe(ctx context.Context, client *api.Client, instance string) (fit []fleet.ServerKey, err error) {
	accounts, err := client.ListAccounts(ctx)
	if err != nil {
		return nil, err
	}
	regions, err := client.ListRegions(ctx)
	if err != nil {
		return nil, err
	}
	for _, r := range regions {
		for _, a := range accounts {
			if name, err := r.Instance(a.ID); err == nil && name == instance && r.Kubernetes != nil {
				fit = append(fit, fleet.ServerKey{Account: a.ID, Region: r.Name})
			}
		}
	}
	return fit, nil
}

// takeOver makes a server of the KuraInstance that bears its name (K6) where the daemon does
// not know it, or found that name taken by somebody else's, and waits until the daemon has
// compared the two. What is of another environment the daemon refuses.
func takeOver(ctx context.Context, s *session, client *api.Client, key fleet.ServerKey) error {
	v, err := client.GetServer(ctx, key, api.GetOptions{})
	if err == nil && v.Reason != fleet.ReasonForeignInstance && (v.Resource == nil || v.Resource.Foreign == "") || err != nil && !has(err, fleet.CodeNotFound) {
		return err
	}
	r, err := client.GetRegion(ctx, key.Region)
	if err == nil && r.Kubernetes == nil {
		return nil // Read says what there is
	}
	if err != nil && !has(err, fleet.CodeNotFound) {
		return err
	}
	done, err := client.Adopt(ctx, key, api.AdoptRequest{})
	if err != nil {
		return err
	}
	within, cancel := context.WithTimeout(ctx, seeWithin)
	defer cancel()
	// Not seen in time, or not at all, is nothing that Read could not tell.
	_ = s.watches.follow(within, key, func(v *fleet.ServerView) bool {
		return v == nil || v.Generation >= done.Object.Generation && v.Reason != fleet.ReasonAccepted
	})
	return nil
}
