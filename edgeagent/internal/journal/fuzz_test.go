package journal_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/internal/journal"
	"github.com/longshore-run/longshore/shared/fault"
)

// FuzzOpen writes over parts of a good journal, three bytes of place and one of
// value at a time, and cuts it: it is read as it was, or moved aside whole and a
// new incarnation begins; an agent starts either way, and nothing is deleted.
func FuzzOpen(f *testing.F) {
	good := f.TempDir()
	j, _ := open(f, good, owner)
	fill(f, j, 3)
	before, err := j.Load()
	if err != nil {
		f.Fatal(err)
	}
	if err := j.Close(); err != nil {
		f.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(good, "journal.db"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte{}, uint32(0))
	f.Add([]byte{0, 0, 16, 0xff, 0, 16, 16, 0xff}, uint32(0))        // the magic of both meta pages
	f.Add([]byte{0, 48, 10, 0xff, 0, 48, 12, 0xff}, uint32(0))       // a page's flags and count
	f.Add([]byte{0, 48, 200, 'y'}, uint32(4096))                     // a record's text, and the end is gone
	f.Add([]byte{0, 0, 64, 9, 0, 16, 64, 9, 0, 32, 0, 1}, uint32(0)) // roots that point elsewhere
	f.Fuzz(func(t *testing.T, patches []byte, lost uint32) {
		dir := t.TempDir()
		broken := append([]byte(nil), file...)
		for ; len(patches) >= 4; patches = patches[4:] {
			at := int(binary.BigEndian.Uint32(append([]byte{0}, patches[:3]...))) % len(broken)
			broken[at] = patches[3]
		}
		broken = broken[:len(broken)-int(lost)%len(broken)]
		if err := os.WriteFile(filepath.Join(dir, "journal.db"), broken, 0o600); err != nil {
			t.Fatal(err)
		}
		j, how, err := journal.Open(dir, owner, newID, time.Now())
		if fault.Is(err, fault.Unsupported) { // its format is another number now: an operator is told what to do
			return
		}
		if err != nil {
			t.Fatalf("an agent does not start: %v", err)
		}
		defer j.Close()
		after, err := j.Load()
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case how.MovedTo == "" && (after.Meta != before.Meta || len(after.Tasks) != len(before.Tasks)):
			t.Fatalf("it was read as %+v with %d tasks", after.Meta, len(after.Tasks))
		case how.MovedTo != "" && after.Meta.Incarnation == before.Meta.Incarnation:
			t.Fatal("moved aside, and the same incarnation goes on")
		case how.MovedTo != "":
			kept, err := os.ReadFile(how.MovedTo)
			if err != nil || len(kept) != len(broken) {
				t.Fatalf("of %d bytes %d are kept, %v", len(broken), len(kept), err)
			}
		}
	})
}
