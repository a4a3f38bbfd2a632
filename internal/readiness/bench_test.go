package readiness

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// BenchmarkR1_freshProbe compares a probe with a bare http.Client that also
// connects and shakes hands each time, in turns, in the same run: the metric
// "ratio" is the cost of the one over the other.
func BenchmarkR1_freshProbe(b *testing.B) {
	o := newOutside(b)
	port := serveHTTP(b, listen(b, "127.0.0.1"), o.serverTLS(), ok)
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{RootCAs: o.ca.Pool()},
		DialContext:       (&net.Dialer{}).DialContext,
	}}
	prober := o.prober()
	for name, host := range map[string]string{"address": "127.0.0.1", "with DNS": testHost} {
		b.Run(name, func(b *testing.B) {
			var probes, bare time.Duration
			for b.Loop() {
				begun := time.Now()
				if seen := prober.Probe(b.Context(), Target{URL: "https://" + host + ":" + port, Path: "/up"}); !seen.Ready {
					b.Fatalf("%s %s", seen.Reason, seen.Message)
				}
				between := time.Now()
				answer, err := client.Get("https://127.0.0.1:" + port + "/up")
				if err != nil {
					b.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, answer.Body)
				answer.Body.Close()
				probes, bare = probes+between.Sub(begun), bare+time.Since(between)
			}
			b.ReportMetric(float64(probes)/float64(bare), "ratio")
			b.ReportMetric(float64(probes.Microseconds())/float64(b.N), "µs/probe")
		})
	}
}
