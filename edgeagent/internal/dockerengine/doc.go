// Package dockerengine is the agent's engine on Docker: five idempotent verbs
// (image, create, start, stop, remove), looking (observe, list, watch) and what
// the host is. It alone in the agent knows Docker, and only the agent's main
// may import it.
//
// What it makes is found again by labels, never by memory: every container and
// task-scoped volume carries its instance, task, attempt and name, and every
// list and stream is filtered by the instance, so several instances can share
// an engine without seeing each other. What it remembers (ids, digests) is a
// cache that a "no such container" empties.
//
// It does not decide: no retries of a task, no order of containers, no
// clean-up, no log of its own. It holds no state that must survive a restart.
package dockerengine
