//go:build soak

package chaos

import (
	"math/rand/v2"
	"time"
)

// The long form has a quarter of an hour of faults, by another plan each time.
func init() { *length, *seed = 15*time.Minute, rand.Uint64() }
