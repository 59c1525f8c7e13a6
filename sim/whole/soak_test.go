//go:build soak

package whole

func init() { *seeds = 5000 }
