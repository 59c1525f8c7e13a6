//go:build skew

package main

import (
	"os"
	"time"
)

// skew is how far the machine's clock is off. It is no setting of the agent, and
// nothing that ships knows it: only tests build with this tag.
var skew = func() time.Duration {
	text := os.Getenv("LONGSHORE_TEST_CLOCK_SKEW")
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		panic("LONGSHORE_TEST_CLOCK_SKEW: " + err.Error())
	}
	return d
}()

// now is a clock that is wrong by as much all the time, as one is that was never
// set. The engine's times stay right: they are compared with none of these.
func now() time.Time { return time.Now().Add(skew) }
