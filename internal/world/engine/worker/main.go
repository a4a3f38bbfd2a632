// Command worker is the smallest container that can be looked at: it serves its
// version on :8080, and it can be told to ignore SIGTERM or to end at once.
//
//	worker              serve until SIGTERM
//	worker exit CODE    end with CODE
//
// WORKER_VERSION is what it answers (default: what it was built as), and
// WORKER_IGNORE_TERM=1 makes it ignore SIGTERM. GET /env answers its environment,
// GET /file?name=PATH a file and GET /write?name=PATH&text=T makes one.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

var version = "dev"

func main() {
	if len(os.Args) > 2 && os.Args[1] == "exit" {
		code, err := strconv.Atoi(os.Args[2])
		if err != nil {
			code = 2
		}
		os.Exit(code)
	}
	if v := os.Getenv("WORKER_VERSION"); v != "" {
		version = v
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "worker:", err)
		os.Exit(1)
	}
}

func serve() error {
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGUSR1)
	defer cancel()
	if os.Getenv("WORKER_IGNORE_TERM") == "1" {
		signal.Ignore(syscall.SIGTERM)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, version) })
	mux.HandleFunc("GET /env", func(w http.ResponseWriter, _ *http.Request) {
		env := os.Environ()
		slices.Sort(env)
		fmt.Fprint(w, strings.Join(env, "\n"))
	})
	mux.HandleFunc("GET /file", func(w http.ResponseWriter, r *http.Request) {
		b, err := os.ReadFile(r.FormValue("name"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		_, _ = w.Write(b)
	})
	mux.HandleFunc("GET /write", func(w http.ResponseWriter, r *http.Request) {
		if err := os.WriteFile(r.FormValue("name"), []byte(r.FormValue("text")), 0o600); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	server := &http.Server{Addr: ":8080", Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	select {
	case err := <-ended:
		return err
	case <-stop.Done():
		return server.Close()
	}
}
