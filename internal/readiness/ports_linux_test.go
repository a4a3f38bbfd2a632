package readiness

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestR1_closedProbesUseUpNoPorts(t *testing.T) {
	o := newOutside(t)
	for scheme, port := range map[string]string{
		"http":  serveHTTP(t, listen(t, "127.0.0.1"), nil, ok),
		"https": serveHTTP(t, listen(t, "127.0.0.1"), o.serverTLS(), ok),
	} {
		prober := o.prober()
		for range 50 {
			if seen := prober.Probe(t.Context(), Target{URL: scheme + "://" + testHost + ":" + port, Path: "/up"}); !seen.Ready {
				t.Fatalf("%s %s, want ready", seen.Reason, seen.Message)
			}
		}
		if kept := timeWait(t, port); kept != 0 {
			t.Errorf("50 %s probes left %d sockets in TIME_WAIT, want none", scheme, kept)
		}
	}
}

// timeWait counts sockets of the port, on either side, in TIME_WAIT.
func timeWait(t *testing.T, port string) int {
	t.Helper()
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile("/proc/self/net/tcp")
	if err != nil {
		t.Fatal(err)
	}
	suffix, count := fmt.Sprintf(":%04X", number), 0
	for line := range strings.Lines(string(table)) {
		const local, remote, state, timeWaitState = 1, 2, 3, "06"
		fields := strings.Fields(line)
		if len(fields) > state && fields[state] == timeWaitState && (strings.HasSuffix(fields[local], suffix) || strings.HasSuffix(fields[remote], suffix)) {
			count++
		}
	}
	return count
}
