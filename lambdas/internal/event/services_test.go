package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/internal/event"
)

// served is control's Serve, which fails or panics for services so named.
type served struct{ kicks []control.Kick }

func (s *served) Serve(_ context.Context, k control.Kick) error {
	s.kicks = append(s.kicks, k)
	switch k.Service {
	case "fails":
		return errors.New("busy")
	case "panics":
		panic("bug")
	}
	return nil
}

func TestServices_ServeOnceForAllKicksOfAService(t *testing.T) {
	p := &served{}
	s := &event.Services{Control: p, Dead: &deadLetters{}, Metrics: counts{}, Log: silent()}
	out, err := s.Handle(ctx, bodies(
		`{"cluster":"a","service":"s","tasks":["`+id1+`"]}`, `{"cluster":"a"}`, `{"cluster":"b","service":"s"}`,
		`{"cluster":"a","service":"s","tasks":["`+id2+`"]}`, `{"cluster":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []control.Kick{{Cluster: "a", Service: "s", Tasks: []string{id1, id2}}, {Cluster: "a"}, {Cluster: "b", Service: "s"}}
	if !reflect.DeepEqual(p.kicks, want) {
		t.Errorf("served %+v", p.kicks)
	}
	if b, _ := json.Marshal(out); string(b) != `{"batchItemFailures":[]}` {
		t.Errorf("answer %s", b)
	}
}

func TestServices_OnlyTheKicksOfWhatFailedComeAgain(t *testing.T) {
	p, n := &served{}, counts{}
	s := &event.Services{Control: p, Dead: &deadLetters{err: errors.New("busy")}, Metrics: n, Log: silent()}
	out, err := s.Handle(ctx, bodies(
		`{"cluster":"a","service":"fails"}`, `{"cluster":"a","service":"s"}`, "garbage", `{"cluster":"a","service":"panics"}`, `{"cluster":"a","service":"fails"}`))
	if err != nil || len(p.kicks) != 3 {
		t.Fatalf("%v, served %+v", err, p.kicks)
	}
	var again []string
	for _, f := range out.BatchItemFailures {
		again = append(again, f.ItemIdentifier)
	}
	if !reflect.DeepEqual(again, []string{"c", "a", "e", "d"}) { // garbage could not be put aside
		t.Errorf("to come again: %v", again)
	}
}
