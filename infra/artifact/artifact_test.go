package artifact_test

import (
	"bytes"
	"context"
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/infra/artifact"
)

// module is a small module with one function that compiles and one that does not.
func module(t *testing.T) artifact.Builder {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":                 "module example\n\ngo 1.26\n",
		"lambdas/good/main.go":   "package main\n\nfunc main() {}\n",
		"lambdas/broken/main.go": "package main\n\nfunc main() { missing() }\n",
	} {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return artifact.Builder{
		Root: root, Dist: filepath.Join(root, "dist"), GOARCH: "arm64",
		Progress: func(string) {}, Now: func() time.Time { return time.Unix(0, 0) },
	}
}

func TestBuild_MakesABootstrapForTheArchitectureAskedFor(t *testing.T) {
	b := module(t)
	if got := b.Missing("good"); !slices.Equal(got, []string{"good"}) {
		t.Fatalf("missing before the build: %v", got)
	}
	var progress strings.Builder
	b.Progress = func(text string) { progress.WriteString(text) }
	if err := b.Build(context.Background(), "good"); err != nil {
		t.Fatal(err)
	}
	if got := b.Missing("good"); len(got) != 0 {
		t.Fatalf("missing after the build: %v", got)
	}
	binary, err := elf.Open(filepath.Join(b.Dist, "lambda", "arm64", "good", "bootstrap"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := binary.Close(); err != nil {
			t.Error(err)
		}
	})
	if binary.Machine != elf.EM_AARCH64 {
		t.Errorf("built for %v", binary.Machine)
	}
	if libraries, err := binary.ImportedLibraries(); err != nil || len(libraries) != 0 {
		t.Errorf("not static: %v %v", libraries, err)
	}
	if got := progress.String(); !strings.Contains(got, "building good for arm64 (1 of 1) … 0.0 s\n") {
		t.Errorf("progress %q", got)
	}
}

func TestBuild_FollowsTheSource(t *testing.T) {
	b := module(t)
	build := func() string {
		t.Helper()
		if err := b.Build(context.Background(), "good"); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(b.Path("good"))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	before := build()
	changed := "package main\n\nfunc main() { println(\"changed\") }\n"
	if err := os.WriteFile(filepath.Join(b.Root, "lambdas", "good", "main.go"), []byte(changed), 0o644); err != nil {
		t.Fatal(err)
	}
	if build() == before {
		t.Error("still the binary of the old source")
	}
}

// Else every checkout would deploy every function again.
func TestBuild_GivesTheSameBytesInAnotherFolder(t *testing.T) {
	var built [2][]byte
	for i := range built {
		b := module(t)
		if err := b.Build(context.Background(), "good"); err != nil {
			t.Fatal(err)
		}
		var err error
		if built[i], err = os.ReadFile(b.Path("good")); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(built[0], built[1]) {
		t.Error("two folders, two binaries")
	}
}

func TestBuild_NamesTheFunctionAndWhatTheCompilerSaid(t *testing.T) {
	b := module(t)
	err := b.Build(context.Background(), "good", "broken")
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"build broken:", "undefined: missing"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %q", err, want)
		}
	}
}
