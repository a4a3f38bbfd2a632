package provider

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/kurafleet/terraform-provider-kura/internal/api"
	"github.com/kurafleet/terraform-provider-kura/internal/api/server"
	"github.com/kurafleet/terraform-provider-kura/internal/fleet"
)

// A daemon with --tls-generate is trusted by its ca.pem, and by nothing else.
func TestSettings_caCertificateIsTheOneThatKuradGenerates(t *testing.T) {
	clearEnvironment(t)
	dir := t.TempDir()
	cert, err := server.GenerateCertificate(dir, nil, hclog.NewNullLogger(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	l, err := server.Listen("127.0.0.1:0", true)
	if err != nil {
		t.Fatal(err)
	}
	web := server.HTTPServer("", version(api.VersionInfo{Environment: "staging", Suffix: "-staging", Suffixes: fleet.DefaultSuffixes(), APIVersion: api.APIVersion}), hclog.NewNullLogger())
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(cert.Secure(l)) }()
	defer func() {
		web.Close()
		if err := <-ended; err != http.ErrServerClosed {
			t.Error(err)
		}
	}()
	ca, err := os.ReadFile(filepath.Join(dir, server.CAFile))
	if err != nil {
		t.Fatal(err)
	}
	for text, works := range map[string]bool{string(ca): true, "": false} {
		m := providerModel{Endpoint: types.StringValue("https://" + l.Addr().String()), Token: types.StringValue("t"), Environment: types.StringValue("staging")}
		if text != "" {
			m.CACertificate = types.StringValue(text)
		}
		var diags diag.Diagnostics
		s := m.session("test", &diags)
		if diags.HasError() {
			t.Fatal(diags)
		}
		if got := s.use(t.Context(), "Read", &diags) != nil; got != works {
			t.Errorf("with the authority %v: it works: %v; %v", works, got, diags)
		}
		if !works && (len(diags) == 0 || !strings.Contains(diags[0].Detail(), "certificate")) {
			t.Errorf("without the authority: %v, want that the certificate is the cause", diags)
		}
	}
}
