package main

import (
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard)
	os.Exit(m.Run())
}

// start returns a server with the given environment and the exit codes it asked for.
func start(t *testing.T, env map[string]string) (*server, chan int) {
	t.Helper()
	exits := make(chan int, 1)
	environ := func() []string { return []string{"ZONE=secret", "KURA_ACCOUNT=acme"} }
	s, err := newServer(func(name string) string { return env[name] }, environ, func(code int) { exits <- code })
	if err != nil {
		t.Fatal(err)
	}
	return s, exits
}

// ask returns the status and body of one request.
func ask(s *server, method, target string) (int, string) {
	w := httptest.NewRecorder()
	s.handler().ServeHTTP(w, httptest.NewRequest(method, target, nil))
	return w.Code, strings.TrimSpace(w.Body.String())
}

func TestUp_answersByTheMode(t *testing.T) {
	tests := []struct {
		name string
		env  map[string]string
		code int
		body string
	}{
		{"no setting", nil, 200, `{"status":"ok","version":"dev","account":""}`},
		{"version and account", map[string]string{"KURA_VERSION": "v2", "KURA_ACCOUNT": "acme"}, 200, `{"status":"ok","version":"v2","account":"acme"}`},
		{"fail", map[string]string{"KURA_MODE": "fail"}, 503, `{"status":"failing","version":"dev","account":""}`},
		{"the tag is the fault", map[string]string{"KURA_VERSION": "v2-fail"}, 503, `{"status":"failing","version":"v2-fail","account":""}`},
		{"KURA_MODE wins over the tag", map[string]string{"KURA_VERSION": "v2-fail", "KURA_MODE": "ok"}, 200, `{"status":"ok","version":"v2-fail","account":""}`},
		{"ignore-term answers", map[string]string{"KURA_VERSION": "v2-ignoreterm"}, 200, `{"status":"ok","version":"v2-ignoreterm","account":""}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, _ := start(t, tt.env)
			code, body := ask(s, "GET", "/up")
			if code != tt.code || body != tt.body {
				t.Errorf("/up with %v answered %d %s, want %d %s", tt.env, code, body, tt.code, tt.body)
			}
		})
	}
}

func TestUp_is503UntilTheBootIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := start(t, map[string]string{"KURA_BOOT_DELAY": "2s"})
		if code, body := ask(s, "GET", "/up"); code != 503 || !strings.Contains(body, `"starting"`) {
			t.Errorf("at the start /up answered %d %s, want 503 starting", code, body)
		}
		<-time.After(2 * time.Second)
		if code, body := ask(s, "GET", "/up"); code != 200 {
			t.Errorf("after the boot /up answered %d %s, want 200", code, body)
		}
	})
}

func TestUp_hangsUntilTheClientLeavesOrTheServerStops(t *testing.T) {
	for name, leave := range map[string]func(cancel func(), s *server){
		"client leaves": func(cancel func(), _ *server) { cancel() },
		"server stops":  func(_ func(), s *server) { s.release(); s.release() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, _ := start(t, map[string]string{"KURA_VERSION": "v2-hang"})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				ended := make(chan any, 1)
				go func() {
					defer func() { ended <- recover() }()
					s.handler().ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/up", nil))
				}()
				<-time.After(time.Hour)
				select {
				case got := <-ended:
					t.Fatalf("a hanging /up ended with %v", got)
				default:
				}
				leave(cancel, s)
				if got := <-ended; got != http.ErrAbortHandler {
					t.Errorf("a hanging /up ended with %v, want no answer (http.ErrAbortHandler)", got)
				}
			})
		})
	}
}

func TestCrash_exitsWithItsOwnCode(t *testing.T) {
	for name, env := range map[string]map[string]string{
		"mode":    {"KURA_MODE": "crash"},
		"version": {"KURA_VERSION": "v2-crash"},
		"later":   {"KURA_MODE": "crash-after=5s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				_, exits := start(t, env)
				if code := <-exits; code != 3 {
					t.Errorf("exit code %d, want 3", code)
				}
				if after := time.Since(begun); name == "later" && after != 5*time.Second {
					t.Errorf("crashed after %s, want 5s", after)
				}
			})
		})
	}
}

func TestControl_switchesTheModeAtRunTime(t *testing.T) {
	s, exits := start(t, nil)
	for _, step := range []struct {
		target string
		code   int
		up     int
	}{
		{"/control?mode=fail", 200, 503},
		{"/control?mode=ok", 200, 200},
		{"/control?mode=nonsense", 400, 200},
		{"/control?mode=crash-after=soon", 400, 200},
	} {
		if code, body := ask(s, "POST", step.target); code != step.code {
			t.Errorf("POST %s answered %d %s, want %d", step.target, code, body, step.code)
		}
		if code, body := ask(s, "GET", "/up"); code != step.up {
			t.Errorf("after %s /up answered %d %s, want %d", step.target, code, body, step.up)
		}
	}
	ask(s, "POST", "/control?mode=crash")
	if code := <-exits; code != 3 {
		t.Errorf("exit code %d, want 3", code)
	}
	if code, _ := ask(s, "GET", "/control?mode=ok"); code != 405 {
		t.Errorf("GET /control answered %d, want 405: only a POST may change something", code)
	}
}

func TestEnv_listsNamesAndNoValues(t *testing.T) {
	s, _ := start(t, nil)
	_, body := ask(s, "GET", "/env")
	if diff := cmp.Diff(`["KURA_ACCOUNT","ZONE"]`, body); diff != "" {
		t.Errorf("/env (-want +got):\n%s", diff)
	}
}

func TestServe_stopsOnASignalUnlessItIgnoresIt(t *testing.T) {
	s, _ := start(t, map[string]string{"KURA_MODE": "ignore-term"})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	terms := make(chan os.Signal)
	ended := make(chan error, 1)
	go func() { ended <- s.serve(listener, terms) }()
	for range 2 { // the second is taken only if the first did not end it
		select {
		case terms <- syscall.SIGTERM:
		case err := <-ended:
			t.Fatalf("serve ended with %v although it ignores SIGTERM", err)
		}
	}
	if err := s.setMode("ok"); err != nil {
		t.Fatal(err)
	}
	// The second signal may be looked at only now and end it; then nobody takes a third.
	select {
	case terms <- syscall.SIGTERM:
		err = <-ended
	case err = <-ended:
	}
	if err != nil {
		t.Errorf("serve ended with %v, want nil after SIGTERM", err)
	}
}

func TestRun_refusesASettingItCannotUse(t *testing.T) {
	for _, env := range []map[string]string{
		{"KURA_MODE": "nonsense"},
		{"KURA_BOOT_DELAY": "soon"},
		{"KURA_LISTEN": "127.0.0.1:0", "KURA_TLS_CERT": "/no/such/file"},
		{"KURA_LISTEN": "127.0.0.1:0", "KURA_TLS_CERT": "/no/such/file", "KURA_TLS_KEY": "/no/such/file"},
		{"KURA_LISTEN": "nonsense"},
	} {
		if err := run(func(n string) string { return env[n] }, nil, os.Exit); err == nil || !strings.Contains(err.Error(), "KURA_") {
			t.Errorf("run with %v: error %v, want one that names the setting", env, err)
		}
	}
}
