// Package artifact compiles the functions into the folder the CDK takes them
// from. It knows the Go command and nothing of AWS. infra's main imports it.
package artifact

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Builder compiles functions.
type Builder struct {
	// Root is the module's folder, that holds lambdas/.
	Root string
	// Dist is where lambda/<GOARCH>/<function>/bootstrap goes.
	Dist   string
	GOARCH string
	// Progress is told what is being done, and how long it took.
	Progress func(text string)
	// Now tells how long each took.
	Now func() time.Time
}

// Path is the binary of a function.
func (b Builder) Path(function string) string {
	return filepath.Join(b.Dist, "lambda", b.GOARCH, function, "bootstrap")
}

// Build compiles each function; Go's own cache knows what of it is new. The
// flags are tools/build's: the bytes depend on the source alone, so that an
// unchanged function is not deployed again, whoever built it.
func (b Builder) Build(ctx context.Context, functions ...string) error {
	for i, f := range functions {
		began := b.Now()
		b.Progress(fmt.Sprintf("longshore: building %s for %s (%d of %d) …", f, b.GOARCH, i+1, len(functions)))
		if err := b.build(ctx, f); err != nil {
			b.Progress(" failed\n")
			return err
		}
		b.Progress(fmt.Sprintf(" %.1f s\n", b.Now().Sub(began).Seconds()))
	}
	return nil
}

func (b Builder) build(ctx context.Context, function string) error {
	out, err := filepath.Abs(b.Path(function))
	if err != nil {
		return fmt.Errorf("build %s: %w", function, err)
	}
	cmd := exec.CommandContext(ctx, "go", "build",
		"-trimpath", "-buildvcs=false", "-tags", "lambda.norpc", "-ldflags", "-s -w -buildid=",
		"-o", out, "./lambdas/"+function)
	cmd.Dir = b.Root
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH="+b.GOARCH, "CGO_ENABLED=0")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", function, err, strings.TrimSpace(said.String()))
	}
	return nil
}

// Missing names the functions whose binaries are not there.
func (b Builder) Missing(functions ...string) []string {
	var out []string
	for _, f := range functions {
		if info, err := os.Stat(b.Path(f)); err != nil || !info.Mode().IsRegular() {
			out = append(out, f)
		}
	}
	return out
}
