package control

import (
	"context"
	"fmt"
	"slices"
)

// Cursor is where a list goes on; the zero Cursor is its start and, when
// returned, its end. Its members mean something to this package only.
type Cursor struct {
	Source string `json:"s,omitempty"` // the source it is in
	After  string `json:"a,omitempty"` // the store's position in it …
	Last   string `json:"l,omitempty"` // … and what was listed last of the page there
}

// source is one list of the store that a listing reads; sources are read in
// order of their names, or in reverse.
type source struct {
	name string
	page func(ctx context.Context, page Page) (ids []string, next string, err error)
}

const (
	walkPage   = 100  // entries read at once
	walkBudget = 5000 // entries looked at by one call
	walkCalls  = 200  // pages read by one call
)

// walk lists at most limit entries that keep wants, going on at cur. A list
// whose entries are sparse may return fewer, or none, and a cursor.
func walk(ctx context.Context, cur Cursor, limit int, sources []source, keep func(ctx context.Context, source string, ids []string) ([]bool, error)) ([]string, Cursor, error) {
	w := &walker{limit: limit, seen: map[string]bool{}, keep: keep}
	at := slices.IndexFunc(sources, func(s source) bool { return s.name == cur.Source })
	if at < 0 && cur.Source != "" { // the source has gone since: go on after it
		at = slices.IndexFunc(sources, func(s source) bool { return (s.name > cur.Source) == ascending(sources) })
		cur = Cursor{}
		if at < 0 {
			return []string{}, Cursor{}, nil
		}
	}
	w.out = []string{}
	for _, s := range sources[max(at, 0):] {
		next, full, err := w.read(ctx, s, cur)
		if err != nil || full {
			return w.out, next, err
		}
		cur = Cursor{}
	}
	return w.out, Cursor{}, nil
}

func ascending(sources []source) bool {
	return len(sources) < 2 || sources[0].name < sources[len(sources)-1].name
}

type walker struct {
	limit, looked, calls int
	out                  []string
	seen                 map[string]bool
	keep                 func(ctx context.Context, source string, ids []string) ([]bool, error)
}

// read lists one source to its end, or until the call has had enough.
func (w *walker) read(ctx context.Context, s source, cur Cursor) (next Cursor, full bool, err error) {
	for cur.Source = s.name; ; {
		if w.looked >= walkBudget || w.calls >= walkCalls {
			return cur, true, nil
		}
		ids, after, err := s.page(ctx, Page{After: cur.After, Limit: walkPage})
		if err != nil {
			return cur, false, fmt.Errorf("list: %w", err)
		}
		w.calls, w.looked = w.calls+1, w.looked+len(ids)
		ids = ids[slices.Index(ids, cur.Last)+1:]
		wanted, err := w.keep(ctx, s.name, ids)
		if err != nil {
			return cur, false, fmt.Errorf("list: %w", err)
		}
		for i, id := range ids {
			if !wanted[i] || w.seen[id] {
				continue
			}
			if len(w.out) == w.limit {
				if i > 0 {
					cur.Last = ids[i-1]
				}
				return cur, true, nil
			}
			w.seen[id] = true
			w.out = append(w.out, id)
		}
		if after == "" {
			return Cursor{}, false, nil
		}
		cur.After, cur.Last = after, ""
	}
}
