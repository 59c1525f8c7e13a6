//go:build !skew

package main

import "time"

// now is this machine's clock. A program that tests built with the tag skew has
// another one.
func now() time.Time { return time.Now() }
