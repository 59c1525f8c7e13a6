package artifact_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/infra/artifact"
)

func TestPackage_IsTheOneThatMakePackageMade(t *testing.T) {
	dist := t.TempDir()
	dir := filepath.Join(dist, "package")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := artifact.Package(dist, "deb", "arm64")
	if err == nil || !strings.Contains(err.Error(), "make package") {
		t.Errorf("without one: %v", err)
	}
	for _, name := range []string{"longshore-agent_1_amd64.deb", "longshore-agent_1_arm64.deb", "longshore-agent-1-1.x86_64.rpm", "longshore-agent-1-1.aarch64.rpm"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("abc"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for want, of := range map[string][2]string{
		"longshore-agent_1_amd64.deb": {"deb", "amd64"}, "longshore-agent-1-1.aarch64.rpm": {"rpm", "arm64"},
	} {
		got, err := artifact.Package(dist, of[0], of[1])
		if err != nil || filepath.Base(got) != want {
			t.Errorf("%v: %s, %v", of, got, err)
		}
		if sum, err := artifact.Sum(got); err != nil || sum != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
			t.Errorf("sum %s, %v", sum, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "longshore-agent_2_amd64.deb"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := artifact.Package(dist, "deb", "amd64"); err == nil {
		t.Errorf("of two %s was taken", got)
	}
}
