package engine

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

const module = "github.com/kurafleet/terraform-provider-kura"

// BuildImage makes the image ref FROM scratch with the static program at binary as
// its entrypoint.
func (e *Engine) BuildImage(ctx context.Context, ref, binary string) error {
	return e.settings.buildImage(ctx, ref, binary)
}

// CacheImage builds the demo cache server as the version that ref's tag names and
// makes it the image ref.
func (e *Engine) CacheImage(ctx context.Context, ref string) error {
	return e.programImage(ctx, ref, module+"/internal/world/cacheserver")
}

// WorkerImage makes the image ref of the program in folder worker, which serves the
// version that ref's tag names.
func (e *Engine) WorkerImage(ctx context.Context, ref string) error {
	return e.programImage(ctx, ref, module+"/internal/world/engine/worker")
}

func (e *Engine) programImage(ctx context.Context, ref, pkg string) error {
	binary, err := buildProgram(ctx, pkg, versionOf(ref))
	if err != nil {
		return err
	}
	return e.BuildImage(ctx, ref, binary)
}

// versionOf is what the program of image ref says it is: the tag.
func versionOf(ref string) string {
	if _, tag, ok := strings.Cut(ref[strings.LastIndex(ref, "/")+1:], ":"); ok {
		return tag
	}
	return "dev"
}

// TagImage gives image the further name ref.
func (e *Engine) TagImage(ctx context.Context, image, ref string) error {
	_, err := e.Podman(ctx, "tag", image, ref)
	return err
}

// RemoveImage removes the name ref, and the image with its last name.
func (e *Engine) RemoveImage(ctx context.Context, ref string) error {
	_, err := e.Podman(ctx, "rmi", ref)
	return err
}

func (s settings) buildImage(ctx context.Context, ref, binary string) error {
	dir, err := os.MkdirTemp(s.dir, "build")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if err := copyProgram(filepath.Join(dir, "program"), binary); err != nil {
		return err
	}
	file := filepath.Join(dir, "Containerfile")
	text := "FROM scratch\nCOPY program /program\nENTRYPOINT [\"/program\"]\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	if _, err := s.run(ctx, "build", "--quiet", "--tag", ref, "--file", file, dir); err != nil {
		return fmt.Errorf("build image %s: %w", ref, err)
	}
	return nil
}

func copyProgram(to, from string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o755) // containers run it as any user
}

func buildWorker(ctx context.Context) (string, error) {
	return buildProgram(ctx, module+"/internal/world/engine/worker", "dev")
}

// buildProgram builds a static program of this module and returns its path. It is
// kept by package and version; go itself knows whether it is still up to date.
func buildProgram(ctx context.Context, pkg, version string) (string, error) {
	dir := filepath.Join(os.TempDir(), "kura-programs", filepath.Base(pkg), version)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	// One build of a path at a time, among processes too.
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	out := filepath.Join(dir, "program")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w -X main.version="+version, "-o", out, pkg)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if said, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w: %s", pkg, err, said)
	}
	return out, nil
}
