package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"strings"
	"syscall"
	"time"

	"github.com/longshore-run/longshore/shared/logkey"
)

const (
	giveBackFirst = 10 * time.Second // the start is over then
	giveBackEvery = time.Minute
)

// stayThin gives memory back that is not in use, until ctx ends. A start touches
// most of the program once: the schemas of services, tables, expressions. What is
// needed again comes from the kernel's page cache.
func stayThin(ctx context.Context, log *slog.Logger) {
	for wait := giveBackFirst; ; wait = giveBackEvery {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		debug.FreeOSMemory()
		if err := giveBackProgram(); err != nil {
			log.Debug("the program's pages are kept", logkey.Error, err)
		}
	}
}

// giveBackProgram has the kernel drop the pages of this program's file. None of
// them was ever written to, so nothing is lost.
func giveBackProgram() error {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(maps)) {
		// 00400000-00e2a000 r-xp 00000000 08:01 1234   /usr/bin/longshore-agent
		if !strings.HasSuffix(strings.TrimSuffix(line, "\n"), " "+program) {
			continue
		}
		var from, to uintptr
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil {
			return fmt.Errorf("/proc/self/maps: %q: %w", line, err)
		}
		if strings.Contains(rights, "w") {
			continue
		}
		if _, _, e := syscall.Syscall(syscall.SYS_MADVISE, from, to-from, syscall.MADV_DONTNEED); e != 0 {
			return fmt.Errorf("madvise: %w", e)
		}
	}
	return nil
}
