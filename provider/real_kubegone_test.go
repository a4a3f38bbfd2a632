//go:build real

package provider

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubecontroller"
	"github.com/kurafleet/terraform-provider-kura/internal/world/kubernetes"
)

// ends deletes something of the whole cluster, and does not wait for its end.
func (c *kubeRig) ends(of schema.GroupVersionResource, name string) {
	c.t.Helper()
	admin, err := c.server.Dynamic(kubernetes.Admin)
	if err == nil {
		err = admin.Resource(of).Delete(c.t.Context(), name, metav1.DeleteOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// finalizers sets those of an instance.
func (c *kubeRig) finalizers(name string, all ...string) {
	c.t.Helper()
	o := c.get(name)
	o.SetFinalizers(all)
	c.update(o)
}

// Issue 9, A3: while the resource definition or the namespace terminates, nothing can be made
// in it, and its instances are gone. The plan says so, and names what terminates.
func TestAccKube_P21_aPlanSaysWhatTerminates(t *testing.T) {
	k, c := startKubeKurad(t, kubernetes.Options{}), newCLI(t)
	c.write(k.kubeConfig("", "", serverHCL("v1"), bravo("v1")))
	c.apply()
	c.showsNothing()

	// The definition stays as long as an instance does that somebody finalizes.
	k.kube.finalizers("kura-bravo-eu", "test.dev/slow")
	k.kube.ends(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}, "kurainstances.kura.tuist.dev")
	k.until(acmeEU, "gone, and not to be made", func(v *fleet.ServerView) bool {
		return v.Reason == fleet.ReasonAbsent && v.Failing != nil && v.Failing.Count > 2
	})
	k.until(bravoEU, "being deleted", func(v *fleet.ServerView) bool { return v.Resource != nil && v.Resource.Deleting })
	c.shows(false, []string{
		"No changes", `Region "eu": what kurad does there comes to nothing (TypeNotServed)`, "Server acme/eu", "it is progressing (Absent)",
		"custom resource definition is terminating", "times since 20",
		`Region "eu": what kurad does there comes to nothing (Terminating)`, "Server bravo/eu", "KuraInstance kura/kura-bravo-eu is being deleted",
	})

	// Once it is gone nothing is known any more, and once it is there again all comes back.
	k.kube.finalizers("kura-bravo-eu")
	k.stands(acmeEU, fleet.VerdictUnobserved)
	k.stands(bravoEU, fleet.VerdictUnobserved)
	c.shows(false, []string{"No changes", `Region "eu" cannot be seen (TypeNotServed)`})
	if err := k.kube.server.InstallCRD(t.Context()); err != nil {
		t.Fatal(err)
	}
	k.stands(acmeEU, fleet.VerdictConverged)
	k.stands(bravoEU, fleet.VerdictConverged)
	c.showsNothing()

	// A namespace: what is refused has failed, and the plan proposes to try it at once.
	k.kube.ends(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}, kubernetes.Namespace)
	if err := k.kube.instances.Delete(t.Context(), "kura-acme-eu", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	k.stands(acmeEU, fleet.VerdictFailed)
	c.shows(true, []string{`+ image_tag = "v1"`, "Server acme/eu: version v1 failed (NamespaceNotFound)", "because it is being terminated", "0 to add, 1 to change, 0 to destroy"}, "must be replaced")
	c.destroy()
	if err := k.nothingLeft(); err != nil {
		t.Error(err)
	}
}

// Issue 9, A2: a controller that reports images by digest says nothing of the version. The
// plan says so, and has no change of which an apply would make nothing.
func TestAccKube_P23_anImageThatCannotBeReadPlansNothing(t *testing.T) {
	k, c := startKubeKurad(t, kubernetes.Options{}), newCLI(t)
	const digest = "registry.test/kura/cache@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	config := func(tag string, more ...string) string {
		return k.kubeConfig(`stall_after = "5s"`, "", serverHCL(tag, more...))
	}
	c.write(config("v1"))
	c.apply()
	k.kube.controller.Set(kubernetes.Namespace, "kura-acme-eu", kubecontroller.Behaviour{Image: digest})
	unread := func(v *fleet.ServerView) bool {
		return v.Reason == fleet.ReasonUnparsableImage && v.Verdict == fleet.VerdictStalled
	}
	says := []string{"No changes", "Server acme/eu: which version runs cannot be read", "It runs " + digest + ", whose tag cannot be read, wants v1"}
	k.until(acmeEU, "illegible", unread)
	c.shows(false, says)
	// What an apply declares is stored, and that nobody can tell what became of it is no error.
	applied := k.kube.applies("kura-acme-eu")
	c.write(config("v2"))
	if text := c.apply(); !contains(text, "which version runs cannot be read", digest, "Apply complete") {
		t.Errorf("%s", text)
	}
	k.until(acmeEU, "illegible", unread)
	c.shows(false, []string{"No changes", "which version runs cannot be read", "wants v2"})
	if text := c.apply(); !strings.Contains(text, "No changes") {
		t.Errorf("%s", text)
	}
	if n := k.kube.applies("kura-acme-eu") - applied; n != 1 {
		t.Errorf("one new version was applied %d times", n)
	}
	// An observing region says the same.
	c.write(k.kubeConfig("remediation = \"observe\"\n  stall_after = \"5s\"", "", serverHCL("v2")))
	c.apply()
	c.shows(false, []string{"No changes", "which version runs cannot be read"})
	k.kube.controller.Heal()
	k.stands(acmeEU, fleet.VerdictConverged)
	c.showsNothing()
	c.destroy()
}
