package event_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// One agent sends ten thousand messages, beats with changing inventories and
// reports of tasks it does not have, between the beats of another: the other's
// lease is renewed in every batch, no message costs more than a few calls, and
// all of the flood is done with, not left to come again.
func TestAttack_AFloodOfOneAgentKeepsNoOtherFromBeingHeard(t *testing.T) {
	const flood, perBatch, most = 10_000, 99, 2
	r := newRig(t)
	honest, id := controltest.Identity("honest")
	r.w.AddInstance("honest", control.Held{CPU: 1000, MemoryMiB: 100})
	epoch := r.w.Ledger(id).Epoch
	n := int64(0)
	from := func(identity string, m events.SQSMessage) events.SQSMessage {
		m.Attributes["SenderId"] = identity
		return m
	}
	var spare []wire.Entry
	for k := range 20 {
		spare = append(spare, wire.Entry{Task: fmt.Sprintf("%032x", 5_000_000+k), Attempt: 1, Epoch: epoch, Phase: wire.PhaseRunning})
	}
	sent := 0
	for sent < flood {
		var beats, reports events.SQSEvent
		for range perBatch {
			n++
			beats.Records = append(beats.Records, r.encoded(heartbeatsARN, &wire.Heartbeat{Header: wire.Header{Instance: r.id}, Origin: wire.Origin{Incarnation: "inc-i", N: n},
				Session: "session-1", Epoch: epoch, Docker: wire.DockerOK, Inventory: spare[:n%20]}))
		}
		for range 10 {
			n++
			reports.Records = append(reports.Records, r.encoded(reportsARN, &wire.Report{Header: wire.Header{Instance: r.id}, Origin: wire.Origin{Incarnation: "inc-i", N: n},
				Snapshot: wire.Snapshot{Task: spare[n%20].Task, Attempt: 1, Epoch: epoch, Status: task.Stopped}}))
		}
		sent += len(beats.Records) + len(reports.Records)
		mine := from(honest, r.encoded(heartbeatsARN, &wire.Heartbeat{Header: wire.Header{Instance: id}, Origin: wire.Origin{Incarnation: "inc-honest", N: n}, Session: "session-1", Epoch: epoch, Docker: wire.DockerOK}))
		beats.Records = append(beats.Records, mine)
		r.w.Memory.Calls.Reset()
		for _, e := range []events.SQSEvent{beats, reports} {
			out, err := r.Handle(ctx, e)
			if err != nil || len(out.BatchItemFailures) > 0 {
				t.Fatalf("%+v, %v", out, err)
			}
		}
		calls, names := r.w.Memory.Calls.Made()
		if all := len(beats.Records) + len(reports.Records); calls > most*all {
			t.Fatalf("%d calls for %d messages: %v", calls, all, names)
		}
		if got := r.w.Lease(id); got.Sent.UnixMilli() < r.w.Clock.Now().Add(-time.Second).UnixMilli() || got.Stage != control.StageConnected {
			t.Fatalf("after %d messages the other's lease is of %s, %s", sent, got.Sent, got.Stage)
		}
		r.w.Sent.TakeCommands(r.id)
	}
	if len(r.dead.letters) > 0 {
		t.Errorf("%d messages were put aside", len(r.dead.letters))
	}
}

