package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// mode is how the server behaves.
type mode string

const (
	modeOK         mode = "ok"
	modeFail       mode = "fail"        // /up answers 503 for ever
	modeHang       mode = "hang"        // /up accepts the request and never answers
	modeCrash      mode = "crash"       // exits with code 3 at once
	modeIgnoreTerm mode = "ignore-term" // answers, and ignores SIGTERM

	// crashAfter is the start of a mode such as crash-after=5s: answers, and exits
	// with code 3 when the time is over.
	crashAfter = "crash-after="
)

// faultyTags are the endings of a version that set the mode.
var faultyTags = map[string]mode{
	"-crash":      modeCrash,
	"-hang":       modeHang,
	"-fail":       modeFail,
	"-ignoreterm": modeIgnoreTerm,
}

// server is the cache server without its listener.
type server struct {
	version, account string
	ready            time.Time       // when the boot is over
	environ          func() []string // as os.Environ
	exit             func(int)

	mu      sync.Mutex
	current mode

	released chan struct{} // closed when hanging requests are let go
	once     sync.Once
}

// newServer reads the environment. In mode crash it calls exit.
func newServer(getenv func(string) string, environ func() []string, exit func(int)) (*server, error) {
	s := &server{version: version, account: getenv("KURA_ACCOUNT"), environ: environ, exit: exit, released: make(chan struct{})}
	if v := getenv("KURA_VERSION"); v != "" {
		s.version = v
	}
	var delay time.Duration
	if text := getenv("KURA_BOOT_DELAY"); text != "" {
		var err error
		if delay, err = time.ParseDuration(text); err != nil || delay < 0 {
			return nil, fmt.Errorf("KURA_BOOT_DELAY=%q is not a duration such as 2s", text)
		}
	}
	s.ready = time.Now().Add(delay)

	wanted := getenv("KURA_MODE")
	if wanted == "" {
		wanted = string(modeOfVersion(s.version))
	}
	if err := s.setMode(wanted); err != nil {
		return nil, fmt.Errorf("KURA_MODE: %w", err)
	}
	return s, nil
}

func modeOfVersion(version string) mode {
	for ending, m := range faultyTags {
		if strings.HasSuffix(version, ending) {
			return m
		}
	}
	return modeOK
}

func (s *server) mode() mode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.current
}

// setMode switches the mode; the crashing ones take effect here.
func (s *server) setMode(text string) error {
	m := mode(text)
	if after, ok := strings.CutPrefix(text, crashAfter); ok {
		delay, err := time.ParseDuration(after)
		if err != nil || delay < 0 {
			return fmt.Errorf("%q: the part after = is not a duration such as 5s", text)
		}
		time.AfterFunc(delay, func() { s.crash(text) })
		m = modeOK
	}
	switch m {
	case modeOK, modeFail, modeHang, modeIgnoreTerm, modeCrash:
	default:
		return fmt.Errorf("%q is none of ok, fail, hang, crash, crash-after=<duration>, ignore-term", text)
	}
	s.mu.Lock()
	s.current = m
	s.mu.Unlock()
	if m == modeCrash {
		s.crash(text)
	}
	return nil
}

func (s *server) crash(why string) {
	log.Printf("crashing (mode %s)", why)
	s.exit(crashCode)
}

// release lets hanging requests go, so that a shutdown need not wait for them.
func (s *server) release() { s.once.Do(func() { close(s.released) }) }

// handler returns the routes. Only /up follows the mode, so that /control can
// heal a server that hangs.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /up", s.up)
	mux.HandleFunc("GET /env", s.env)
	mux.HandleFunc("POST /control", s.control)
	return mux
}

// upAnswer is what /up says.
type upAnswer struct {
	Status  string `json:"status"`
	Version string `json:"version"`
	Account string `json:"account"`
}

func (s *server) up(w http.ResponseWriter, r *http.Request) {
	code, status := http.StatusOK, "ok"
	switch s.mode() {
	case modeHang:
		select {
		case <-r.Context().Done():
		case <-s.released:
		}
		panic(http.ErrAbortHandler) // closes the connection without an answer
	case modeFail:
		code, status = http.StatusServiceUnavailable, "failing"
	case modeOK, modeIgnoreTerm, modeCrash:
		if time.Now().Before(s.ready) {
			code, status = http.StatusServiceUnavailable, "starting"
		}
	}
	answer(w, code, upAnswer{Status: status, Version: s.version, Account: s.account})
}

// env lists the names of the environment's variables, and never a value.
func (s *server) env(w http.ResponseWriter, _ *http.Request) {
	names := []string{}
	for _, line := range s.environ() {
		name, _, _ := strings.Cut(line, "=")
		names = append(names, name)
	}
	slices.Sort(names)
	answer(w, http.StatusOK, names)
}

func (s *server) control(w http.ResponseWriter, r *http.Request) {
	if err := s.setMode(r.URL.Query().Get("mode")); err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	log.Printf("mode %s", s.mode())
	answer(w, http.StatusOK, map[string]string{"mode": string(s.mode())})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		log.Printf("write an answer: %v", err)
	}
}
