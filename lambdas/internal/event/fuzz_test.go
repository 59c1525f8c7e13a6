package event_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/lambdas/internal/event"
	"github.com/longshore-run/longshore/shared/schedule"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// heard notes what a handler hands on.
type heard struct {
	kicks    []control.Kick
	hosts    []control.HostState
	warnings []control.Interruption
	hooks    []control.Hook
	runs     []schedule.Due
	ticks    int
}

func (h *heard) Admit(_ context.Context, k control.Kick) error {
	h.kicks = append(h.kicks, k)
	return nil
}
func (h *heard) Serve(_ context.Context, k control.Kick) error {
	h.kicks = append(h.kicks, k)
	return nil
}
func (h *heard) RaiseEpochs(_ context.Context, since time.Time) (*control.Raised, error) {
	return &control.Raised{Raised: since.Year()}, nil
}
func (h *heard) Tick(context.Context) error { h.ticks++; return nil }
func (h *heard) IngestHostState(_ context.Context, s control.HostState) error {
	h.hosts = append(h.hosts, s)
	return nil
}

func (h *heard) IngestInterruption(_ context.Context, i control.Interruption) error {
	h.warnings = append(h.warnings, i)
	return nil
}

func (h *heard) IngestTermination(_ context.Context, k control.Hook) error {
	h.hooks = append(h.hooks, k)
	return nil
}

func (h *heard) RunScheduled(_ context.Context, d schedule.Due) error {
	h.runs = append(h.runs, d)
	return nil
}

func (h *heard) Change(events.DynamoDBEventRecord) (control.Change, error) {
	return control.Change{}, nil
}

func (h *heard) Announce(_ context.Context, all []control.Change) []error {
	return make([]error, len(all))
}

// FuzzKick: a kick is handed on with names and ids in their forms, or is put aside
// with a reason of few words; it never fails its batch.
func FuzzKick(f *testing.F) {
	for _, body := range []string{
		`{"cluster":"default","tasks":["00000000000000000000000000000001"]}`, `{"cluster":"default","instance":"00000000000000000000000000000001"}`,
		`{"cluster":"default","service":"web"}`, `{"cluster":"../x"}`, `{"cluster":"a"}{}`, `[]`, ``,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		h, dead := &heard{}, &deadLetters{}
		counts := controltest.NewWorld(t).Counts
		batch := events.SQSEvent{Records: []events.SQSMessage{{MessageId: "m", Body: body}}}
		if err := (&event.Admission{Control: h, Dead: dead, Metrics: counts, Log: silent()}).Handle(ctx, batch); err != nil {
			t.Fatal(err)
		}
		out, err := (&event.Services{Control: h, Dead: dead, Metrics: counts, Log: silent()}).Handle(ctx, batch)
		if err != nil || len(out.BatchItemFailures) > 0 {
			t.Fatalf("%+v, %v", out, err)
		}
		if len(h.kicks)+len(dead.letters) != 2 {
			t.Fatalf("kicks %v, put aside %v", h.kicks, dead.letters)
		}
		for _, k := range h.kicks {
			if k.Cluster == "" || len(k.Cluster) > 255 || len(k.Tasks) > 10 || strings.ContainsAny(k.Cluster+k.Service, "\x00/\n ") {
				t.Fatalf("%+v", k)
			}
		}
		for _, l := range dead.letters {
			if n := len(l.about["reason"]); n == 0 || n > 1024 {
				t.Fatalf("a reason of %d bytes", n)
			}
		}
	})
}

