// Command cacheserver is the cache server of tests and the demo: a static
// program that runs FROM scratch, answers /up with its version, and can be told
// to misbehave in the ways that real servers do.
//
// It is set up by the environment alone:
//
//	KURA_LISTEN        address to listen on (default :8443)
//	KURA_TLS_CERT      file with its certificate; without it the server speaks plain HTTP
//	KURA_TLS_KEY       file with the certificate's key
//	KURA_BOOT_DELAY    how long /up answers 503 after the start, for example 2s
//	KURA_VERSION       what /up says its version is (default: the one it was built with)
//	KURA_ACCOUNT       what /up says its account is
//	KURA_MODE          how it misbehaves, see mode; default ok
//
// A version that ends in -crash, -hang, -fail or -ignoreterm sets the mode by
// itself, so that an image tag alone can be the fault. KURA_MODE wins over it.
//
// SIGTERM shuts it down gracefully with exit code 0. It reloads nothing.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// version is set when the program is built: -ldflags "-X main.version=v1".
var version = "dev"

// crashCode is what a crash leaves behind, to be told from every other exit.
const crashCode = 3

func main() {
	log.SetFlags(0)
	log.SetPrefix("cacheserver: ")
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM, os.Interrupt)
	if err := run(os.Getenv, terms, os.Exit); err != nil {
		log.Fatal(err)
	}
}

// run reads the environment and serves.
func run(getenv func(string) string, terms <-chan os.Signal, exit func(int)) error {
	s, err := newServer(getenv, os.Environ, exit)
	if err != nil {
		return err
	}
	listener, err := listen(getenv)
	if err != nil {
		return err
	}
	return s.serve(listener, terms)
}

// serve answers until a signal that the mode does not ignore.
func (s *server) serve(listener net.Listener, terms <-chan os.Signal) error {
	web := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      time.Minute,
		IdleTimeout:       time.Minute,
		MaxHeaderBytes:    16 << 10,
	}
	web.RegisterOnShutdown(s.release)
	failed := make(chan error, 1)
	go func() { failed <- web.Serve(listener) }()
	log.Printf("version %s, mode %s, listening on %s", s.version, s.mode(), listener.Addr())

	for {
		select {
		case err := <-failed:
			return fmt.Errorf("serve on %s: %w", listener.Addr(), err)
		case sig := <-terms:
			if s.mode() == modeIgnoreTerm {
				log.Printf("ignored %s", sig)
				continue
			}
			log.Printf("got %s, shutting down", sig)
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			if err := web.Shutdown(ctx); err != nil {
				return fmt.Errorf("shut down: %w", err)
			}
			return nil
		}
	}
}

// listen opens the address, with TLS where a certificate is named.
func listen(getenv func(string) string) (net.Listener, error) {
	address := getenv("KURA_LISTEN")
	if address == "" {
		address = ":8443"
	}
	certFile, keyFile := getenv("KURA_TLS_CERT"), getenv("KURA_TLS_KEY")
	if (certFile == "") != (keyFile == "") {
		return nil, errors.New("KURA_TLS_CERT and KURA_TLS_KEY go together: set both or none")
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen (KURA_LISTEN): %w", err)
	}
	if certFile == "" {
		return listener, nil
	}
	certificate, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		listener.Close()
		return nil, fmt.Errorf("load KURA_TLS_CERT and KURA_TLS_KEY: %w", err)
	}
	return tls.NewListener(listener, &tls.Config{
		Certificates: []tls.Certificate{certificate},
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
	}), nil
}
