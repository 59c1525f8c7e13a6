package supervise

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
)

// The event of a removal comes while the start is under way that then fails for it:
// the container never ran, and is made again.
func TestDid_AStartThatFindsNothingIsMadeAgainThoughTheRemovalWasTold(t *testing.T) {
	tk := newTask()
	now := start
	var do []Action
	for range 3 { // pull, create, start
		tk, do, _ = Plan(tk, now)
		if do[0].Verb == Start {
			break
		}
		tk = Did(tk, Result{Action: do[0], Text: "c1"}, now)
	}
	tk = Observe(tk, Seen{Container: "app", RuntimeID: "c1", Gone: true}, now)
	tk = Did(tk, Result{Action: do[0], Err: fault.New(fault.NotFound, "no container"), Seen: &Seen{Container: "app", Gone: true}}, now)
	tk, do, _ = Plan(tk, now.Add(time.Minute))
	if len(do) != 1 || do[0].Verb != Create {
		t.Errorf("%s", show(tk, do))
	}
}
