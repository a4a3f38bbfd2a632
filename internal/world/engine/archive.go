package engine

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
)

// WorkerArchive returns the image that WorkerImage makes, as ref, in the form that any
// engine loads without a registry (docker load).
func WorkerArchive(ctx context.Context, ref string) ([]byte, error) {
	binary, err := buildProgram(ctx, module+"/internal/world/engine/worker", versionOf(ref))
	if err != nil {
		return nil, err
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return nil, err
	}
	archive, err := imageArchive(ref, program)
	if err != nil {
		return nil, fmt.Errorf("pack image %s: %w", ref, err)
	}
	return archive, nil
}

// imageArchive packs an image of one layer that holds program as its entrypoint.
func imageArchive(ref string, program []byte) ([]byte, error) {
	layer, err := pack(file{"program", 0o755, program})
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/program"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(layer)}},
	})
	if err != nil {
		return nil, err
	}
	configName := sum(config) + ".json"
	manifest, err := json.Marshal([]map[string]any{{"Config": configName, "RepoTags": []string{ref}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return nil, err
	}
	return pack(file{configName, 0o644, config}, file{"layer.tar", 0o644, layer}, file{"manifest.json", 0o644, manifest})
}

type file struct {
	name    string
	mode    int64
	content []byte
}

func pack(files ...file) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.content)), Typeflag: tar.TypeReg}); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.content); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
