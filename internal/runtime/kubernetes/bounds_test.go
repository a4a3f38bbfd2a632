package kubernetes

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A status record is stored; whatever somebody writes into an object, it must fit.
func TestP3_nothingThatIsCopiedFromAnObjectIsWithoutBound(t *testing.T) {
	long := strings.Repeat("é\"", 2<<10)
	quoted, err := json.Marshal(long)
	if err != nil {
		t.Fatal(err)
	}
	o := live(t, fmt.Sprintf(`{"metadata":{"name":"a","annotations":{"tuist.dev/kura-manifest-revision":%[1]s,"dev.kura/restart-mark":%[1]s},"labels":{"dev.kura/environment":"test","tuist.dev/account":"acme","tuist.dev/region":"eu"}},
		"spec":{"image":%[1]s},"status":{"message":%[1]s,"phase":%[1]s,"publicURL":%[1]s,"observedImage":%[1]s}}`, quoted))
	o.spec["nodeSelector"] = map[string]any{}
	want, node := map[string]any{"image": "a:1"}, map[string]any{}
	for i := range 200 {
		key := fmt.Sprintf("%03d%s", i, long)
		want[key], node[key] = "x", "x"
		o.spec[key] = long
	}
	want["nodeSelector"] = node
	c := &Cluster{cfg: Config{Environment: fleet.Environment{Name: "test"}}}
	doc := fleet.KubeDocument{Revision: "r", Spec: want}
	key := fleet.ServerKey{Account: "acme", Region: "eu"}
	seen := c.compared(o, key, doc, nil, nil)
	seen.Altered = c.compared(o, key, doc, nil, echoed(o, doc, nil)).Altered
	held := *o
	held.owners = owners{{manager: "m", applied: true, fields: fieldpath.NewSet(fieldpath.MakePathOrDie("spec"))}}
	seen.Held = c.compared(&held, key, doc, nil, nil).Held
	c.served.Store(&servedSchema{openAPI(t, `{"type":"object","properties":{"image":{"type":"string"},"nodeSelector":{"type":"object","additionalProperties":{"type":"string"}}}}`)})
	seen.Dropped = c.compared(o, key, doc, nil, nil).Dropped
	for what, got := range map[string]int{"differs": len(seen.Differs), "held": len(seen.Held), "altered": len(seen.Altered), "dropped": len(seen.Dropped)} {
		if got != maxFields+1 {
			t.Errorf("%s: %d entries, want %d and one that says how many more", what, got, maxFields)
		}
	}
	if got := seen.Dropped[maxFields]; got != "… and 150 more" {
		t.Errorf("the last path is %q", got)
	}
	if got := seen.Held[maxFields].Path; got != "… and 151 more" {
		t.Errorf("the last path is %q", got)
	}
	for what, s := range map[string]string{"message": seen.Message, "phase": seen.Phase, "public url": seen.PublicURL, "observed image": seen.ObservedImage,
		"image": seen.SpecImage, "revision": seen.Revision, "restart mark": seen.RestartMark} {
		if len(s) > maxText || len(s) < maxText-8 || !utf8.ValidString(s) {
			t.Errorf("%s: %d bytes, valid %t", what, len(s), utf8.ValidString(s))
		}
	}
	for _, d := range append(seen.Held[:maxFields], seen.Altered[:maxFields]...) {
		if len(d.Path) > maxPath || !utf8.ValidString(d.Path) {
			t.Fatalf("a path of %d bytes, valid %t", len(d.Path), utf8.ValidString(d.Path))
		}
	}
	if b, err := json.Marshal(seen); err != nil || len(b) > 512<<10 {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	for s, want := range map[string]string{"": "", "abcd": "abcd", "abcde": "a…", "éééé": "…"} {
		if got := cut(s, 4); got != want {
			t.Errorf("%q is cut to %q, want %q", s, got, want)
		}
	}
}
