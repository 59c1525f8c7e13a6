// Package whole runs the whole system in one process and in virtual time: the
// real use cases of lambdas/control as functions that are killed between any two
// calls, fifty real agents, and fakes of what is around them: queues that lose,
// repeat, reorder and delay, indexes that lag, engines, hosts that are switched
// off, clocks that are wrong. All chance comes from one seed, and one goroutine
// runs at a time, so a seed is a run: it replays to the byte. It decides nothing
// about the protocol; it only watches (check.go). Runs are inside a
// testing/synctest bubble. Nothing imports it.
package whole
