//go:build soak

package e2e

import "time"

// The long form holds reports back for ten minutes.
func init() { held = 10 * time.Minute }
