package journal_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/edgeagent/internal/journal"
	"github.com/longshore-run/longshore/shared/fault"
)

var owner = journal.Owner{Hardware: "this machine", Identity: "role:i-1"}

func newID() string { return fmt.Sprintf("incarnation-%d", rand.Int64()) }

func open(t testing.TB, dir string, o journal.Owner) (*journal.Journal, journal.Opening) {
	t.Helper()
	j, how, err := journal.Open(dir, o, newID, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return j, how
}

// closed opens a journal, and closes it again.
func closed(t testing.TB, dir string, o journal.Owner) (agent.State, journal.Opening) {
	t.Helper()
	j, how := open(t, dir, o)
	s, err := j.Load()
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return s, how
}

func record(n int) agent.Record {
	r := agent.Record{N: int64(n), TaskARN: strings.Repeat("x", 300)}
	r.State.ID, r.State.Attempt = fmt.Sprintf("%032x", n), 1
	return r
}

func fill(t testing.TB, j *journal.Journal, tasks int) {
	t.Helper()
	s, err := j.Load()
	if err != nil {
		t.Fatal(err)
	}
	c := agent.Change{Meta: &s.Meta}
	s.Meta.N = int64(tasks)
	for n := range tasks {
		c.Put = append(c.Put, record(n))
	}
	if err := j.Commit(c); err != nil {
		t.Fatal(err)
	}
}

func TestJournal_OnDiskDoesWhatEveryJournalMust(t *testing.T) {
	agenttest.JournalSuite(t, func(t *testing.T) func() agent.Journal {
		dir := t.TempDir()
		var now *journal.Journal
		t.Cleanup(func() { _ = now.Close() })
		return func() agent.Journal {
			if now != nil {
				// A killed process closes nothing: what the next one finds is a
				// copy of the file as it is.
				next := t.TempDir()
				if err := os.CopyFS(next, os.DirFS(dir)); err != nil {
					t.Fatal(err)
				}
				_ = now.Close()
				dir = next
			}
			now, _ = open(t, dir, owner)
			return now
		}
	})
}

func TestOpen_FilesAreRootsOwn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	closed(t, dir, owner)
	for path, want := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, "journal.db"): 0o600, filepath.Join(dir, "journal.lock"): 0o600} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", path, got, want)
		}
	}
}

func TestOpen_ASecondAgentIsToldSo(t *testing.T) {
	dir := t.TempDir()
	j, _ := open(t, dir, owner)
	defer j.Close()
	_, _, err := journal.Open(dir, owner, newID, time.Now())
	if !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "another agent is running") {
		t.Errorf("opened twice: %v", err)
	}
}

func TestOpen_AJournalOfOtherHardwareOrIdentityIsMovedAside(t *testing.T) {
	for name, other := range map[string]journal.Owner{
		"hardware": {Hardware: "another machine", Identity: owner.Identity},
		"identity": {Hardware: owner.Hardware, Identity: "role:i-2"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			first, how := closed(t, dir, owner)
			if !how.Fresh || how.MovedTo != "" {
				t.Errorf("the first opening is %+v", how)
			}
			second, how := closed(t, dir, other)
			if !how.Fresh || how.Why == "" || second.Meta.Incarnation == first.Meta.Incarnation {
				t.Errorf("opened as another's: %+v, incarnation %s", how, second.Meta.Incarnation)
			}
			if _, err := os.Stat(how.MovedTo); err != nil {
				t.Error(err)
			}
			if third, how := closed(t, dir, other); how.Fresh || third.Meta.Incarnation != second.Meta.Incarnation {
				t.Errorf("opened again: %+v", how)
			}
		})
	}
}

func TestOpen_HardwareThatCannotBeKnownIsNotOther(t *testing.T) {
	dir := t.TempDir()
	first, _ := closed(t, dir, owner)
	blind, how := closed(t, dir, journal.Owner{Identity: owner.Identity})
	if how.Fresh || blind.Meta.Incarnation != first.Meta.Incarnation || blind.Meta.Hardware != owner.Hardware {
		t.Errorf("%+v %+v", how, blind.Meta)
	}
}

func TestOpen_ANewerFormatIsRefusedAndLeftUntouched(t *testing.T) {
	dir := t.TempDir()
	closed(t, dir, owner)
	path := filepath.Join(dir, "journal.db")
	db, err := bbolt.Open(path, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error { return tx.Bucket([]byte("meta")).Put([]byte("format"), []byte("2")) })
	if err != nil || db.Close() != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	_, _, err = journal.Open(dir, owner, newID, time.Now())
	if !fault.Is(err, fault.Unsupported) || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("a newer format: %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file was changed")
	}
}

