package controltest

import (
	"context"

	"github.com/longshore-run/longshore/lambdas/control"
)

// ScanLedgers implements control.Store.
func (s *Store) ScanLedgers(ctx context.Context, page control.Page) (ledgers []control.Ledger, next string, err error) {
	err = s.Calls.do(ctx, "ScanLedgers", func() error {
		each(s, control.LedgerKind, func(l *control.Ledger) { ledgers = append(ledgers, *l) })
		ledgers, next, err = cut(ledgers, control.LedgerList, page, func(l control.Ledger) string { return l.ID })
		return err
	})
	return ledgers, next, err
}

// ScanLiveTasks implements control.Store.
func (s *Store) ScanLiveTasks(ctx context.Context, page control.Page) (tasks []control.Task, next string, err error) {
	err = s.Calls.do(ctx, "ScanLiveTasks", func() error {
		each(s, control.TaskKind, func(t *control.Task) {
			if t.Live() {
				tasks = append(tasks, *t)
			}
		})
		tasks, next, err = cut(tasks, control.LiveTaskList, page, func(t control.Task) string { return t.ID })
		return err
	})
	return tasks, next, err
}
