// Package search drives the real use cases of lambdas/control through every
// interleaving of their calls that a bound allows, against model machines
// (lambdas/control/controltest/machine), and checks the invariants of the
// protocol after each step. It is an explicit-state search, breadth first, so
// that the trace it prints of a fault is a shortest one.
//
// What makes real Go code explorable: a use case is a function of the answers
// its store and queue give it. So its place in the code is the list of answers it
// has had, and a tree of answers (program.go) says for each place which call
// comes next. A state of the whole is the stored items, the machines, the letters
// on their way, and each running use case's place in its tree: a step is a
// look-up, and code runs only to grow a tree. Nothing but tests imports it.
package search
