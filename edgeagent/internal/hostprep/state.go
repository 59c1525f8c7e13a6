package hostprep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
)

// fileName is what Prepare found, in the agent's data directory.
const fileName = "host.json"

// fresh is how old what was found may be: it is looked again every minute.
const fresh = 5 * time.Minute

// Write writes what was found.
func Write(dir string, f Found, now time.Time) error {
	f.At, f.Boot = now.UTC(), boot()
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	file := filepath.Join(dir, fileName)
	if err := os.WriteFile(file+".new", append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// Forget removes what was found.
func Forget(dir string) error {
	err := os.Remove(filepath.Join(dir, fileName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Blocked says why containers may reach the instance metadata service, "" if they do
// not: the agent has no right to read the rules itself.
func Blocked(dir string, now time.Time) string {
	const mend = "; mend: longshore-agent prepare-host, which longshore-agent-host.timer calls every minute"
	text, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		return "nobody has looked" + mend
	}
	var f Found
	if err := json.Unmarshal(text, &f); err != nil {
		return "what was found cannot be read" + mend
	}
	switch age := now.Sub(f.At); {
	case f.Boot != boot():
		return "nobody has looked since the machine started" + mend
	case age > fresh:
		return fmt.Sprintf("nobody has looked for %s", age.Round(time.Second)) + mend
	case f.BlockFault != "":
		return f.BlockFault
	case !f.Block:
		return "prepare-host was told not to; run it again with the settings of the agent"
	}
	return ""
}

// boot is different after each start of the machine.
func boot() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// Command is Run on this machine. Its error is what the command said.
func Command(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	path, err := lookPath(name)
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		return "", fault.Wrap(fault.Unavailable, err, "%s %s: %s", name, strings.Join(args, " "), strings.TrimSpace(string(out)))
	}
	return string(out), nil
}

// lookPath finds a program also where PATH is a user's, without the sbin folders.
func lookPath(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/sbin"} {
		if at, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return at, nil
		}
	}
	return "", err
}

// Endpoint reads a setting's address; "off" is the zero value.
func Endpoint(text string) netip.AddrPort {
	at, err := netip.ParseAddrPort(text)
	if err != nil {
		return netip.AddrPort{}
	}
	return at
}
