//go:build docker && soak

package main

func init() { inTheMiddle = true }