// Bodies that no agent writes: the sender's lease is renewed all the same, they are
// put aside with a short reason and counted, and the batch's others are done.
func TestAttack_HugeAndDeepBodiesAreEachPutAsideAlone(t *testing.T) {
	head := `{"v":1,"type":"heartbeat","instance":`
	for name, body := range map[string]string{
		"a megabyte":            head + `"` + strings.Repeat("x", 1<<20) + `"}`,
		"nested lists":          head + strings.Repeat("[", 120_000),
		"nested objects":        strings.Repeat(`{"a":`, 50_000),
		"one long number":       `{"v":` + strings.Repeat("9", 250_000) + `}`,
		"one long member":       `{"v":1,"type":"heartbeat","` + strings.Repeat("m", 200_000) + `":1}`,
		"escapes":               head + `"` + strings.Repeat(`\u0000`, 40_000) + `"}`,
		"no UTF-8":              head + `"` + strings.Repeat("\xff", 100_000) + `"}`,
		"the same member often": `{"v":1,"type":"heartbeat"` + strings.Repeat(`,"n":1`, 40_000) + `}`,
		"nothing":               "",
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			bad := r.record(heartbeatsARN, body)
			_, other := controltest.Identity("other")
			r.w.AddInstance("other", control.Held{CPU: 1, MemoryMiB: 1})
			good := r.encoded(heartbeatsARN, &wire.Heartbeat{Header: wire.Header{Instance: other}, Origin: wire.Origin{Incarnation: "inc-other", N: 1}, Session: "session-1", Epoch: r.w.Ledger(other).Epoch, Docker: wire.DockerOK})
			good.Attributes["SenderId"] = "AROATEST:other"
			out, err := r.Handle(ctx, events.SQSEvent{Records: []events.SQSMessage{bad, good}})
			if err != nil || len(out.BatchItemFailures) > 0 {
				t.Fatalf("%+v, %v", out, err)
			}
			now := r.w.Clock.Now()
			if got := r.w.Lease(other).Sent; !got.Equal(now) {
				t.Errorf("the other's lease is of %s", got)
			}
			if got := r.w.Lease(r.id).Sent; now.Sub(got) > time.Second {
				t.Errorf("the sender's lease is of %s", got)
			}
			if n, _ := r.w.Counts.Last("UndecodableMessages"); n != 1 || len(r.dead.letters) != 1 {
				t.Fatalf("counted %v, put aside %d", n, len(r.dead.letters))
			}
			if l := r.dead.letters[0]; len(l.body) > 200*1024 || l.about["bytes"] != strconv.Itoa(len(body)) {
				t.Errorf("%d bytes are put aside of %s", len(l.body), l.about["bytes"])
			}
			if reason := r.dead.letters[0].about["reason"]; reason == "" || len(reason) > 1024 {
				t.Errorf("a reason of %d bytes", len(reason))
			}
		})
	}
}

// An agent may send to the report queue too: what it puts there of another queue's
// kind is put aside, and a command sent to the control plane commands nobody.
func TestAttack_ACommandSentToTheControlPlaneCommandsNobody(t *testing.T) {
	r := newRig(t)
	_, victim := controltest.Identity("victim")
	r.w.AddInstance("victim", control.Held{CPU: 1, MemoryMiB: 1})
	job := strings.Repeat("0", 32)
	for _, arn := range []string{reportsARN, heartbeatsARN} {
		for _, m := range []wire.Message{
			&wire.Stop{Header: wire.Header{Instance: victim}, Task: job, Attempt: 1}, &wire.Ack{Header: wire.Header{Instance: victim}, Task: job, Attempt: 1},
			&wire.Fence{Header: wire.Header{Instance: victim}, Incarnation: "inc-victim", Epoch: 1 << 40, Terminal: true},
			&wire.Assign{Header: wire.Header{Instance: victim}, Task: job, Attempt: 1, Definition: []byte(`{}`)},
			&wire.Welcome{Header: wire.Header{Instance: victim}, Incarnation: "inc-victim", Epoch: 1 << 40, HeartbeatEveryS: 1}, &wire.Resync{Header: wire.Header{Instance: victim}},
		} {
			before := len(r.dead.letters)
			out, err := r.Handle(ctx, events.SQSEvent{Records: []events.SQSMessage{r.encoded(arn, m)}})
			if err != nil || len(out.BatchItemFailures) > 0 || len(r.dead.letters) != before+1 {
				t.Errorf("%s %T: %+v, %v", arn, m, out, err)
			}
		}
	}
	if got := r.w.Sent.TakeCommands(victim); len(got) > 0 {
		t.Errorf("the victim is sent %v", got)
	}
}
