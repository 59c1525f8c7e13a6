package emulator

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// findRoot walks up from the working directory to the project's own go.mod; tests run in their
// package's folder.
func findRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find working directory: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module github.com/longshore-run/longshore\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the project's folder: no go.mod of it above %s", start)
		}
	}
}
