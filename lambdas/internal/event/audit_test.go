package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/event"
)

type auditor struct {
	out *control.Audit
	err error
}

func (a auditor) AuditLedgers(context.Context) (*control.Audit, error) { return a.out, a.err }

func TestAudit_AnswersWithWhatItFound(t *testing.T) {
	a := &event.Audit{Log: slog.New(slog.DiscardHandler), Control: auditor{out: &control.Audit{Ledgers: 3, Differences: []control.Difference{
		{Cluster: "c", Instance: "i", Book: control.Account{Held: control.Held{CPU: 2}, Open: 1}},
	}}}}
	out, err := a.Handle(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(out)
	want := `{"ledgers":3,"services":0,"busy":0,"differences":[{"cluster":"c","instance":"i","book":{"held":{"cpu":2},"open":1},"tasks":{},"repaired":false}]}`
	if err != nil || string(got) != want {
		t.Errorf("answers %s, %v\nwant %s", got, err, want)
	}
	a.Control = auditor{err: errors.New("no table")}
	if _, err := a.Handle(t.Context()); err == nil {
		t.Error("an audit that did not run is no audit without differences")
	}
}
