package etcd

import (
	"crypto/tls"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kurafleet/terraform-provider-kura/internal/world"
)

func TestCluster_optionsThatCannotWorkAreRefused(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	one := []string{"https://127.0.0.1:1"}
	tests := []struct {
		name string
		o    ClusterOptions
		want []string
	}{
		{"no endpoint", ClusterOptions{}, []string{"--store-endpoints"}},
		{"no URL", ClusterOptions{Endpoints: []string{"etcd-1:2379"}}, []string{`"etcd-1:2379"`, "https://etcd-1.example:2379"}},
		{"no port", ClusterOptions{Endpoints: []string{"http://etcd-1"}}, []string{`"http://etcd-1"`}},
		{"a path", ClusterOptions{Endpoints: []string{"http://etcd-1:2379/v3"}}, []string{"/v3"}},
		{"http and https", ClusterOptions{Endpoints: []string{"http://a:1", "https://b:1"}}, []string{"https://b:1", "http://a:1", "all"}},
		{"TLS files without TLS", ClusterOptions{Endpoints: []string{"http://a:1"}, CAFile: empty}, []string{"not encrypted", "https://"}},
		{"a certificate without its key", ClusterOptions{Endpoints: one, CertFile: empty}, []string{"--store-cert", "--store-key"}},
		{"no CA file", ClusterOptions{Endpoints: one, CAFile: empty + "x"}, []string{"--store-ca", empty + "x"}},
		{"an empty CA file", ClusterOptions{Endpoints: one, CAFile: empty}, []string{"--store-ca", "no certificate"}},
		{"an empty certificate", ClusterOptions{Endpoints: one, CertFile: empty, KeyFile: empty}, []string{"--store-cert", empty}},
	}
	for _, test := range tests {
		_, err := OpenCluster(test.o)
		if err == nil {
			t.Errorf("%s: no error", test.name)
			continue
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", test.name, err, want)
			}
		}
	}
}

func TestCluster_endpointThatNobodyListensAtIsNamed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = OpenCluster(ClusterOptions{Endpoints: []string{"http://" + l.Addr().String()}})
	for _, want := range []string{l.Addr().String(), "connection refused", "check that etcd runs there"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestCluster_clientCertificateIsReadAgainForEachConnection(t *testing.T) {
	ca, err := world.NewCA()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	issue := func() []byte {
		t.Helper()
		certificate, err := ca.Issue("kurad.test")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ca.WriteFiles(dir, certificate); err != nil {
			t.Fatal(err)
		}
		pair, err := certificate.TLS()
		if err != nil {
			t.Fatal(err)
		}
		return pair.Certificate[0]
	}
	first := issue()
	_, config, err := ClusterOptions{
		Endpoints: []string{"https://127.0.0.1:1"}, CAFile: filepath.Join(dir, "ca.pem"),
		CertFile: filepath.Join(dir, "server.pem"), KeyFile: filepath.Join(dir, "server-key.pem"),
	}.check()
	if err != nil {
		t.Fatal(err)
	}
	shown := func() []byte {
		t.Helper()
		pair, err := config.GetClientCertificate(&tls.CertificateRequestInfo{})
		if err != nil {
			t.Fatal(err)
		}
		return pair.Certificate[0]
	}
	if string(shown()) != string(first) {
		t.Error("another certificate is shown than the one in the file")
	}
	if renewed := issue(); string(shown()) != string(renewed) {
		t.Error("a renewed certificate is not shown")
	}
}
