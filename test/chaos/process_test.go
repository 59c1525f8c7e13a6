//go:build e2e

package chaos

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/longshore-run/longshore/test/local"
)

// runtime is the process of one function.
type runtime struct {
	pid      int
	function string
}

// runtimes are the functions' processes: children of the emulator, in its group.
func (g *stage) runtimes() []runtime {
	emulator, err := g.EmulatorPID()
	if err != nil || emulator == 0 {
		return nil
	}
	var all []runtime
	for _, pid := range processes() {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || !bytes.Contains(stat, []byte("(bootstrap)")) {
			continue
		}
		after := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state ppid pgrp …
		if len(after) < 3 || after[2] != strconv.Itoa(emulator) {
			continue
		}
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		name := "?"
		for kv := range bytes.SplitSeq(env, []byte{0}) {
			if v, ok := bytes.CutPrefix(kv, []byte("AWS_LAMBDA_FUNCTION_NAME=")); ok {
				name = string(v)
			}
		}
		all = append(all, runtime{pid, name})
	}
	return all
}

func processes() []int {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	pids := make([]int, 0, len(dirs))
	for _, d := range dirs {
		if pid, err := strconv.Atoi(filepath.Base(d)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// killRuntime kills a function's process while it works: as soon as one of two
// functions has read or written something, and up to a few milliseconds after
// that. It returns the function's name, "" if they do nothing for a while.
func (g *stage) killRuntime(r *rand.Rand) string {
	all := g.runtimes()
	slices.SortFunc(all, func(a, b runtime) int { return cmp.Or(cmp.Compare(a.function, b.function), a.pid-b.pid) })
	names := map[string]bool{}
	for _, p := range all {
		names[p.function] = true
	}
	chosen := slices.Sorted(maps.Keys(names))
	r.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
	chosen = chosen[:min(len(chosen), 2)]
	all = slices.DeleteFunc(all, func(p runtime) bool { return !slices.Contains(chosen, p.function) })
	before := make([]string, len(all))
	for n, p := range all {
		before[n] = traffic(p.pid)
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	deadline := time.After(1500 * time.Millisecond)
	for {
		for n, p := range all {
			now := traffic(p.pid)
			if now == "" || now == before[n] {
				continue
			}
			until := time.After(time.Duration(r.IntN(12)) * time.Millisecond)
			<-until
			if err := syscall.Kill(p.pid, syscall.SIGKILL); err != nil {
				return ""
			}
			return titled(p.function)
		}
		select {
		case <-deadline:
			return ""
		case <-tick.C:
		}
	}
}

// titled is a function's name less what CloudFormation has put around it:
// "Reaper" of "Longshore-ReaperEAC00597-2734EB6445265".
func titled(function string) string {
	name := strings.TrimPrefix(function, local.StackName+"-")
	name, _, _ = strings.Cut(name, "-")
	return name[:max(0, len(name)-8)]
}

// traffic is what a process has read and written so far.
func traffic(pid int) string {
	io, _ := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	return string(io)
}

// killedWorking counts the invocations that the emulator saw end with their
// process.
func (g *stage) killedWorking() int {
	text, err := os.ReadFile(g.EmulatorLog())
	if err != nil {
		g.t.Error(err)
	}
	return bytes.Count(text, []byte("Runtime exited before returning a response"))
}

// left are the processes that have to do with a stack's folder.
func left(dir string) (all []string) {
	for _, pid := range processes() {
		if pid == os.Getpid() {
			continue
		}
		line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		env, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if bytes.Contains(line, []byte(dir)) || bytes.Contains(env, []byte(dir)) {
			all = append(all, fmt.Sprintf("%d %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte(" "))))
		}
	}
	return all
}
