package event

import (
	"context"
	"encoding/json"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
)

// countUnpublished counts state changes that could not be told and were put aside.
const countUnpublished = "UnpublishedEvents"

// StreamEvent is what Lambda hands over of a table's stream. Each record is read
// by itself, so that one that can not be read fails alone.
type StreamEvent struct {
	Records []json.RawMessage `json:"Records"`
}

// Stream tells subscribers of the state changes that a table's stream brings. What
// could not be told is named in the answer, and Lambda delivers it and what follows
// it in its shard again; what can never be told is put aside and holds up nothing.
type Stream struct {
	// Images reads a record of a stream.
	Images interface {
		Change(r events.DynamoDBEventRecord) (control.Change, error)
	}
	Control interface {
		Announce(ctx context.Context, changes []control.Change) []error
	}
	Dead    DeadLetters
	DeadURL string
	Metrics control.Metrics
	Log     *slog.Logger
}

// record is one record of a batch on its way.
type record struct {
	raw    json.RawMessage
	header header
	change control.Change
	err    error
}

// header is what of a record says which it is.
type header struct {
	ID     string `json:"eventID"`
	Source string `json:"eventSourceARN"`
	Change struct {
		Keys     json.RawMessage `json:"Keys"`
		Sequence string          `json:"SequenceNumber"`
	} `json:"dynamodb"`
}

// Handle takes one batch of one shard. It never returns an error, which would bring
// back what is done. The list of failures is empty, not absent, when there are none;
// Lambda goes on at the first.
func (s *Stream) Handle(ctx context.Context, e StreamEvent) (events.DynamoDBEventResponse, error) {
	out := events.DynamoDBEventResponse{BatchItemFailures: []events.DynamoDBBatchItemFailure{}}
	records := make([]record, len(e.Records))
	var changes []control.Change
	var of []int
	for i, raw := range e.Records {
		r := &records[i]
		r.raw = raw
		if r.err = guarded("read a change", func() error { return s.read(r) }); r.err != nil {
			r.err = fault.Wrap(fault.Invalid, r.err, "record %s", r.header.ID)
			continue
		}
		changes, of = append(changes, r.change), append(of, i)
	}
	if len(changes) > 0 {
		for k, err := range s.Control.Announce(ctx, changes) {
			records[of[k]].err = err
		}
	}
	for i := range records {
		r := &records[i]
		if r.err != nil && !again(r.err) {
			r.err = s.bury(ctx, r)
		}
		if r.err != nil {
			s.Log.WarnContext(ctx, "change to be delivered again, with what follows it", logkey.Message, r.header.ID, logkey.Queue, r.header.Source, logkey.Error, r.err)
			out.BatchItemFailures = append(out.BatchItemFailures, events.DynamoDBBatchItemFailure{ItemIdentifier: r.header.Change.Sequence})
			break // what follows comes with it
		}
	}
	s.Log.InfoContext(ctx, "changes announced", logkey.Count, len(records), logkey.Result, len(out.BatchItemFailures))
	return out, nil
}

func (s *Stream) read(r *record) error {
	if err := json.Unmarshal(r.raw, &r.header); err != nil {
		return err
	}
	var full events.DynamoDBEventRecord
	if err := json.Unmarshal(r.raw, &full); err != nil {
		return err
	}
	var err error
	r.change, err = s.Images.Change(full)
	return err
}

// bury puts a record aside; only if that fails is it to come again. One whose
// place in the shard is not known can not: it is in the log alone.
func (s *Stream) bury(ctx context.Context, r *record) error {
	s.Metrics.Count(countUnpublished, 1)
	s.Log.ErrorContext(ctx, "change put aside", logkey.Message, r.header.ID, logkey.Queue, r.header.Source, logkey.Reason, r.err)
	body := string(r.raw)
	if len(body) > maxLetter {
		body = string(r.header.Change.Keys)
	}
	err := s.Dead.DeadLetter(ctx, s.DeadURL, body, map[string]string{
		"reason": r.err.Error(), "stream": r.header.Source, "eventId": r.header.ID, "sequenceNumber": r.header.Change.Sequence,
	})
	if err != nil && r.header.Change.Sequence == "" {
		s.Log.ErrorContext(ctx, "change not put aside", logkey.Message, r.header.ID, logkey.Error, err)
		return nil
	}
	return err
}
