package agent_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent/agenttest"
	"github.com/longshore-run/longshore/shared/wire"
)

// beats are the heartbeats sent so far.
func (r *rig) beats() (all []*wire.Heartbeat) {
	for _, m := range r.outbox.Sent() {
		if m, ok := m.(*wire.Heartbeat); ok {
			all = append(all, m)
		}
	}
	return all
}

// last is the newest heartbeat's notice.
func (r *rig) last() *wire.Notice {
	r.t.Helper()
	all := r.beats()
	if len(all) == 0 {
		r.t.Fatal("no heartbeat was sent")
	}
	return all[len(all)-1].Notice
}

func TestNotice_IsInTheNextBeatWhichIsAtOnceAndGoesWithIt(t *testing.T) {
	bubble(t, func(r *rig) {
		h := &agenttest.Host{}
		r.host = h
		r.up()
		r.pass(10 * time.Second)
		if r.last() != nil {
			t.Fatalf("%+v", r.last())
		}
		n := &wire.Notice{Kind: wire.NoticeSpot, Action: "terminate", At: r.agent.Now().Add(2 * time.Minute)}
		h.Say(n)
		r.pass(5 * time.Second)
		if got := r.last(); got == nil || got.Kind != n.Kind || got.Action != n.Action || !got.At.Equal(n.At) {
			t.Fatalf("five seconds later the last beat has %+v", got)
		}
		if l := r.agent.Look(); l.Notice == nil || !l.Notice.At.Equal(n.At) {
			t.Errorf("it shows %+v", l.Notice)
		}
		before := len(r.beats())
		r.pass(30 * time.Second) // the same notice again is no news
		if now := len(r.beats()); now != before {
			t.Errorf("%d beats for one notice", now-before)
		}
		r.pass(time.Minute)
		if got := r.last(); got == nil || len(r.beats()) == before {
			t.Errorf("an ordinary beat is without it: %+v", got)
		}
		h.Say(nil)
		r.pass(5 * time.Second)
		if r.last() != nil {
			t.Errorf("%+v", r.last())
		}
		r.down()
	})
}

func TestNotice_AHostThatDoesNotAnswerSaysNothingNew(t *testing.T) {
	for _, hang := range []bool{false, true} {
		bubble(t, func(r *rig) {
			h := &agenttest.Host{}
			h.Say(&wire.Notice{Kind: wire.NoticeAutoScaling, Action: "Terminated"})
			r.host = h
			r.up()
			r.pass(10 * time.Second)
			h.Down(true, hang)
			r.pass(3 * time.Minute)
			if r.last() == nil {
				t.Error("silence was taken for the end of the notice")
			}
			asked := h.Asked()
			r.pass(time.Minute)
			if n := h.Asked() - asked; n < 5 || n > 12 {
				t.Errorf("asked %d times in a minute", n)
			}
			r.down()
		})
	}
}

// A new process knows nothing yet: its first beat waits for the host's first word,
// or it would undo the drain for a moment. But not for ever.
func TestNotice_TheFirstBeatOfANewProcessHasIt(t *testing.T) {
	bubble(t, func(r *rig) {
		h := &agenttest.Host{}
		h.Say(&wire.Notice{Kind: wire.NoticeSpot, Action: "stop"})
		h.Slow(3 * time.Second)
		r.host = h
		r.up()
		r.pass(time.Minute)
		r.kill()
		before := len(r.beats())
		r.up()
		r.pass(time.Minute)
		all := r.beats()[before:]
		if len(all) == 0 {
			t.Fatal("no beat")
		}
		for _, b := range all {
			if b.Notice == nil {
				t.Errorf("a beat without it: %+v", b)
			}
		}
		r.kill()
		h.Down(true, true)
		before = len(r.beats())
		r.up()
		r.pass(time.Minute)
		if len(r.beats()) == before {
			t.Error("a host that never answers keeps the agent from its heartbeats")
		}
		r.down()
	})
}
