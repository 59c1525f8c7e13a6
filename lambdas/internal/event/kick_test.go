package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/event"
)

const (
	id1 = "00000000000000000000000000000001"
	id2 = "00000000000000000000000000000002"
)

// counts is control.Metrics that adds up.
type counts map[string]float64

func (c counts) Count(name string, value float64, _ ...string) { c[name] += value }

func silent() *slog.Logger { return slog.New(slog.DiscardHandler) }

func bodies(all ...string) (e events.SQSEvent) {
	for i, b := range all {
		e.Records = append(e.Records, events.SQSMessage{MessageId: string(rune('a' + i)), Body: b, Attributes: map[string]string{"ApproximateReceiveCount": "1"}})
	}
	return e
}

type passes struct {
	kicks []control.Kick
	do    func() error
}

func (p *passes) Admit(_ context.Context, k control.Kick) error {
	p.kicks = append(p.kicks, k)
	return p.do()
}

func TestAdmission_OnePassForAllKicksOfACluster(t *testing.T) {
	p, n := &passes{do: func() error { return nil }}, counts{}
	a := &event.Admission{Control: p, Dead: &deadLetters{}, Metrics: n, Log: silent()}
	if err := a.Handle(ctx, bodies(
		`{"cluster":"a","tasks":["`+id1+`"]}`, `{"cluster":"b"}`, `{"cluster":"a","instance":"`+id2+`"}`,
		`{"cluster":"a","tasks":["`+id2+`"]}`, `{"cluster":"a","instance":"`+id1+`"}`)); err != nil {
		t.Fatal(err)
	}
	want := []control.Kick{{Cluster: "a", Tasks: []string{id1, id2}, Instance: id2, Others: []string{id1}}, {Cluster: "b"}}
	if !reflect.DeepEqual(p.kicks, want) {
		t.Fatalf("passes %+v", p.kicks)
	}
}

func TestAdmission_NeverFailsItsBatch(t *testing.T) {
	for name, do := range map[string]func() error{
		"an error": func() error { return errors.New("busy") },
		"a panic":  func() error { panic("bug") },
	} {
		p := &passes{do: do}
		for _, dead := range []*deadLetters{{}, {err: errors.New("busy too")}} {
			p.kicks = nil
			n := counts{}
			a := &event.Admission{Control: p, Dead: dead, DeadURL: "admission-dead.fifo", Metrics: n, Log: silent()}
			if err := a.Handle(ctx, bodies(`{"cluster":"a"}`, "garbage", `{"cluster":"b"}`)); err != nil || len(p.kicks) != 2 {
				t.Errorf("%s: %v after %d passes", name, err, len(p.kicks))
			}
			if n["UndecodableMessages"] != 1 || dead.err == nil && (len(dead.letters) != 1 || dead.letters[0].body != "garbage" || dead.letters[0].url != "admission-dead.fifo") {
				t.Errorf("%s: counted %v, put aside %+v", name, n, dead.letters)
			}
		}
	}
}

func TestKicks_AreReadStrictly(t *testing.T) {
	for name, body := range map[string]string{
		"garbage": "garbage", "empty": "", "a list": "[]", "another member": `{"cluster":"a","service":"s","more":1}`,
		"no cluster": `{"service":"s"}`, "a long cluster": `{"cluster":"` + strings.Repeat("a", 256) + `","service":"s"}`,
		"bad service": `{"cluster":"a","service":"s/x"}`, "bad task": `{"cluster":"a","service":"s","tasks":["x"]}`,
		"bad instance": `{"cluster":"a","service":"s","instance":"x"}`,
		"two":          `{"cluster":"a","service":"s"}{}`, "too many": `{"cluster":"a","service":"s","tasks":[` + strings.Repeat(`"`+id1+`",`, 10) + `"` + id1 + `"]}`,
		"too big": `{"cluster":"a","service":"s"` + strings.Repeat(" ", 9000) + `}`,
	} {
		n, p, dead := counts{}, &served{}, &deadLetters{}
		s := &event.Services{Control: p, Dead: dead, DeadURL: "services-dead", Metrics: n, Log: silent()}
		out, err := s.Handle(ctx, bodies(body, `{"cluster":"a","service":"s","tasks":["`+id1+`"]}`))
		if err != nil || len(out.BatchItemFailures) != 0 || n["UndecodableMessages"] != 1 || len(p.kicks) != 1 {
			t.Errorf("%s: %v %+v %v", name, err, out, n)
		}
		if len(dead.letters) != 1 || dead.letters[0].body != body || dead.letters[0].url != "services-dead" || dead.letters[0].about["reason"] == "" {
			t.Errorf("%s: put aside %+v", name, dead.letters)
		}
	}
}

type reaping struct {
	ticks    int
	states   []control.HostState
	warnings []control.Interruption
	hooks    []control.Hook
}

func (r *reaping) Tick(context.Context) error { r.ticks++; return nil }
func (r *reaping) IngestHostState(_ context.Context, h control.HostState) error {
	r.states = append(r.states, h)
	return nil
}

func (r *reaping) RaiseEpochs(_ context.Context, since time.Time) (*control.Raised, error) {
	return &control.Raised{Raised: since.Year()}, nil
}

func TestReaper_RaisesEpochsWhenAPersonSaysSinceWhen(t *testing.T) {
	r := &event.Reaper{Control: &reaping{}, Metrics: counts{}, Log: silent()}
	if out, err := r.Handle(ctx, events.CloudWatchEvent{Source: "longshore.restore", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}); err != nil || out == nil || out.Raised != 2026 {
		t.Errorf("%+v, %v", out, err)
	}
	if out, err := r.Handle(ctx, events.CloudWatchEvent{Source: "longshore.restore"}); err == nil || out != nil {
		t.Errorf("without a time: %+v", out)
	}
}

func TestReaper_TicksByTheMinuteAndHearsOfHosts(t *testing.T) {
	c, n := &reaping{}, counts{}
	r := &event.Reaper{Control: c, Metrics: n, Log: silent()}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	host := func(detail string) events.CloudWatchEvent {
		return events.CloudWatchEvent{Source: "aws.ec2", DetailType: "EC2 Instance State-change Notification", Time: at, Detail: json.RawMessage(detail)}
	}
	for _, e := range []events.CloudWatchEvent{
		{Source: "aws.events", DetailType: "Scheduled Event"}, host(`{"instance-id":"i-1","state":"terminated"}`),
		host(`{"state":"terminated"}`), host(`[]`), {Source: "aws.ec2", DetailType: "other"},
	} {
		if out, err := r.Handle(ctx, e); err != nil || out != nil {
			t.Fatal(out, err)
		}
	}
	if c.ticks != 1 || !reflect.DeepEqual(c.states, []control.HostState{{EC2InstanceID: "i-1", State: "terminated", At: at}}) || n["UndecodableMessages"] != 3 {
		t.Fatalf("%d ticks, %+v, %v", c.ticks, c.states, n)
	}
}
