//go:build real

package provider

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// What goes wrong between the provider and the daemon, and what an apply makes of it.
// Each case ends with the daemon's own record as it should be and a plan without changes.

// 409: whatever was there before is not taken over, and the error says how to import it.
func TestAccFault_whatExistsAlreadyNamesTheImportBlock(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	c.write(k.config())
	c.apply() // what the API is then shown in its own words
	region, err := k.api.GetRegion(t.Context(), "eu")
	if err != nil {
		t.Fatal(err)
	}
	c.destroy()
	_, err1 := k.api.PutAccount(t.Context(), fleet.Account{ID: "acme"}, api.PutOptions{})
	_, err2 := k.api.PutHostTemplate(t.Context(), fleet.HostTemplate{Name: "public", Pattern: "{account_handle}-{cluster_id}{env_suffix}.kura.test"}, api.PutOptions{})
	_, err3 := k.api.PutRegion(t.Context(), region.Region, api.PutOptions{})
	for _, err := range []error{err1, err2, err3} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var blocks string
	for _, row := range []struct{ what, address, id string }{
		{`Create account "acme"`, "kura_account.acme", "acme"},
		{`Create host template "public"`, "kura_host_template.public", "public"},
		{`Create region "eu"`, "kura_region.eu", "eu"},
	} {
		kind, _, _ := strings.Cut(row.address, ".")
		c.write(k.config() + blocks)
		c.refused([]string{row.what + ": it exists already", "to = " + kind + ".this", fmt.Sprintf("id = %q", row.id)}, "apply", "-no-color", "-auto-approve")
		blocks += fmt.Sprintf("import {\n  to = %s\n  id = %q\n}\n", row.address, row.id)
	}
	c.write(k.config() + blocks)
	c.shows(true, []string{"to import, 0 to add, 0 to change, 0 to destroy"})
	c.apply()
	if got, err := k.api.GetRegion(t.Context(), "eu"); err != nil || got.Generation != 1 {
		t.Errorf("the region was written: generation %d, %v", got.Generation, err)
	}
	c.showsNothing()
	c.destroy()
}

// 412: somebody writes between what the apply has read and what it writes.
func TestAccFault_aWriteInBetweenIsNotOverwritten(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2", "v3")
	b := k.between()
	c.write(k.config(serverHCL("v1")))
	c.apply()

	c.write(k.config(serverHCL("v2")))
	b.forget()
	b.give(writesServer, after(func() { k.write(acmeEU, "v3") }))
	c.refused([]string{"Update server acme/eu", "is at generation 2, not 1", "Plan again, look at what changed"}, "apply", "-no-color", "-auto-approve")
	b.statuses(writesServer, http.StatusPreconditionFailed)
	if v := k.stands(acmeEU, fleet.VerdictConverged); v.Intent.ImageTag != "v3" || v.Generation != 2 {
		t.Errorf("the daemon's record is %q at generation %d, want the other one's v3 at 2", v.Intent.ImageTag, v.Generation)
	}
	c.shows(true, []string{`~ image_tag = "v3" -> "v2"`, "0 to add, 1 to change, 0 to destroy"}, "tainted", "must be replaced")
	c.apply()
	c.showsNothing()

	// The same of what a server belongs to.
	labelled := func(config, object string) string {
		return replaceOnce(t, config, object, object+"\n  labels = { tier = \"gold\" }")
	}
	for _, row := range []struct {
		what, object string
		on           on
		meanwhile    func() (generation int64, err error)
	}{
		{`Update account "acme"`, "id = \"acme\"", on{method: "PUT", path: "/v1/accounts/acme"}, func() (int64, error) {
			w, err := k.api.PutAccount(t.Context(), fleet.Account{ID: "acme", Labels: map[string]string{"tier": "silver"}}, api.PutOptions{})
			return w.Object.Generation, err
		}},
		{`Update region "eu"`, "name      = \"eu\"", on{method: "PUT", path: "/v1/regions/eu"}, func() (int64, error) {
			r, err := k.api.GetRegion(t.Context(), "eu")
			if err != nil {
				return 0, err
			}
			r.Labels = map[string]string{"tier": "silver"}
			w, err := k.api.PutRegion(t.Context(), r.Region, api.PutOptions{})
			return w.Object.Generation, err
		}},
	} {
		t.Run(row.what, func(t *testing.T) {
			c := c.in(t)
			c.write(labelled(k.config(serverHCL("v2")), row.object))
			b.forget()
			b.give(row.on, after(func() {
				if _, err := row.meanwhile(); err != nil {
					t.Error(err)
				}
			}))
			c.refused([]string{row.what, "somebody changed it meanwhile", "Plan again"}, "apply", "-no-color", "-auto-approve")
			c.shows(true, []string{`"silver" -> "gold"`, "0 to add, 1 to change, 0 to destroy"})
			c.apply()
			c.showsNothing()
		})
	}
	c.destroy()
}

