package main

import (
	"bytes"
	"fmt"
	"io"
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
	touch(t)
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

// touch has every page of the program's file in memory, as a start has most: what there
// is by itself depends on what ran before.
func touch(t *testing.T) {
	t.Helper()
	name, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	memory, err := os.Open("/proc/self/mem")
	if err != nil {
		t.Fatal(err)
	}
	defer memory.Close()
	for line := range strings.Lines(string(maps)) {
		var from, to int64
		var rights string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &from, &to, &rights); err != nil || !strings.Contains(line, " "+name) || strings.Contains(rights, "w") {
			continue
		}
		if _, err := io.Copy(io.Discard, io.NewSectionReader(memory, from, to-from)); err != nil {
			t.Fatal(err)
		}
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
