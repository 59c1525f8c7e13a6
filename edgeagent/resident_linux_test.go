package main

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
)

// Not parallel: the pages are the whole test program's.
func TestGiveBackProgram_DropsPagesThatTheStartTouched(t *testing.T) {
	program, err := os.ReadFile("/proc/self/exe")
	if err != nil || len(program) == 0 {
		t.Fatal(err)
	}
	before := residentFile(t)
	if err := giveBackProgram(); err != nil {
		t.Fatal(err)
	}
	after := residentFile(t)
	if after > before*3/4 {
		t.Errorf("of %d kB of the program's file %d kB stay", before, after)
	}
	if again, err := os.ReadFile("/proc/self/exe"); err != nil || !bytes.Equal(program, again) {
		t.Errorf("the program is not what it was: %v", err)
	}
}

// residentFile is RssFile in kB.
func residentFile(t *testing.T) (kb int) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "RssFile:")
	if _, err := fmt.Sscan(rest, &kb); err != nil {
		t.Fatal(err)
	}
	return kb
}
