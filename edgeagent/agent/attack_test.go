package agent_test

import (
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/wire"
)

// Who may send to an agent's command queue is IAM's to say. What comes there all the
// same, for another instance or another life, commands nothing.
func TestAttack_CommandsForAnotherAreDroppedAndEndNothing(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		r.put(r.assign(1, 1))
		r.pass(time.Minute)
		r.starts(1, 1, 1)
		other := wire.Header{Instance: strings.Repeat("f", 32)}
		mine := wire.Header{Instance: instance}
		stray, stop, ack := r.assign(2, 1), r.stop(1, 1), &wire.Ack{Header: other, Task: r.assign(1, 1).Task, Attempt: 1}
		stray.Header, stop.Header = other, other
		epoch := r.state().Meta.Epoch
		r.put(stray, stop, ack,
			&wire.Fence{Header: other, Incarnation: "first", Epoch: epoch + 1000, Closed: []wire.Attempt{{Task: stop.Task, Attempt: 1}}, Terminal: true},
			&wire.Fence{Header: mine, Incarnation: "another", Epoch: epoch + 1000, Closed: []wire.Attempt{{Task: stop.Task, Attempt: 1}}, Terminal: true},
			&wire.Welcome{Header: mine, Incarnation: "another", ContainerInstanceARN: "x", Cluster: "x", Epoch: epoch + 1000, HeartbeatEveryS: 1},
		)
		r.pass(10 * time.Minute)
		r.starts(2, 1, 0)
		if got := r.inventory(); got["a001/1"] != wire.PhaseRunning || len(got) != 1 {
			t.Errorf("the inventory is %v", got)
		}
		if now := r.state().Meta.Epoch; now != epoch {
			t.Errorf("the epoch went from %d to %d", epoch, now)
		}
		if n := r.inbox.Len(); n != 0 {
			t.Errorf("%d commands are left in the queue", n)
		}
		r.down()
	})
}
