package artifact

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Package is the agent's package of a kind ("deb") for an architecture as Go calls it, where
// `make package` puts it.
func Package(dist, kind, goarch string) (string, error) {
	name := goarch
	if kind == "rpm" {
		name = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[goarch]
	}
	pattern := filepath.Join(dist, "package", "longshore-agent*"+name+"."+kind)
	found, err := filepath.Glob(pattern)
	if err != nil {
		return "", fmt.Errorf("look for %s: %w", pattern, err)
	}
	if len(found) != 1 {
		return "", fmt.Errorf("there are %d packages %s: run `make package`, or name one with -c longshore:imagePackage=", len(found), pattern)
	}
	return found[0], nil
}

// Sum is the SHA-256 of a file.
func Sum(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", fmt.Errorf("sum up the package: %w", err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("sum up %s: %w", file, err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
