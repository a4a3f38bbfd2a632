package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

var begun = time.Now()

// chapter begins a part of the story.
func chapter(format string, args ...any) {
	fmt.Printf("\n[%3.0fs] "+format+"\n", append([]any{time.Since(begun).Seconds()}, args...)...)
}

// tell prints a line of the story.
func tell(format string, args ...any) {
	fmt.Printf("       "+format+"\n", args...)
}

// show prints what a command printed, indented.
func show(text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		fmt.Print("       │ ", strings.TrimRight(line, "\n"), "\n")
	}
}

// progress says what takes long, and how long it took.
func progress(what string, do func() error) error {
	fmt.Printf("       … %s", what)
	started := time.Now()
	done := make(chan error, 1)
	go func() { done <- do() }()
	tick := time.NewTicker(5 * time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err != nil {
				fmt.Println(": failed")
				return err
			}
			fmt.Printf(" (%.1f s)\n", time.Since(started).Seconds())
			return nil
		case <-tick.C:
			fmt.Print(".")
		}
	}
}

// stop is an error after which waiting makes no sense.
type stop struct{ error }

// wait tries until it succeeds.
func wait(ctx context.Context, most time.Duration, what string, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		if final, ok := errors.AsType[stop](err); ok {
			return final.error
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s: %w", what, most, err)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// lines returns those lines of text that hold one of the words.
func lines(text string, words ...string) string {
	var kept []string
	for line := range strings.Lines(text) {
		for _, w := range words {
			if strings.Contains(line, w) {
				kept = append(kept, strings.TrimRight(line, "\n"))
				break
			}
		}
	}
	return strings.Join(kept, "\n")
}
