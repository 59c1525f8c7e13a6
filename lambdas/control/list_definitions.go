package control

import (
	"context"
	"slices"

	"github.com/longshore-run/longshore/shared/taskdef"
)

// familiesAtAll bounds how many families one listing of definitions goes over.
const familiesAtAll = 10000

// DefinitionFilter is what ListTaskDefinitions lists.
type DefinitionFilter struct {
	Family     string // all if empty
	Status     string // ACTIVE if empty
	Descending bool
}

// ListTaskDefinitions lists family:revision, by family and then by revision.
func (c *Control) ListTaskDefinitions(ctx context.Context, f DefinitionFilter, cursor Cursor, limit int) ([]string, Cursor, error) {
	if f.Status == "" {
		f.Status = taskdef.StatusActive
	}
	families := []string{f.Family}
	if f.Family == "" {
		var err error
		if families, err = c.families(ctx); err != nil {
			return nil, Cursor{}, err
		}
	}
	if f.Descending {
		slices.Reverse(families)
	}
	wanted := map[string]bool{}
	var sources []source
	for _, family := range families {
		sources = append(sources, source{family, func(ctx context.Context, page Page) (names []string, next string, err error) {
			all, next, err := c.Store.Revisions(ctx, family, f.Descending, page)
			for _, d := range all {
				names = append(names, d.Key())
				wanted[d.Key()] = d.Status == f.Status
			}
			return names, next, err
		}})
	}
	keep := func(_ context.Context, _ string, names []string) ([]bool, error) {
		return keepIf(names, func(n string) bool { return wanted[n] }), nil
	}
	return walk(ctx, cursor, limit, sources, keep)
}

func (c *Control) families(ctx context.Context) (names []string, err error) {
	for after := ""; len(names) < familiesAtAll; {
		all, next, err := c.Store.Families(ctx, "", Page{After: after})
		if err != nil {
			return nil, err
		}
		for _, f := range all {
			names = append(names, f.Name)
		}
		if after = next; next == "" {
			break
		}
	}
	return names, nil
}

// ListTaskDefinitionFamilies lists families whose names begin with prefix. A
// family is ACTIVE while it has an ACTIVE revision; status "" is both.
func (c *Control) ListTaskDefinitionFamilies(ctx context.Context, prefix, status string, cursor Cursor, limit int) ([]string, Cursor, error) {
	wanted := map[string]bool{}
	page := func(ctx context.Context, page Page) (names []string, next string, err error) {
		all, next, err := c.Store.Families(ctx, prefix, page)
		for _, f := range all {
			names = append(names, f.Name)
			// The name of a family without revisions is kept for its numbers alone.
			wanted[f.Name] = f.Deleted < f.Latest && (status == "" || (status == taskdef.StatusActive) == (f.Active > 0))
		}
		return names, next, err
	}
	keep := func(_ context.Context, _ string, names []string) ([]bool, error) {
		return keepIf(names, func(n string) bool { return wanted[n] }), nil
	}
	return walk(ctx, cursor, limit, []source{{page: page}}, keep)
}
