// Package pause is what a pause container runs: it holds the namespaces that the
// containers of a task share, and does nothing else. As the first process of a
// shared process namespace it is also the parent of whatever has lost its own, and
// lets the kernel bury those. Only the agent's main imports it.
package pause

import (
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
)

// Command is the agent's argument for it. Images of pause containers call it, also
// those that earlier agents made: it never changes.
const Command = "pause"

// Run waits for SIGTERM or SIGINT.
func Run() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	// A process that ignores its children's ends leaves no zombies, by POSIX.
	signal.Ignore(syscall.SIGCHLD)
	debug.FreeOSMemory() // what starting took is not needed again
	<-end
}
