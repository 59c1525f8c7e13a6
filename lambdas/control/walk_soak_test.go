//go:build soak

package control_test

func init() { *walks = 400 }