// 429: the daemon is left alone for as long as it asks for, which its own record of
// requests tells.
func TestAccFault_aBusyDaemonIsLeftAloneAsLongAsItAsks(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2")
	b := k.between()
	c.write(k.config())
	c.apply()

	c.write(k.config(serverHCL("v1")))
	b.forget()
	patience := map[on]int{meets: 1, writesServer: 2, pollsServers: 2}
	for what, seconds := range patience {
		b.give(what, busy(seconds))
	}
	c.apply()
	for what, seconds := range patience {
		asked := b.asked(what)
		if len(asked) < 2 || asked[0].status != http.StatusTooManyRequests || asked[1].status == http.StatusTooManyRequests {
			t.Fatalf("%+v was answered %+v, want 429 and then something else", what, asked)
		}
		if waited := asked[1].at.Sub(asked[0].at); waited < time.Duration(seconds)*time.Second {
			t.Errorf("%s %s came back after %s, asked for %d s", what.method, what.path, waited, seconds)
		}
	}
	b.statuses(writesServer, http.StatusTooManyRequests, http.StatusCreated)
	if v := k.server("acme", "eu"); v.Deployment.Seq != 1 || v.Generation != 1 {
		t.Errorf("one apply made deployment %d and generation %d", v.Deployment.Seq, v.Generation)
	}
	c.showsNothing()

	// Longer than an apply would sit still for: the error says for how long.
	c.write(k.config(serverHCL("v2")))
	b.forget()
	b.give(writesServer, busy(3600))
	c.refused([]string{"Update server acme/eu", "too many requests", "left alone for 1h0m0s", "try again after that"}, "apply", "-no-color", "-auto-approve")
	b.statuses(writesServer, http.StatusTooManyRequests)
	if v := k.server("acme", "eu"); v.Intent.ImageTag != "v1" {
		t.Errorf("the daemon's record is %s", v.Intent.ImageTag)
	}
	// A wait ends in its own time, and asks nobody meanwhile.
	c.write(k.config(serverHCL("v2", `timeouts = { update = "4s" }`)))
	b.forget()
	b.give(pollsServers, busy(3600))
	b.give(readsServer, nothing, busy(3600)) // the first is the refresh
	if text := c.apply(); !contains(text, "Update server acme/eu: not ready yet", "Apply complete") {
		t.Errorf("%s", text)
	}
	b.statuses(pollsServers, http.StatusTooManyRequests)
	b.statuses(readsServer, http.StatusOK, http.StatusTooManyRequests)
	if v := k.stands(acmeEU, fleet.VerdictConverged); v.ServingImageTag != "v2" {
		t.Errorf("it serves %s", v.ServingImageTag)
	}
	c.showsNothing()
	c.destroy()
}

// 5xx, resets and what a proxy says in the middle of a wait end no wait: the daemon has
// the declaration, and works on it.
func TestAccFault_aWaitOutlivesAnswersThatAreNone(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1-fail", "v2-fail")
	b := k.between()
	c.write(k.config())
	c.apply()
	for seq, version := range []string{"v1-fail", "v2-fail"} {
		c.write(k.config(serverHCL(version)))
		b.forget()
		b.give(pollsServers, nothing, cut, page(http.StatusBadGateway), answers(http.StatusInternalServerError, fleet.CodeInternal, "kurad failed to answer"),
			answers(http.StatusServiceUnavailable, fleet.CodeUnavailable, "the store does not answer", "Retry-After", "1"), half, page(http.StatusNotFound), page(http.StatusGatewayTimeout), page(http.StatusOK))
		apply, text := c.start("apply", "-no-color", "-auto-approve")
		k.eventually("the wait meets every fault", func() (bool, string) { return b.given() == 0, fmt.Sprintf("%d are left", b.given()) })
		k.answers503(version, fleet.VerdictProgressing)
		k.behave(acmeEU, "ok")
		if got := text(); apply.ProcessState.ExitCode() != 0 || !contains(got, "Apply complete") || contains(got, "Warning") {
			t.Errorf("%s", got)
		}
		if writes := b.asked(writesServer); len(writes) != 1 {
			t.Errorf("it was written %d times: %v", len(writes), writes)
		}
		if v := k.server("acme", "eu"); v.Verdict != fleet.VerdictConverged || v.Deployment.Seq != int64(seq)+1 || v.ServingImageTag != version {
			t.Errorf("it is %s, deployment %d", standing(v), v.Deployment.Seq)
		}
		c.showsNothing()
	}
	c.destroy()
}

