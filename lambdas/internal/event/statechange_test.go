package event_test

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/internal/event"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

var ctx = context.Background()

const (
	reportsARN    = "arn:aws:sqs:us-east-1:000000000000:longshore-reports"
	heartbeatsARN = "arn:aws:sqs:us-east-1:000000000000:longshore-heartbeats"
)

// deadLetters keeps what was put aside, or fails.
type deadLetters struct {
	letters []letter
	err     error
}

type letter struct {
	url, body string
	about     map[string]string
}

func (d *deadLetters) DeadLetter(_ context.Context, url, body string, about map[string]string) error {
	if d.err == nil {
		d.letters = append(d.letters, letter{url, body, about})
	}
	return d.err
}

// rig is the handler over a control plane in memory, with one connected instance.
type rig struct {
	*event.Statechange
	t        *testing.T
	w        *controltest.World
	dead     *deadLetters
	identity string
	id       string
}

func newRig(t *testing.T) *rig {
	w := controltest.NewWorld(t)
	w.Setting.ReportsQueueURL = "http://localhost/000000000000/longshore-reports"
	w.Setting.HeartbeatsQueueURL = "http://localhost/000000000000/longshore-heartbeats"
	w.Setting.ReportsDeadQueueURL, w.Setting.HeartbeatsDeadQueue = "reports-dead", "heartbeats-dead"
	r := &rig{t: t, w: w, dead: &deadLetters{}}
	r.identity, _ = controltest.Identity("i")
	r.id = w.AddInstance("i", control.Held{CPU: 1000, MemoryMiB: 100})
	r.Statechange = &event.Statechange{Control: w.Control, Dead: r.dead, Metrics: w.Counts, Setting: w.Setting, Log: silent()}
	return r
}

func (r *rig) record(arn, body string) events.SQSMessage {
	r.w.Clock.Move(time.Second)
	return events.SQSMessage{
		MessageId: r.w.NewID(), Body: body, EventSourceARN: arn,
		Attributes: map[string]string{"SenderId": r.identity, "SentTimestamp": strconv.FormatInt(r.w.Clock.Now().UnixMilli(), 10)},
	}
}

func (r *rig) encoded(arn string, m wire.Message) events.SQSMessage {
	r.t.Helper()
	b, err := wire.Encode(m)
	if err != nil {
		r.t.Fatal(err)
	}
	return r.record(arn, string(b))
}

func (r *rig) handle(records ...events.SQSMessage) []string {
	r.t.Helper()
	out, err := r.Handle(ctx, events.SQSEvent{Records: records})
	if err != nil || out.BatchItemFailures == nil {
		r.t.Fatalf("error %v, failures %v", err, out.BatchItemFailures)
	}
	var failed []string
	for _, f := range out.BatchItemFailures {
		failed = append(failed, f.ItemIdentifier)
	}
	return failed
}

func (r *rig) beat(n int64) *wire.Heartbeat {
	return &wire.Heartbeat{Header: wire.Header{Instance: r.id}, Origin: wire.Origin{Incarnation: "inc-i", N: n}, Session: "session-1",
		Epoch: r.w.Ledger(r.id).Epoch, Docker: wire.DockerOK, Inventory: []wire.Entry{}}
}

func (r *rig) ended(id string) *wire.Report {
	return &wire.Report{Header: wire.Header{Instance: r.id}, Origin: wire.Origin{Incarnation: "inc-i", N: 5},
		Snapshot: wire.Snapshot{Task: id, Attempt: 1, Status: task.Stopped, Cause: task.ExitedCause}}
}

func (r *rig) given() string {
	id := r.w.AddTask(taskdef.Resources{CPU: 1, MemoryMiB: 1}).ID
	r.w.MustAdmit(id)
	return id
}

func TestHandle_AnswersAnEmptyListNotNull(t *testing.T) {
	r := newRig(t)
	out, err := r.Handle(ctx, events.SQSEvent{})
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := json.Marshal(out); string(b) != `{"batchItemFailures":[]}` {
		t.Fatalf("answer %s", b)
	}
}

func TestHandle_PoisonGoesToTheDeadLetterQueueAndTheOthersGoOn(t *testing.T) {
	r := newRig(t)
	id := r.given()
	unknown := strings.Replace(string(must(wire.Encode(r.ended(id)))), `"v":1`, `"v":99`, 1)
	badTime := r.encoded(reportsARN, r.ended(id))
	badTime.Attributes["SentTimestamp"] = "yesterday"
	poison := []events.SQSMessage{
		r.record(reportsARN, "garbage"), r.record(reportsARN, ""), r.record(reportsARN, unknown),
		r.record(reportsARN, strings.Repeat("x", wire.MaxBytes+1)), r.record(reportsARN, `{"v":1,"type":"report","instance":"`+r.id+`","more":1}`),
		r.encoded(reportsARN, r.beat(1)), badTime,
	}
	if failed := r.handle(append(poison, r.encoded(reportsARN, r.ended(id)))...); len(failed) != 0 {
		t.Fatalf("to come again: %v", failed)
	}
	if r.w.Task(id).LastStatus != task.Stopped {
		t.Error("the good report was held up")
	}
	if len(r.dead.letters) != len(poison) {
		t.Fatalf("%d put aside of %d", len(r.dead.letters), len(poison))
	}
	for i, l := range r.dead.letters {
		if l.url != "reports-dead" || l.body != poison[i].Body[:min(len(poison[i].Body), 200*1024)] || l.about["reason"] == "" || l.about["senderId"] != r.identity || l.about["messageId"] != poison[i].MessageId || l.about["queue"] != "longshore-reports" {
			t.Errorf("letter %d is %+v", i, l.about)
		}
	}
	if n, _ := r.w.Counts.Last("UndecodableMessages"); n != 1 {
		t.Error("not counted")
	}
}