// FuzzStatechange: whatever Lambda hands over as a batch of either queue, the
// answer names only messages of it, no error fails the others, and no lease or
// task that the sender has not is touched.
func FuzzStatechange(f *testing.F) {
	identity, id := controltest.Identity("i")
	sample := func(arn string, body []byte) {
		text, _ := json.Marshal(string(body))
		f.Add([]byte(`{"Records":[{"messageId":"m","eventSourceARN":"` + arn + `","attributes":{"SenderId":"` + identity + `","SentTimestamp":"1767323050000"},"body":` + string(text) + `}]}`))
	}
	head := wire.Header{Instance: id}
	for arn, all := range map[string][]wire.Message{
		heartbeatsARN: {
			&wire.Heartbeat{Header: head, Origin: wire.Origin{Incarnation: "inc-i", N: 1}, Session: "session-1", Docker: wire.DockerOK, Epoch: 1767323045},
			&wire.Probe{ID: "x"},
		},
		reportsARN: {
			&wire.Report{Header: head, Origin: wire.Origin{Incarnation: "inc-i", N: 1}, Snapshot: wire.Snapshot{Task: strings.Repeat("0", 31) + "1", Attempt: 1, Status: task.Stopped}},
			&wire.Refused{Header: head, Origin: wire.Origin{Incarnation: "inc-i", N: 1}, Task: strings.Repeat("0", 31) + "1", Attempt: 1, Code: wire.RefusedPort},
			&wire.Register{Header: head, Origin: wire.Origin{Incarnation: "inc-i", N: 1}, Identity: identity, Session: "s", Cluster: "default", WireVersions: []int{1}, CPU: 1, MemoryMiB: 1},
		},
	} {
		for _, m := range all {
			b, err := wire.Encode(m)
			if err != nil {
				f.Fatal(err)
			}
			sample(arn, b)
		}
		sample(arn, []byte(`{"v":2,"type":"heartbeat","instance":"`+id+`"}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var e events.SQSEvent
		if json.Unmarshal(body, &e) != nil || len(e.Records) > 20 {
			return
		}
		r := newFuzzRig(t)
		victim := r.w.AddInstance("victim", control.Held{CPU: 1000, MemoryMiB: 100})
		before := r.w.Lease(victim)
		out, err := r.Handle(ctx, e)
		if err != nil || out.BatchItemFailures == nil {
			t.Fatalf("%+v, %v", out, err)
		}
		ids, victims := map[string]bool{}, false // may the fuzzer have found its identity?
		for _, m := range e.Records {
			ids[m.MessageId] = true
			victims = victims || strings.HasSuffix(m.Attributes["SenderId"], "victim")
		}
		for _, fail := range out.BatchItemFailures {
			if !ids[fail.ItemIdentifier] {
				t.Fatalf("a failure of %q, which was not in the batch", fail.ItemIdentifier)
			}
		}
		if after := r.w.Lease(victim); !victims && !after.Sent.Equal(before.Sent) {
			t.Fatalf("another's lease was renewed by %s", body)
		}
	})
}

// FuzzEvent: what a rule delivers to the reaper is a tick, the end of a host that
// has a name, or dropped; it panics on nothing.
func FuzzEvent(f *testing.F) {
	for _, s := range []string{
		`{"source":"aws.events","detail-type":"Scheduled Event","time":"2026-01-02T03:04:05Z"}`,
		`{"source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","time":"2026-01-02T03:04:05Z","detail":{"instance-id":"i-0123456789abcdef0","state":"terminated"}}`,
		`{"source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","time":"2026-01-02T03:04:05Z","detail":{}}`,
		`{"source":"aws.ec2","detail":[]}`,
		`{"source":"longshore.restore","time":"2026-01-02T03:04:05Z"}`,
		`{"source":"longshore.restore"}`,
		`{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","time":"2026-01-02T03:04:05Z","detail":{"instance-id":"i-0123456789abcdef0","instance-action":"stop"}}`,
		`{"source":"aws.autoscaling","detail-type":"EC2 Instance-terminate Lifecycle Action","time":"2026-01-02T03:04:05Z","detail":{"LifecycleActionToken":"t","AutoScalingGroupName":"g","LifecycleHookName":"h","EC2InstanceId":"i-1"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var e events.CloudWatchEvent
		if json.Unmarshal(body, &e) != nil {
			return
		}
		h := &heard{}
		out, err := (&event.Reaper{Control: h, Metrics: controltest.NewWorld(t).Counts, Log: silent()}).Handle(ctx, e)
		if err != nil && (e.Source != "longshore.restore" || !e.Time.IsZero()) {
			t.Fatal(err)
		}
		if (out != nil || err != nil) && h.ticks+len(h.hosts)+len(h.warnings)+len(h.hooks) > 0 {
			t.Fatalf("an answer beside a run: %v, %v", out, err)
		}
		if h.ticks+len(h.hosts)+len(h.warnings)+len(h.hooks) > 1 || h.ticks == 1 && (e.Source == "aws.ec2" || e.Source == "aws.autoscaling") {
			t.Fatalf("%d ticks, hosts %v, warnings %v, hooks %v", h.ticks, h.hosts, h.warnings, h.hooks)
		}
		for _, i := range h.warnings {
			if i.EC2InstanceID == "" || i.At.IsZero() {
				t.Fatalf("%+v", i)
			}
		}
		for _, k := range h.hooks {
			if k.Group == "" || k.Name == "" || k.Token == "" || k.EC2 == "" || k.At.IsZero() {
				t.Fatalf("%+v", k)
			}
		}
		for _, s := range h.hosts {
			if s.EC2InstanceID == "" || s.State == "" || s.At.IsZero() {
				t.Fatalf("%+v", s)
			}
		}
	})
}

// FuzzSchedule: a run is made of a message that passes the schedule's own check,
// and of no other.
func FuzzSchedule(f *testing.F) {
	f.Add([]byte(`{"scheduledTime":"2026-01-02T03:00:00Z","run":{"version":1,"schedule":"nightly","cluster":"default","taskDefinition":"report","count":1,"overlap":"allow"}}`))
	f.Add([]byte(`{"scheduledTime":"2026-01-02T03:00:00Z","run":{"count":99}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		h := &heard{}
		err := (&event.Scheduled{Control: h, Metrics: controltest.NewWorld(t).Counts, Log: silent()}).Handle(ctx, body)
		if (err == nil) != (len(h.runs) == 1) {
			t.Fatalf("%v, and runs %v", err, h.runs)
		}
		for _, d := range h.runs {
			if d.Run.Check() != nil || d.ScheduledTime.IsZero() {
				t.Fatalf("%+v", d)
			}
		}
	})
}

// FuzzStream: of a batch of a stream the answer names at most one record, and what
// has a place in its shard is announced, put aside or named.
func FuzzStream(f *testing.F) {
	f.Add([]byte(`{"Records":[{"eventID":"1","eventSourceARN":"arn:aws:dynamodb:us-east-1:000000000000:table/T/stream/x","dynamodb":{"Keys":{"pk":{"S":"a"}},"SequenceNumber":"7"}}]}`))
	f.Add([]byte(`{"Records":[{"eventID":1},null,{"dynamodb":{"Keys":{"pk":{"X":0}},"SequenceNumber":"8"}}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var e event.StreamEvent
		if json.Unmarshal(body, &e) != nil || len(e.Records) > 50 {
			return
		}
		h, dead := &heard{}, &deadLetters{}
		out, err := (&event.Stream{Images: h, Control: h, Dead: dead, Metrics: controltest.NewWorld(t).Counts, Log: silent()}).Handle(ctx, e)
		if err != nil || len(out.BatchItemFailures) > 0 || out.BatchItemFailures == nil {
			t.Fatalf("%+v, %v", out, err)
		}
		for _, l := range dead.letters {
			if len(l.body) > 200*1024 {
				t.Fatalf("%d bytes are put aside", len(l.body))
			}
		}
	})
}

// newFuzzRig is newRig without a wait: a fuzz target makes thousands.
func newFuzzRig(t *testing.T) *rig {
	r := newRig(t)
	r.w.Clock.Move(time.Minute)
	return r
}
