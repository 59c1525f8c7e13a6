package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/event"
	"github.com/longshore-run/longshore/shared/fault"
)

// publisher is an Images and a Control that go by a record's key.
type publisher struct {
	errs map[string]error // by key, of Announce
	told []string
}

func (p *publisher) Change(r events.DynamoDBEventRecord) (control.Change, error) {
	id := r.Change.Keys["id"].String()
	switch id {
	case "panics":
		panic("unreadable")
	case "strange":
		return control.Change{}, errors.New("strange")
	}
	return control.Change{New: &control.Task{ID: id}}, nil
}

func (p *publisher) Announce(_ context.Context, changes []control.Change) []error {
	errs := make([]error, len(changes))
	for i, c := range changes {
		if errs[i] = p.errs[c.New.Key()]; errs[i] == nil {
			p.told = append(p.told, c.New.Key())
		}
	}
	return errs
}

func changeOf(id string, n int) json.RawMessage {
	return fmt.Appendf(nil, `{"eventID":"e%d","eventName":"MODIFY","eventSourceARN":"arn:aws:dynamodb:r:1:table/tasks/stream/s","dynamodb":{"SequenceNumber":"%d","Keys":{"id":{"S":%q}}}}`, n, n, id)
}

func streamOf(ids ...string) event.StreamEvent {
	var e event.StreamEvent
	for i, id := range ids {
		e.Records = append(e.Records, changeOf(id, i+1))
	}
	return e
}

func newStream(p *publisher, d *deadLetters) (*event.Stream, counts) {
	c := counts{}
	return &event.Stream{Images: p, Control: p, Dead: d, DeadURL: "https://dead", Metrics: c, Log: slog.New(slog.DiscardHandler)}, c
}

func failures(t *testing.T, s *event.Stream, e event.StreamEvent) []string {
	t.Helper()
	out, err := s.Handle(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	all := []string{}
	for _, f := range out.BatchItemFailures {
		all = append(all, f.ItemIdentifier)
	}
	if b, err := json.Marshal(out); err != nil || strings.Contains(string(b), "null") {
		t.Errorf("answer %s: a list of no failures must be empty", b)
	}
	return all
}

func TestStream_AnswersAnEmptyListWhenAllIsDone(t *testing.T) {
	p := &publisher{}
	s, _ := newStream(p, &deadLetters{})
	if got := failures(t, s, streamOf("a", "b")); len(got) != 0 || !slices.Equal(p.told, []string{"a", "b"}) {
		t.Errorf("failures %v, told %v", got, p.told)
	}
	if got := failures(t, s, event.StreamEvent{}); len(got) != 0 {
		t.Errorf("failures %v of nothing", got)
	}
}

func TestStream_NamesTheFirstThatIsToComeAgain(t *testing.T) {
	p := &publisher{errs: map[string]error{"b": fault.New(fault.Unavailable, "no"), "d": errors.New("a bug")}}
	d := &deadLetters{}
	s, _ := newStream(p, d)
	if got := failures(t, s, streamOf("a", "b", "c", "d")); !slices.Equal(got, []string{"2"}) || len(d.letters) != 0 {
		t.Errorf("failures %v, put aside %v", got, d.letters)
	}
}

func TestStream_PutsAsideWhatCanNeverBeToldAndGoesOn(t *testing.T) {
	p := &publisher{errs: map[string]error{"never": fault.New(fault.Invalid, "no form")}}
	d := &deadLetters{}
	s, c := newStream(p, d)
	e := streamOf("panics", "a", "strange", "never", "b")
	e.Records = append(e.Records, json.RawMessage(`{"eventID":7}`), json.RawMessage(`{"eventID":"e7","dynamodb":{"SequenceNumber":"7","Keys":{"id":{"WHAT":"x"}}}}`))
	if got := failures(t, s, e); len(got) != 0 {
		t.Errorf("failures %v", got)
	}
	if !slices.Equal(p.told, []string{"a", "b"}) || len(d.letters) != 5 || c["UnpublishedEvents"] != 5 {
		t.Errorf("told %v, put aside %d, counted %v", p.told, len(d.letters), c)
	}
	if l := d.letters[0]; l.url != "https://dead" || l.about["sequenceNumber"] != "1" || l.body != string(e.Records[0]) || !strings.Contains(l.about["reason"], "unreadable") {
		t.Errorf("letter %+v", l)
	}
}

func TestStream_WhatCanNotBePutAsideComesAgain(t *testing.T) {
	p := &publisher{}
	s, _ := newStream(p, &deadLetters{err: errors.New("no queue")})
	if got := failures(t, s, streamOf("a", "strange", "b")); !slices.Equal(got, []string{"2"}) {
		t.Errorf("failures %v", got)
	}
	// What has no number in its shard could never be named: it must not hold up the rest for good.
	if got := failures(t, s, event.StreamEvent{Records: []json.RawMessage{json.RawMessage(`[]`)}}); len(got) != 0 {
		t.Errorf("failures %v", got)
	}
}

func TestStream_AHugeRecordIsPutAsideByItsKey(t *testing.T) {
	p := &publisher{}
	d := &deadLetters{}
	s, _ := newStream(p, d)
	raw := strings.Replace(string(changeOf("strange", 1)), `"Keys"`, `"NewImage":{"x":{"S":"`+strings.Repeat("x", 300_000)+`"}},"Keys"`, 1)
	if got := failures(t, s, event.StreamEvent{Records: []json.RawMessage{json.RawMessage(raw)}}); len(got) != 0 || d.letters[0].body != `{"id":{"S":"strange"}}` {
		t.Errorf("failures %v, put aside %.80s", got, d.letters[0].body)
	}
}
