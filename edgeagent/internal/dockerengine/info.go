package dockerengine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"strings"

	"github.com/docker/docker/api/types/system"
	"github.com/docker/docker/client"

	"github.com/longshore-run/longshore/edgeagent/agent"
)

// Ping says whether the engine answers.
func (e *Engine) Ping(ctx context.Context) error {
	return e.do(ctx, "ping", e.limits.Ping, func(ctx context.Context, api *client.Client) error {
		if _, err := api.Ping(ctx); err != nil {
			return err
		}
		return e.stays(ctx, "ping")
	})
}

// Info says what the host and its engine are.
func (e *Engine) Info(ctx context.Context) (agent.EngineInfo, error) {
	var info system.Info
	err := e.do(ctx, "info", e.limits.Info, func(ctx context.Context, api *client.Client) error {
		var err error
		info, err = api.Info(ctx)
		return err
	})
	if err != nil {
		return agent.EngineInfo{}, err
	}
	e.mu.Lock()
	e.roots = roots(info)
	e.mu.Unlock()
	groups := e.regard(ctx, info)
	return agent.EngineInfo{
		Version:    info.ServerVersion,
		CPUs:       info.NCPU,
		MemoryMiB:  int(info.MemTotal / mib),
		Arch:       arch(info.Architecture),
		OSType:     info.OSType,
		HardwareID: hardware(os.DirFS("/"), info.ID),
		TaskLimits: groups != nil && e.groups.put,
	}, nil
}

// arch is the engine's word for its processor as ECS writes it.
func arch(engine string) string {
	switch engine {
	case "amd64":
		return "x86_64"
	case "aarch64":
		return "arm64"
	}
	return engine
}

// Where a machine's own id is to be read. The first is set by the hypervisor or
// the board and differs between two machines started from one image; it is
// root's to read. The second is the operating system's.
const (
	boardFile   = "sys/class/dmi/id/product_uuid"
	machineFile = "etc/machine-id"
)

// hardware is an id that stays while the machine does and differs from every
// other machine's: the board's, else the operating system's, else the engine's.
// It is a hash: a machine-id is not to be shown around. It changes when the
// agent loses the right to read the better source.
func hardware(root fs.FS, engineID string) string {
	if id := read(root, boardFile); id != "" && !placeholder(id) {
		return digestOf("board", id)
	}
	if id := read(root, machineFile); id != "" && id != "uninitialized" {
		return digestOf("machine", id)
	}
	return digestOf("engine", engineID)
}

func read(root fs.FS, name string) string {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.ToLower(strings.TrimSpace(string(data)))
}

// placeholder says whether a board's id is one that makers leave in whole
// series of boards.
func placeholder(id string) bool {
	digits := strings.ReplaceAll(id, "-", "")
	return strings.Trim(digits, "0") == "" || strings.Trim(digits, "f") == "" ||
		id == "03000200-0400-0500-0006-000700080009" || id == "12345678-1234-5678-90ab-cddeefaabbcc"
}

func digestOf(kind, id string) string {
	sum := sha256.Sum256([]byte("longshore hardware\n" + kind + "\n" + id))
	return kind + "-" + hex.EncodeToString(sum[:16])
}