// Whatever happens to the file, the agent starts: with all that was in it, or
// with a new incarnation and the old file moved aside. Never with a part.
func TestOpen_AnyDamageIsNoticedOrHarmless(t *testing.T) {
	good := t.TempDir()
	j, _ := open(t, good, owner)
	fill(t, j, 40)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(good, "journal.db"))
	if err != nil {
		t.Fatal(err)
	}
	page := os.Getpagesize()
	damage := map[string][]byte{"empty": {}, "text": []byte("this is not a journal"), "zeros": make([]byte, len(whole)), "twice": append(bytes.Clone(whole), whole...)}
	for at := 0; at < len(whole); at += page {
		damage[fmt.Sprintf("truncated at page %d", at/page)] = whole[:at]
		damage[fmt.Sprintf("truncated in page %d", at/page)] = whole[:at+page/3]
		for name, spoil := range map[string]func(b []byte){
			"zeroed":  func(b []byte) { clear(b) },
			"flipped": flip(at, page),
			"garbled": garble(at),
			"swapped": func(b []byte) { copy(b, whole[len(whole)-page:]) },
		} {
			b := bytes.Clone(whole)
			spoil(b[at : at+page])
			damage[fmt.Sprintf("%s page %d", name, at/page)] = b
		}
	}
	used, moved := 0, 0
	for name, b := range damage {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "journal.db"), b, 0o600); err != nil {
			t.Fatal(err)
		}
		s, how := closed(t, dir, owner)
		switch {
		case how.Fresh:
			moved++
			if len(s.Tasks) != 0 || how.Why == "" || !strings.Contains(how.MovedTo, "journal.db.corrupt-") {
				t.Errorf("%s: %+v", name, how)
			}
			if kept, err := os.ReadFile(how.MovedTo); err != nil || !bytes.Equal(kept, b) {
				t.Errorf("%s: the old file was not kept as it was: %v", name, err)
			}
		case len(s.Tasks) == 40 && s.Meta.N == 40:
			used++
		default:
			t.Errorf("%s: opened with %d tasks and n %d", name, len(s.Tasks), s.Meta.N)
		}
	}
	t.Logf("%d damaged files: %d are used as they were, %d moved aside", len(damage), used, moved)
	if used == 0 || moved < len(damage)/3 {
		t.Errorf("of %d damaged files %d were used and %d moved aside: the test damages too little or too much", len(damage), used, moved)
	}
}

// flip changes one bit of the first bytes of the page at an offset: the same one in every
// run, for how many of them a journal does not use is not to be chance.
func flip(at, first int) func(page []byte) {
	random := rand.New(rand.NewPCG(uint64(at), 1))
	return func(page []byte) { page[random.IntN(first)] ^= 1 << random.IntN(8) }
}

func garble(at int) func(page []byte) {
	random := rand.New(rand.NewPCG(uint64(at), 2))
	return func(page []byte) {
		for i := range page {
			page[i] = byte(random.IntN(256))
		}
	}
}

// A child process commits and says so; it is killed at any moment, and what it
// said must be there.
func TestCommit_SurvivesSIGKILLAtAnyMoment(t *testing.T) {
	dir := t.TempDir()
	said := 0
	for round := range 15 {
		said = max(said, killed(t, "JOURNAL_TEST_DIR="+dir))
		s, how := closed(t, dir, owner)
		if how.Fresh && round > 0 || how.MovedTo != "" {
			t.Fatalf("round %d: %+v", round, how)
		}
		if int(s.Meta.N) < said || len(s.Tasks) != min(int(s.Meta.N), 50) {
			t.Fatalf("round %d: change %d was committed; the journal has n %d and %d tasks", round, said, s.Meta.N, len(s.Tasks))
		}
	}
	if said == 0 {
		t.Fatal("nothing was committed")
	}
}

// Between two commits the reserve is gone and set aside again: what a killed process
// left of it is made whole, and what it wrote is there.
func TestRefill_SurvivesSIGKILLAtAnyMoment(t *testing.T) {
	const size = 8 << 20
	dir := t.TempDir()
	said, partly := 0, 0
	for round := range 15 {
		said = max(said, killed(t, "JOURNAL_TEST_DIR="+dir, fmt.Sprint("JOURNAL_TEST_RESERVE=", size)))
		if info, err := os.Stat(filepath.Join(dir, "reserve")); err != nil || info.Size() != size {
			partly++
		}
		j, how, err := journal.Open(dir, owner, newID, time.Now(), journal.WithReserve(size))
		if err != nil || how.Fresh && round > 0 || how.MovedTo != "" {
			t.Fatalf("round %d: %+v, %v", round, how, err)
		}
		s, err := j.Load()
		if err != nil || int(s.Meta.N) < said {
			t.Fatalf("round %d: change %d was committed; the journal has n %d, %v", round, said, s.Meta.N, err)
		}
		var file syscall.Stat_t
		if err := syscall.Stat(filepath.Join(dir, "reserve"), &file); err != nil || file.Size != size || file.Blocks*512 < size || j.Spent() != "" {
			t.Errorf("round %d: the reserve takes %d bytes of %d, spent %q: %v", round, file.Blocks*512, file.Size, j.Spent(), err)
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d of 15 left no whole reserve", partly)
}

// killed runs a process that commits, kills it at some moment, and returns the last
// change that it said was committed.
func killed(t *testing.T, env ...string) (said int) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=TestMain")
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	lines, enough := bufio.NewScanner(out), 1+rand.IntN(40)
	for n := 0; lines.Scan(); n++ {
		if said, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(err)
		}
		if n == enough {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	_ = cmd.Wait() // it was killed
	return said
}

func TestMain(m *testing.M) {
	dir := os.Getenv("JOURNAL_TEST_DIR")
	if dir == "" {
		os.Exit(m.Run())
	}
	reserve, _ := strconv.ParseInt(os.Getenv("JOURNAL_TEST_RESERVE"), 10, 64)
	j, _, err := journal.Open(dir, owner, newID, time.Now(), journal.WithReserve(reserve))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	s, err := j.Load()
	for err == nil {
		s.Meta.N++
		c := agent.Change{Meta: &s.Meta, Put: []agent.Record{record(int(s.Meta.N))}}
		if s.Meta.N > 50 {
			c.Drop = []string{record(int(s.Meta.N) - 50).State.ID}
		}
		if err = j.Commit(c); err == nil {
			fmt.Println(s.Meta.N)
		}
		if reserve > 0 && err == nil {
			err = errors.Join(os.Remove(filepath.Join(dir, "reserve")), j.Refill())
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
