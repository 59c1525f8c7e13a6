//go:build soak

package chaos

import "time"

// The long form has a quarter of an hour of faults.
func init() { *length = 15 * time.Minute }
