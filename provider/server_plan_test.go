package provider

import (
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

func dryRunOf(account, region string, warnings ...fleet.Warning) api.Written[fleet.ServerView] {
	return api.Written[fleet.ServerView]{Object: fleet.ServerView{Account: account, Region: region}, Created: true, Changed: true, Warnings: warnings}
}

// What cannot be done yet is said before anything is applied, once for each region.
func TestP2_aPlanSaysThatARegionsRuntimeCannotBeRead(t *testing.T) {
	away := fleet.Warning{Code: fleet.WarnUnreadable, Pointer: "/region", Reason: fleet.ReasonRuntimeRefused, Detail: `namespace "kura" of cluster "prod" cannot be read now: Unauthorized; nothing is changed there until kurad can read it`}
	missing := fleet.Warning{Code: fleet.WarnNeighbourUnknown, Pointer: "/account", Detail: "account \"bravo\" does not exist"}
	d := &told{answers: map[string]any{
		"DRY /v1/servers/acme/eu":  api.Problem{Code: fleet.CodeConflict, Detail: "it exists already"},
		"DRY /v1/servers/bravo/eu": dryRunOf("bravo", "eu", missing, away),
		"DRY /v1/servers/acme/us":  dryRunOf("acme", "us"),
	}}
	c := newCore(t, d)
	server := func(account, region string, more map[string]tftypes.Value) map[string]tftypes.Value {
		return c.object("kura_server", c.object("kura_server", nil, more), map[string]tftypes.Value{"account": hcl(account), "region": hcl(region), "image_tag": hcl("2")})
	}
	plan := func(config map[string]tftypes.Value) string {
		t.Helper()
		return spoken(c.plan("kura_server", nil, config, nil).Diagnostics)
	}
	if said := plan(server("acme", "eu", nil)); said != "" {
		t.Errorf("the apply says what is wrong with the server itself, and the plan says %s", said)
	}
	said := plan(server("bravo", "eu", nil))
	if strings.Count(said, "WARNING") != 1 || !contains(said, `Region "eu" cannot be seen (RuntimeRefused)`, `Namespace "kura" of cluster "prod" cannot be read now: Unauthorized;`) {
		t.Errorf("the plan says %q", said)
	}
	for _, account := range []string{"bravo", "more", "still-more"} {
		if said := plan(server(account, "eu", nil)); said != "" {
			t.Errorf("it was said before, and now %s", said)
		}
	}
	if said := plan(server("acme", "us", nil)); said != "" {
		t.Errorf("a region that answers: %s", said)
	}
	if n := d.count("DRY /v1/servers/bravo/eu") + d.count("DRY /v1/servers/more/eu"); n != 1 {
		t.Errorf("the daemon was asked %d times for one region", n)
	}

	// A later plan, with a server whose labels are not known yet.
	d.say("DRY /v1/servers/acme/eu", dryRunOf("acme", "eu", away))
	c = newCore(t, d)
	unknown := map[string]tftypes.Value{"labels": tftypes.NewValue(tftypes.Map{ElementType: tftypes.String}, tftypes.UnknownValue)}
	if said := plan(server("acme", "eu", unknown)); !strings.Contains(said, `Region "eu" cannot be seen (RuntimeRefused)`) {
		t.Errorf("labels are not known, and the plan says %q", said)
	}
	account := map[string]tftypes.Value{"account": tftypes.NewValue(tftypes.String, tftypes.UnknownValue)}
	if said := plan(c.object("kura_server", server("acme", "us", nil), account)); said != "" {
		t.Errorf("the account is not known, and the plan says %q", said)
	}

	// What a read has said of the region, the plan of a change does not say again.
	unobserved := view(fleet.VerdictUnobserved, fleet.ReasonRuntimeRefused, "2", "2", fleet.DeploymentSucceeded)
	d.say("GET /v1/servers/acme/eu", unobserved)
	c = newCore(t, d)
	read := c.refresh("kura_server", server("acme", "eu", nil), []byte(`{"image_tag":"IjIi"}`))
	if said := spoken(read.Diagnostics); !strings.Contains(said, `Region "eu" cannot be seen (RuntimeRefused)`) {
		t.Errorf("the read says %q", said)
	}
	prior := c.read("kura_server", read.NewState)
	for tag, want := range map[string]int{"2": 0, "3": 1} {
		asked := d.count("DRY /v1/servers/acme/eu")
		config := server("acme", "eu", nil)
		config["image_tag"] = hcl(tag)
		if said := spoken(c.plan("kura_server", prior, config, read.Private).Diagnostics); said != "" {
			t.Errorf("it was said before, and the plan of version %s says %s", tag, said)
		}
		if n := d.count("DRY /v1/servers/acme/eu") - asked; n != want {
			t.Errorf("version %s, and 2 is there: the daemon was asked %d times, want %d", tag, n, want)
		}
	}
}

// A server of a region that the same apply declares cannot be asked about: its region can.
func TestP2_thePlanOfARegionSaysThatItsRuntimeCannotBeRead(t *testing.T) {
	away := fleet.Warning{Code: fleet.WarnUnreadable, Pointer: "/kubernetes", Reason: fleet.ReasonTypeNotServed, Detail: `namespace "kura" of cluster "prod" cannot be read now: no such type`}
	missing := fleet.Warning{Code: fleet.WarnNeighbourUnknown, Pointer: "/hosts/public", Detail: "host template \"public\" does not exist"}
	d := &told{answers: map[string]any{"DRY /v1/regions/eu": api.Written[api.Region]{Created: true, Changed: true, Warnings: []fleet.Warning{missing, away}}}}
	c := newCore(t, d)
	config := c.object("kura_region", nil, map[string]tftypes.Value{"name": hcl("eu")})
	for range 2 {
		said := spoken(c.plan("kura_region", nil, config, nil).Diagnostics)
		if d.count("DRY /v1/regions/eu") == 1 && (strings.Count(said, "WARNING") != 1 || !contains(said, `Region "eu" cannot be seen (TypeNotServed)`, ": no such type.")) {
			t.Errorf("the plan says %q", said)
		}
		if d.count("DRY /v1/regions/eu") == 2 && said != "" {
			t.Errorf("it says it again: %s", said)
		}
	}
}

// Whose its hosts are is asked for each server that is new or changes, and said once for each cause.
func TestD3_aPlanSaysThatSomebodyElseHasAHost(t *testing.T) {
	foreign := func(host, by string) fleet.Warning {
		return fleet.Warning{Code: fleet.WarnForeignHost, Reason: fleet.ReasonForeignOwner, Cause: by, Detail: "1 host is not this environment's: " + host + " belongs to \"" + by + "\""}
	}
	shared := fleet.Warning{Code: fleet.WarnSharedOwner, Cause: "kura", Detail: "owner id \"kura\" is in use by environment \"production\", too"}
	token := fleet.Warning{Code: fleet.WarnZoneToken, Reason: fleet.ReasonZoneForbidden, Cause: "kura.test", Detail: "kurad's token of zone kura.test lacks DNS:Edit"}
	checked := api.Region{Region: fleet.Region{Name: "eu", DNS: fleet.DNS{Mode: fleet.DNSExternalDNS, OwnerID: "kura"}}}
	d := &told{answers: map[string]any{
		"GET /v1/regions/eu": checked, "GET /v1/regions/us": api.Region{Region: fleet.Region{Name: "us", DNS: fleet.DNS{Mode: fleet.DNSNone}}},
		"DRY /v1/servers/acme/eu": dryRunOf("acme", "eu", foreign("acme-eu.kura.test", "production"), shared, token), "DRY /v1/servers/bravo/eu": dryRunOf("bravo", "eu", foreign("bravo-eu.kura.test", "production"), shared, token),
		"DRY /v1/servers/carol/eu": dryRunOf("carol", "eu", foreign("carol-eu.kura.test", "canary")), "DRY /v1/servers/acme/us": dryRunOf("acme", "us"), "DRY /v1/servers/bravo/us": dryRunOf("bravo", "us"),
	}}
	c := newCore(t, d)
	plan := func(account, region string) string {
		t.Helper()
		config := c.object("kura_server", nil, map[string]tftypes.Value{"account": hcl(account), "region": hcl(region), "image_tag": hcl("2")})
		return spoken(c.plan("kura_server", nil, config, nil).Diagnostics)
	}
	said := plan("acme", "eu")
	if strings.Count(said, "WARNING") != 3 || !contains(said, "Plan server acme/eu: hosts are somebody else's (ForeignOwner)", `acme-eu.kura.test belongs to "production"`, "another environment uses its owner id", "lacks a permission (ZoneForbidden)", "lacks DNS:Edit") {
		t.Errorf("the plan says %q", said)
	}
	if said := plan("bravo", "eu"); said != "" {
		t.Errorf("the same causes: %s", said)
	}
	if said := plan("carol", "eu"); strings.Count(said, "WARNING") != 1 || !strings.Contains(said, `carol-eu.kura.test belongs to "canary"`) {
		t.Errorf("another owner: %q", said)
	}
	for _, account := range []string{"acme", "bravo"} {
		if said := plan(account, "us"); said != "" {
			t.Errorf("a region that checks no hosts: %s", said)
		}
	}
	if n := d.count("DRY /v1/servers/acme/us") + d.count("DRY /v1/servers/bravo/us"); n != 1 {
		t.Errorf("of a region that checks no hosts %d servers asked", n)
	}
	if n := d.count("GET /v1/regions/eu"); n != 1 {
		t.Errorf("the region was read %d times", n)
	}
}

func TestD3_aRefreshSaysThatSomebodyElseHasAHost(t *testing.T) {
	v := view(fleet.VerdictProgressing, "", "2", "2", fleet.DeploymentSucceeded)
	if w := shadowed(v); w != nil {
		t.Errorf("nothing is wrong: %+v", w)
	}
	v.Conditions = append(v.Conditions, fleet.Condition{Type: fleet.ConditionDNSOwned, Status: fleet.False, Reason: fleet.ReasonForeignOwner, Message: `acme-eu.kura.test belongs to "production"`})
	all := project(v, before{}, time.Now()).warnings()
	if len(all) != 1 || !contains(all[0].summary+all[0].detail, "ForeignOwner", `acme-eu.kura.test belongs to "production".`, "kurad dns audit") {
		t.Errorf("%+v", all)
	}
}
