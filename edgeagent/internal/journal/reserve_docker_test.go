//go:build docker

// A full disk has to be mounted, which takes root: this lane has that, as it has an
// engine.

package journal_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/internal/journal"
	"github.com/longshore-run/longshore/shared/fault"
)

const mib = 1 << 20

// smallDisk is a file system of its own.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", size)); err != nil {
		t.Fatalf("mount a small file system (this test wants root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillUp takes all room that is left, to the last block; what it made is what frees it again.
func fillUp(t *testing.T, dir string) string {
	t.Helper()
	f, err := os.CreateTemp(dir, "filler-")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 1<<12); ; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return f.Name()
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func openOn(t *testing.T, dir string, size int64) *journal.Journal {
	t.Helper()
	j, how, err := journal.Open(dir, owner, newID, time.Now(), journal.WithReserve(size))
	if err != nil || how.MovedTo != "" {
		t.Fatalf("%+v, %v", how, err)
	}
	return j
}

// write commits so many tasks one by one, until one cannot be written.
func write(j *journal.Journal, from, n int) (written int, err error) {
	for i := range n {
		if err := j.Commit(agent.Change{Put: []agent.Record{record(from + i)}}); err != nil {
			return i, err
		}
	}
	return n, nil
}

func loaded(t *testing.T, j *journal.Journal) agent.State {
	t.Helper()
	s, err := j.Load()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCommit_OnAFullDiskLivesOnTheReserve(t *testing.T) {
	dir := smallDisk(t, 8*mib)
	j := openOn(t, dir, 2*mib)
	if why := j.Spent(); why != "" {
		t.Fatalf("at first: %s", why)
	}
	filler := fillUp(t, dir)
	if n, err := write(j, 0, 500); err != nil {
		t.Fatalf("after %d of 500: %v", n, err)
	}
	if why := j.Spent(); why != "the disk of "+dir+" is full" {
		t.Errorf("it says %q", why)
	}
	if err := j.Refill(); !fault.Is(err, fault.Unavailable) {
		t.Errorf("refilled on a full disk: %v", err)
	}
	want := loaded(t, j)
	if len(want.Tasks) != 500 {
		t.Errorf("%d tasks", len(want.Tasks))
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openOn(t, dir, 2*mib) // no crash loop
	if got := loaded(t, j); !reflect.DeepEqual(got, want) || j.Spent() == "" {
		t.Errorf("after a restart %d tasks; it says %q", len(got.Tasks), j.Spent())
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := j.Refill(); err != nil || j.Spent() != "" {
		t.Errorf("with room again: %v; it says %q", err, j.Spent())
	}
	var s syscall.Stat_t
	if err := syscall.Stat(filepath.Join(dir, "reserve"), &s); err != nil || s.Blocks*512 < 2*mib {
		t.Errorf("the reserve takes %d bytes: %v", s.Blocks*512, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// What bbolt does when a page, the file's growth or its list of free pages finds no
// room: the change is not made, and everything before it stands, for this process and
// the next one.
func TestCommit_WithoutAnyRoomFailsAndLosesNothing(t *testing.T) {
	dir := smallDisk(t, 4*mib)
	j := openOn(t, dir, 0)
	filler := fillUp(t, dir)
	n, err := write(j, 0, 10_000)
	if err == nil || !fault.Is(err, fault.Unavailable) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("after %d: %v", n, err)
	}
	for range 20 { // and again and again, as the agent tries
		if err := j.Commit(agent.Change{Put: []agent.Record{record(n), record(n + 1)}}); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("the next try: %v", err)
		}
	}
	if got := loaded(t, j); len(got.Tasks) != n {
		t.Errorf("%d tasks, want the %d that were written", len(got.Tasks), n)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = openOn(t, dir, 0)
	if got := loaded(t, j); len(got.Tasks) != n {
		t.Errorf("after a restart %d tasks, want %d", len(got.Tasks), n)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if more, err := write(j, n, 100); err != nil {
		t.Errorf("with room again: after %d: %v", more, err)
	}
	if got := loaded(t, j); len(got.Tasks) != n+100 {
		t.Errorf("%d tasks, want %d", len(got.Tasks), n+100)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := loaded(t, openOn(t, dir, 0)); len(got.Tasks) != n+100 {
		t.Errorf("in the end %d tasks", len(got.Tasks))
	}
}

// There is no room to write it anew, and the reserve is spent: it is opened as it is.
func TestOpen_OnAFullDiskGoesOnWithTheFileThatIsThere(t *testing.T) {
	dir := smallDisk(t, 8*mib)
	j := openOn(t, dir, 1*mib)
	if n, err := write(j, 0, 3000); err != nil { // more than the reserve has room for
		t.Fatalf("after %d: %v", n, err)
	}
	if _, err := write(j, 0, 5); err != nil { // pages that are free again
		t.Fatal(err)
	}
	want := loaded(t, j)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	fillUp(t, dir)
	j = openOn(t, dir, 1*mib)
	if got := loaded(t, j); !reflect.DeepEqual(got, want) {
		t.Errorf("%d tasks, want %d", len(got.Tasks), len(want.Tasks))
	}
	if j.Spent() == "" {
		t.Error("the disk is full, and it does not say so")
	}
	if n, err := write(j, 10_000, 20); err != nil {
		t.Errorf("ends cannot be written: after %d: %v", n, err)
	}
	if files, err := filepath.Glob(filepath.Join(dir, "*.new")); err != nil || len(files) > 0 {
		t.Errorf("left are %v, %v", files, err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if got := loaded(t, openOn(t, dir, 1*mib)); len(got.Tasks) != len(want.Tasks)+20 {
		t.Errorf("in the end %d tasks", len(got.Tasks))
	}
}

func TestOpen_OnADiskThatIsTooSmallForAReserveSaysSo(t *testing.T) {
	dir := smallDisk(t, 2*mib)
	j := openOn(t, dir, 4*mib)
	defer j.Close()
	if why := j.Spent(); !strings.Contains(why, "set the journal's reserve aside: ") {
		t.Errorf("it says %q", why)
	}
	if n, err := write(j, 0, 10); err != nil {
		t.Errorf("after %d: %v", n, err)
	}
}