func TestHandle_WhatCanNotBePutAsideComesAgain(t *testing.T) {
	r := newRig(t)
	r.dead.err = fault.New(fault.Unavailable, "no queue")
	m := r.record(reportsARN, "garbage")
	if failed := r.handle(m); len(failed) != 1 || failed[0] != m.MessageId {
		t.Fatalf("to come again: %v", failed)
	}
}

func TestHandle_ABusyStoreMakesOnlyItsOwnMessagesComeAgain(t *testing.T) {
	r := newRig(t)
	id := r.given()
	r.w.Memory.Calls.FailAt(1, fault.Unavailable)
	report, garbage := r.encoded(reportsARN, r.ended(id)), r.record(reportsARN, "garbage")
	if failed := r.handle(garbage, report); len(failed) != 1 || failed[0] != report.MessageId {
		t.Fatalf("to come again: %v", failed)
	}
	if failed := r.handle(report); len(failed) != 0 || r.w.Task(id).LastStatus != task.Stopped {
		t.Fatalf("after it came again: %v, %s", failed, r.w.Task(id).LastStatus)
	}
}

func TestHandle_EveryLeaseIsRenewedAlsoOfABodyNobodyCanRead(t *testing.T) {
	for name, body := range map[string]string{
		"garbage":         "garbage",
		"unknown version": `{"v":99,"type":"heartbeat","instance":"00000000000000000000000000000000"}`,
		"unknown type":    `{"v":1,"type":"pulse","instance":"00000000000000000000000000000000"}`,
		"too big":         strings.Repeat("x", wire.MaxBytes+1),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			m := r.record(heartbeatsARN, body)
			if failed := r.handle(m); len(failed) != 0 {
				t.Fatalf("to come again: %v", failed)
			}
			if got := r.w.Lease(r.id).Sent; !got.Equal(r.w.Clock.Now()) {
				t.Errorf("lease of %s, sent %s", got, r.w.Clock.Now())
			}
			if len(r.dead.letters) != 1 || r.dead.letters[0].url != "heartbeats-dead" {
				t.Errorf("put aside %+v", r.dead.letters)
			}
		})
	}
}

func TestHandle_ALeaseThatCouldNotBeRenewedKeepsItsMessage(t *testing.T) {
	r := newRig(t)
	m := r.record(heartbeatsARN, "garbage")
	r.w.Memory.Calls.FailAt(1, fault.Unavailable)
	if failed := r.handle(m); len(failed) != 1 || len(r.dead.letters) != 0 {
		t.Fatalf("to come again: %v, put aside: %v", failed, r.dead.letters)
	}
}

func TestHandle_HeartbeatsAndProbes(t *testing.T) {
	r := newRig(t)
	probe := &control.Probe{ID: "p1", SentAt: r.w.Clock.Now()}
	r.w.Put(probe)
	m := r.encoded(heartbeatsARN, &wire.Probe{ID: "p1"})
	seen := r.w.Clock.Now()
	if failed := r.handle(m, r.encoded(heartbeatsARN, r.beat(1)), r.encoded(heartbeatsARN, &wire.Probe{ID: "never-sent"})); len(failed) != 0 {
		t.Fatalf("to come again: %v", failed)
	}
	if err := r.w.Store.Load(ctx, probe); err != nil || !probe.SeenSent.Equal(seen) {
		t.Errorf("probe %+v", probe)
	}
	if l := r.w.Lease(r.id); l.N != 1 || l.Inventory == "" {
		t.Errorf("lease %+v", l)
	}
	if failed := r.handle(r.encoded(heartbeatsARN, r.ended(r.w.NewID()))); len(failed) != 0 || len(r.dead.letters) != 1 {
		t.Errorf("a report among heartbeats: %v, put aside %d", failed, len(r.dead.letters))
	}
}

func TestHandle_RegisterOnlyForItself(t *testing.T) {
	r := newRig(t)
	other, id := controltest.Identity("other")
	m := r.encoded(reportsARN, &wire.Register{Header: wire.Header{Instance: id}, Origin: wire.Origin{Incarnation: "x", N: 1}, Identity: other,
		Session: "s", Cluster: "default", WireVersions: []int{1}, CPU: 1, MemoryMiB: 1})
	if failed := r.handle(m); len(failed) != 0 || r.w.Ledger(id).Version != 0 {
		t.Fatalf("another's registration was taken: %v", failed)
	}
	m.Attributes["SenderId"] = other
	if failed := r.handle(m); len(failed) != 0 || r.w.Ledger(id).Version == 0 {
		t.Fatalf("its own registration was not: %v", failed)
	}
}

// panics is a control plane with a bug.
type panics struct{ event.Intake }

func (panics) IngestRegister(context.Context, control.Sender, *wire.Register) error { panic("bug") }

func TestHandle_APanicFailsItsOwnMessageOnly(t *testing.T) {
	r := newRig(t)
	id := r.given()
	r.Control = panics{r.w.Control}
	m := r.encoded(reportsARN, &wire.Register{Header: wire.Header{Instance: r.id}, Origin: wire.Origin{Incarnation: "x", N: 1}, Identity: r.identity,
		Session: "s", Cluster: "default", WireVersions: []int{1}, CPU: 1, MemoryMiB: 1})
	if failed := r.handle(m, r.encoded(reportsARN, r.ended(id))); len(failed) != 1 || failed[0] != m.MessageId {
		t.Fatalf("to come again: %v", failed)
	}
	if r.w.Task(id).LastStatus != task.Stopped {
		t.Error("the report was held up")
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}
