package control

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
)

// numbers is a source of n entries, whose page tokens are positions.
func numbers(name string, n int) source {
	return source{name, func(_ context.Context, page Page) (ids []string, next string, err error) {
		from, _ := strconv.Atoi(page.After)
		for i := from; i < n && i < from+page.Limit; i++ {
			ids = append(ids, fmt.Sprintf("%s%05d", name, i))
		}
		if from+page.Limit < n {
			next = strconv.Itoa(from + page.Limit)
		}
		return ids, next, nil
	}}
}

func every(n int) func(context.Context, string, []string) ([]bool, error) {
	return func(_ context.Context, _ string, ids []string) ([]bool, error) {
		return keepIf(ids, func(id string) bool { i, _ := strconv.Atoi(id[1:]); return i%n == 0 }), nil
	}
}

func TestWalk_ASparseListIsReadInBoundedCallsAndNothingIsMissed(t *testing.T) {
	sources := []source{numbers("a", 12_000), numbers("b", 0), numbers("c", 250)}
	var got []string
	calls := 0
	for cur := (Cursor{}); ; {
		page, next, err := walk(t.Context(), cur, 10, sources, every(2000))
		if err != nil {
			t.Fatal(err)
		}
		calls++
		got = append(got, page...)
		if next == (Cursor{}) {
			break
		}
		cur = next
	}
	want := []string{"a00000", "a02000", "a04000", "a06000", "a08000", "a10000", "c00000"}
	if !slices.Equal(got, want) || calls != 3 {
		t.Errorf("%v in %d calls, want %v in 3", got, calls, want)
	}
}

func TestWalk_GoesOnAfterASourceThatHasGone(t *testing.T) {
	up := []source{numbers("a", 2), numbers("c", 2)}
	down := []source{up[1], up[0]}
	for _, x := range []struct {
		sources []source
		at      string
		want    []string
	}{
		{up, "b", []string{"c00000", "c00001"}},
		{up, "d", []string{}},
		{down, "b", []string{"a00000", "a00001"}},
		{down, "A", []string{}},
		{nil, "b", []string{}},
	} {
		got, next, err := walk(t.Context(), Cursor{Source: x.at, After: "1"}, 10, x.sources, every(1))
		if err != nil || next != (Cursor{}) || !slices.Equal(got, x.want) {
			t.Errorf("from %s: %v %+v, %v, want %v", x.at, got, next, err, x.want)
		}
	}
}
