package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/internal/event"
	"github.com/longshore-run/longshore/shared/schedule"
)

type runs struct {
	made []schedule.Due
	do   func() error
}

func (r *runs) RunScheduled(_ context.Context, d schedule.Due) error {
	r.made = append(r.made, d)
	if r.do != nil {
		return r.do()
	}
	return nil
}

const dueMessage = `{"scheduledTime":"2026-11-30T03:00:00Z","run":{"version":1,"schedule":"nightly","cluster":"default","taskDefinition":"app","count":1,"overlap":"allow"}}`

func TestScheduled_HandsOnTheRunThatIsDue(t *testing.T) {
	r := &runs{}
	s := &event.Scheduled{Control: r, Metrics: counts{}, Log: slog.New(slog.DiscardHandler)}
	if err := s.Handle(t.Context(), json.RawMessage(dueMessage)); err != nil {
		t.Fatal(err)
	}
	if len(r.made) != 1 || r.made[0].Run.Schedule != "nightly" || !r.made[0].ScheduledTime.Equal(time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)) {
		t.Errorf("made %+v", r.made)
	}
}

// What fails is tried again by Lambda and put aside at last: nothing is lost in silence.
func TestScheduled_WhateverFailsIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		message string
		do      func() error
	}{
		"an error":                       {dueMessage, func() error { return errors.New("no") }},
		"a panic":                        {dueMessage, func() error { panic("no") }},
		"a message that can not be read": {`{"scheduledTime":"soon"}`, nil},
	} {
		n := counts{}
		s := &event.Scheduled{Control: &runs{do: c.do}, Metrics: n, Log: slog.New(slog.DiscardHandler)}
		if err := s.Handle(t.Context(), json.RawMessage(c.message)); err == nil {
			t.Errorf("%s: no error", name)
		}
		if (n["UndecodableMessages"] == 1) != (c.do == nil) {
			t.Errorf("%s: counted %v", name, n)
		}
	}
}