// A token that is revoked during a wait ends it. A create is no error then, for an error
// would taint what the daemon is still bringing up.
func TestAccFault_aTokenThatIsRevokedDuringAWaitTaintsNothing(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1-fail", "v2-fail")
	b := k.between()
	c.write(k.config())
	c.apply()
	revoked := func() fault { return answers(http.StatusUnauthorized, fleet.CodeUnauthorized, "the token was revoked") }
	for _, row := range []struct {
		version string
		code    int
		want    []string
	}{
		{"v1-fail", 0, []string{"Create server acme/eu: nobody knows whether it gets ready", "What was declared is stored, and kurad goes on"}},
		{"v2-fail", 1, []string{"Update server acme/eu, wait for it"}},
	} {
		c.write(k.config(serverHCL(row.version)))
		b.forget()
		b.give(pollsServers, nothing, revoked())
		b.give(readsServer, nothing)
		apply, text := c.start("apply", "-no-color", "-auto-approve")
		k.answers503(row.version, fleet.VerdictProgressing)
		if got := text(); apply.ProcessState.ExitCode() != row.code || !contains(got, append(row.want, "he token was revoked.", "`kurad token list`")...) {
			t.Errorf("ended with %d: %s", apply.ProcessState.ExitCode(), got)
		}
		k.behave(acmeEU, "ok")
		if v := k.stands(acmeEU, fleet.VerdictConverged); v.ServingImageTag != row.version {
			t.Errorf("it serves %s", v.ServingImageTag)
		}
		c.showsNothing()
	}
	c.destroy()
}

// Answers that get lost on their way: what was written shows in the next plan.
func TestAccFault_answersThatAreLost(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1", "v2")
	b := k.between()
	c.write(k.config())
	c.apply()

	c.write(k.config(serverHCL("v1")))
	b.forget()
	b.give(writesServer, loses)
	c.refused([]string{"Create server acme/eu: it exists already", "its answer got lost", "import {", `id = "acme/eu"`}, "apply", "-no-color", "-auto-approve")
	b.statuses(writesServer, 0)
	k.stands(acmeEU, fleet.VerdictConverged)
	c.write(k.config(serverHCL("v1"), "import {\n  to = kura_server.acme\n  id = \"acme/eu\"\n}\n"))
	c.apply()
	c.showsNothing()

	c.write(k.config(serverHCL("v2")))
	b.forget()
	b.give(writesServer, loses)
	c.refused([]string{"Update server acme/eu", "does not answer"}, "apply", "-no-color", "-auto-approve")
	b.statuses(writesServer, 0) // a conditional write is not repeated: its own success would refuse it
	if v := k.stands(acmeEU, fleet.VerdictConverged); v.ServingImageTag != "v2" || v.Deployment.Seq != 2 {
		t.Errorf("it serves %s with deployment %d", v.ServingImageTag, v.Deployment.Seq)
	}
	c.showsNothing()

	c.write(k.config())
	b.forget()
	b.give(endsServer, loses)
	c.apply()
	if asked := b.asked(endsServer); len(asked) != 2 || k.server("acme", "eu") != nil {
		t.Errorf("after %d deletes it is %s", len(asked), standing(k.server("acme", "eu")))
	}
	c.showsNothing()
	c.destroy()
	if err := k.nothingLeft(); err != nil {
		t.Error(err)
	}
}

// Only the daemon's own 404 for this very object takes it out of state.
func TestAccFault_whatIsNotTheDaemonsAnswerIsNeverTakenForGone(t *testing.T) {
	k, c := startKurad(t), newCLI(t)
	k.image(t, "v1")
	b := k.between()
	c.write(k.config(serverHCL("v1")))
	c.apply()
	for _, row := range []struct {
		name  string
		fault fault
		want  string
	}{
		{"a proxy's 404", page(http.StatusNotFound), "the answer is not kurad's"},
		{"a page", page(http.StatusOK), "not JSON"},
		{"half an answer", half, "does not answer"},
		{"a fault of kurad", answers(http.StatusInternalServerError, fleet.CodeInternal, "kurad failed to answer"), "its log says more"},
		{"a proxy's 401", page(http.StatusUnauthorized), "the answer is not kurad's"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := c.in(t)
			b.forget()
			b.give(readsServer, row.fault)
			c.refused([]string{"Read server acme/eu", row.want}, "plan", "-no-color", "-lock=false")
			if text, _ := c.run("state", "list"); !contains(text, "kura_server.acme") {
				t.Errorf("the state lost a server that nobody said is gone: %s", text)
			}
		})
	}
	b.forget()
	c.showsNothing()
	c.destroy()
}
