package event

import (
	"context"
	"log/slog"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/setting"
	"github.com/longshore-run/longshore/shared/wire"
)

// Intake is what statechange needs of control.
type Intake interface {
	IngestRegister(ctx context.Context, s control.Sender, m *wire.Register) error
	IngestReports(ctx context.Context, batch []control.Told) []error
	Heartbeats(ctx context.Context, batch []control.Beat) []error
	IngestProbe(ctx context.Context, s control.Sender, m *wire.Probe) error
}

// Statechange takes in what agents send: one function behind two queues. What
// could not be done is named in the answer, and SQS delivers it again with the
// sender and the time it had; it is never sent again by us, which would forge
// both. What can not be understood is put aside at once.
type Statechange struct {
	Control Intake
	Dead    DeadLetters
	Metrics control.Metrics
	Log     *slog.Logger
	Setting setting.Control
}

// batch is one call's messages on their way.
type batch struct {
	*Statechange
	records []events.SQSMessage
	errs    []error // by record
}

// Handle takes in one batch of either queue. It never returns an error: that
// would fail messages that are done. The list of failures is empty, not absent,
// when there are none.
func (s *Statechange) Handle(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	b := &batch{Statechange: s, records: e.Records, errs: make([]error, len(e.Records))}
	var heartbeats, reports []int
	for i, m := range e.Records {
		if nameOf(m.EventSourceARN) == nameOf(s.Setting.HeartbeatsQueueURL) {
			heartbeats = append(heartbeats, i)
		} else {
			reports = append(reports, i)
		}
	}
	b.heartbeats(ctx, heartbeats)
	b.reports(ctx, reports)
	out := b.answer(ctx)
	s.Log.InfoContext(ctx, "messages taken in", logkey.Count, len(e.Records), logkey.Result, len(out.BatchItemFailures))
	return out, nil
}

// answer puts aside what is invalid and lists what is to come again.
func (b *batch) answer(ctx context.Context) events.SQSEventResponse {
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for i, err := range b.errs {
		m := b.records[i]
		if err != nil && !again(err) {
			err = b.bury(ctx, m, err)
		}
		if err != nil {
			b.Log.WarnContext(ctx, "message to be delivered again", logkey.Message, m.MessageId, logkey.Queue, nameOf(m.EventSourceARN), logkey.Error, err)
			out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: m.MessageId})
		}
	}
	return out
}

// bury puts a message aside; only if that fails is it to come again.
func (b *batch) bury(ctx context.Context, m events.SQSMessage, why error) error {
	url := b.Setting.ReportsDeadQueueURL
	if b.isHeartbeat(m) {
		url = b.Setting.HeartbeatsDeadQueue
	}
	b.Metrics.Count(countUndecodable, 1)
	b.Log.ErrorContext(ctx, "message put aside", logkey.Message, m.MessageId, logkey.Queue, nameOf(m.EventSourceARN), logkey.Sender, m.Attributes["SenderId"], logkey.Reason, why)
	return b.Dead.DeadLetter(ctx, url, letter(m), aboutLetter(m, why))
}

func (b *batch) isHeartbeat(m events.SQSMessage) bool {
	return nameOf(m.EventSourceARN) == nameOf(b.Setting.HeartbeatsQueueURL)
}

// read decodes one message; of one that can not be decoded it returns what its
// header says, and the error is noted.
func (b *batch) read(i int) (s control.Sender, m wire.Message) {
	b.errs[i] = guarded("decode", func() (err error) {
		if s, err = senderOf(b.records[i]); err != nil {
			return err
		}
		m, err = wire.Decode([]byte(b.records[i].Body))
		return err
	})
	return s, m
}

// misplaced notes a message that its queue does not carry.
func (b *batch) misplaced(i int, m wire.Message) {
	b.errs[i] = fault.Field("type", "the queue %s carries no %q", nameOf(b.records[i].EventSourceARN), wire.TypeOf(m))
}

// heartbeats gives all beats to control at once, those that can not be read too:
// their lease is renewed all the same.
func (b *batch) heartbeats(ctx context.Context, records []int) {
	var beats []control.Beat
	var at []int
	for _, i := range records {
		s, m := b.read(i)
		switch m := m.(type) {
		case *wire.Heartbeat:
			beats, at = append(beats, control.Beat{Sender: s, Instance: m.Instance, Message: m}), append(at, i)
		case *wire.Probe:
			b.errs[i] = guarded("take in a probe", func() error { return b.Control.IngestProbe(ctx, s, m) })
		case nil:
			if !s.SentAt.IsZero() {
				beats, at = append(beats, control.Beat{Sender: s}), append(at, i)
			}
		case *wire.Unreadable:
			beats, at = append(beats, control.Beat{Sender: s, Instance: m.Instance}), append(at, i)
		default:
			b.misplaced(i, m)
		}
	}
	if len(beats) == 0 {
		return
	}
	errs := b.Control.Heartbeats(ctx, beats)
	for k, i := range at {
		if again(errs[k]) || b.errs[i] == nil {
			b.errs[i] = errs[k]
		}
	}
}

// reports takes in registrations first, each by itself, then reports and
// refusals together.
func (b *batch) reports(ctx context.Context, records []int) {
	var told []control.Told
	var at []int
	for _, i := range records {
		s, m := b.read(i)
		switch m := m.(type) {
		case *wire.Register:
			b.errs[i] = guarded("register", func() error { return b.Control.IngestRegister(ctx, s, m) })
		case *wire.Report:
			told, at = append(told, control.Told{Sender: s, Report: m}), append(at, i)
		case *wire.Refused:
			told, at = append(told, control.Told{Sender: s, Refused: m}), append(at, i)
		case *wire.Unreadable, nil:
		default:
			b.misplaced(i, m)
		}
	}
	if len(told) == 0 {
		return
	}
	errs := b.Control.IngestReports(ctx, told)
	for k, i := range at {
		b.errs[i] = errs[k]
	}
}
