package control_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/wire"
)

// hosts puts the machines of a walk into an Auto Scaling group. What waits for a
// drain waits for minutes, so that all settles.
func (w *walk) hosts() {
	var names []string
	for _, m := range w.machines {
		names = append(names, m.Name)
	}
	w.group = controltest.NewGroups(w.Memory.Calls, names...)
	w.Groups = w.group
	w.Setting.AutoScalingGroups, w.Setting.SetInstanceHealth, w.Setting.DrainDeadline = []string{"web"}, true, 5*time.Minute
}

// host is a word of the end of a machine's host, or its being taken back.
func (w *walk) host(m *peer) {
	w.harm()
	defer w.Memory.Calls.Reset()
	switch n := w.random.IntN(8); {
	case n < 2 && m.notice == nil:
		m.notice = &wire.Notice{Kind: wire.NoticeSpot, At: w.Clock.Now().Add(2 * time.Minute)}
		w.say("%s sees a notice", m.Name)
	case n < 4:
		m.notice = nil
		w.say("%s sees nothing", m.Name)
	case n < 5:
		err := w.IngestInterruption(ctx, control.Interruption{EC2InstanceID: m.Name, At: w.Clock.Now()})
		w.say("EC2 warns of %s: %v", m.Name, err)
	case n < 6:
		w.Clock.Move(time.Second) // no two begin at once
		h := control.Hook{Group: "web", Name: "longshore", Token: fmt.Sprint("t", w.NewID()), EC2: m.Name, At: w.Clock.Now()}
		w.group.Hold(h)
		w.held = append(w.held, h)
		w.say("the group holds %s for %s: %v", h.Token, m.Name, w.IngestTermination(ctx, h))
	case n < 7 && len(w.held) > 0: // an event comes twice, or late
		h := w.held[w.random.IntN(len(w.held))]
		w.say("%s again: %v", h.Token, w.IngestTermination(ctx, h))
	case n < 8 && len(w.held) > 0:
		h := w.held[w.random.IntN(len(w.held))]
		w.group.TimeOut(h.Token)
		w.say("%s times out", h.Token)
	}
}

// goOn takes back what machines see, and delivers events whose handlers were killed.
func (w *walk) goOn() {
	for _, m := range w.machines {
		m.notice = nil
	}
	for _, h := range w.held {
		if err := w.IngestTermination(ctx, h); err != nil {
			w.fail("termination %s: %v", h.Token, err)
		}
	}
}

// settledHosts: nobody waits for an answer, and what goes on is used again.
func (w *walk) settledHosts() {
	if w.group == nil {
		return
	}
	if left := w.group.Waiting(); len(left) > 0 {
		w.fail("QUIET terminations wait for ever: %v", left)
	}
	for _, m := range w.machines {
		if l := w.Ledger(m.ID); m.Host && (l.Status != control.Active || l.Leaving != nil || w.Lease(m.ID).Draining) {
			w.fail("QUIET %s goes on and is %s for %+v", m.Name, l.Status, l.Leaving)
		}
	}
}

func TestWalk_HostsThatAreAboutToGoAreDrainedAnsweredForAndUsedAgain(t *testing.T) {
	answered := 0
	for n := range uint64(max(2, *walks/2)) {
		t.Run(fmt.Sprint("seed ", *walkFrom+n), func(t *testing.T) {
			w := newWalk(t, *walkFrom+n)
			w.hosts()
			for range walkSteps {
				w.step()
				w.check()
				if t.Failed() {
					w.fail("a commit broke an invariant")
				}
			}
			w.settle()
			w.settled()
			answered += len(w.group.Continued())
		})
	}
	if answered == 0 {
		t.Error("no walk met a termination that was answered")
	}
}
