package controltest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
)

// StoreSuite is what every control.Store must do. open makes an empty store
// whose clock is the wall's; it is called once for each test.
func StoreSuite(t *testing.T, open func(t *testing.T) control.Store) {
	for _, test := range slices.Concat(commitTests, recordTests, expiryTests, renewTests, taskListTests, listTests) {
		t.Run(test.says, func(t *testing.T) {
			test.run(&storeTest{T: t, Store: open(t), ctx: t.Context()})
		})
	}
}

type suiteTest struct {
	says string
	run  func(t *storeTest)
}

// storeTest is a test with its store.
type storeTest struct {
	*testing.T
	control.Store
	ctx context.Context
}

func (t *storeTest) commit(writes ...control.Write) {
	t.Helper()
	if err := t.Commit(t.ctx, writes...); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

func (t *storeTest) put(records ...control.Record) {
	t.Helper()
	for chunk := range slices.Chunk(records, 100) {
		var writes []control.Write
		for _, r := range chunk {
			writes = append(writes, control.Put(r))
		}
		t.commit(writes...)
	}
}

func (t *storeTest) load(records ...control.Record) {
	t.Helper()
	if err := t.Load(t.ctx, records...); err != nil {
		t.Fatalf("load: %v", err)
	}
}

// refuses says that a commit must fail with a kind and leave versions alone.
func (t *storeTest) refuses(kind fault.Kind, writes ...control.Write) {
	t.Helper()
	var before []int64
	for _, w := range writes {
		before = append(before, *w.Record.Revision())
	}
	if err := t.Commit(t.ctx, writes...); !fault.Is(err, kind) {
		t.Fatalf("commit gave %q error %v, want kind %q", fault.Of(err), err, kind)
	}
	for i, w := range writes {
		if got := *w.Record.Revision(); got != before[i] {
			t.Fatalf("a refused commit changed the version of %s %s from %d to %d", w.Record.Kind(), w.Record.Key(), before[i], got)
		}
	}
}

// eventually polls until wrong finds nothing wrong: indexes lag.
func (t *storeTest) eventually(wrong func() string) {
	t.Helper()
	deadline := time.NewTimer(time.Minute)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if memory, ok := t.Store.(*Store); ok {
			memory.CatchUp()
		}
		said := wrong()
		if said == "" {
			return
		}
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatal(said)
		}
	}
}

// pages reads a list to its end in pages of a size.
func pages[T any](t *storeTest, limit int, list func(control.Page) ([]T, string, error)) []T {
	t.Helper()
	var all []T
	page := control.Page{Limit: limit}
	for range 10_000 {
		rows, next, err := list(page)
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		if limit > 0 && len(rows) > limit {
			t.Fatalf("a page of %d holds %d rows", limit, len(rows))
		}
		all = append(all, rows...)
		if next == "" {
			return all
		}
		page.After = next
	}
	t.Fatal("the list has no end")
	return nil
}

func newID() string { return fmt.Sprintf("%016x%016x", rand.Uint64(), rand.Uint64()) }
