package control

import (
	"context"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/wire"
)

// fence answers a beat of an older epoch: what has been closed, confirmed by
// strong reads, and the epoch to echo. A deregistered instance is told to end,
// once all that it had is closed and so named here.
func (v *visit) fence(ctx context.Context) {
	f := &wire.Fence{
		Header: wire.Header{Instance: v.in.ID}, Incarnation: v.m.Incarnation, Epoch: v.ledger.Epoch,
		Terminal: v.ledger.Status == Inactive && v.ledger.Open == 0, Reason: cut(v.lease.StageReason, maxReason),
	}
	if f.Terminal { // an agent takes no fence below its own epoch
		f.Epoch = max(f.Epoch, v.m.Epoch)
	}
	tasks := listedIn(v.m.Inventory)
	if err := load(ctx, v.c.Store, tasks.all); err != nil {
		v.c.Log.WarnContext(ctx, "fence not sent; the next beat asks again", logkey.Instance, v.in.ID, logkey.Error, err)
		return
	}
	for _, e := range v.m.Inventory {
		if e.Phase != wire.PhaseEnded && closed(tasks.by[e.Task], e, v.ledger) {
			f.Closed = append(f.Closed, wire.Attempt{Task: e.Task, Attempt: e.Attempt})
		}
	}
	v.c.send(ctx, f)
}

// closed says whether an attempt that an instance lists as not ended is known to
// have ended here. Open items never expire, so a missing one of an epoch that
// this same ledger saw end was closed (I12). So is one that knows less of the task
// than the machine does.
func closed(t *Task, e wire.Entry, l *Ledger) bool {
	if t.Version == 0 || behind(t, e) {
		return l.SinceEpoch <= e.Epoch && e.Epoch < l.Epoch
	}
	return !(t.LastStatus.Open() && t.Instance == l.ID && t.Attempt == e.Attempt)
}

// listed are the tasks an inventory names, each once.
type listed struct {
	all []*Task
	by  map[string]*Task
}

func listedIn(inventory []wire.Entry) listed {
	out := listed{by: map[string]*Task{}}
	for _, e := range inventory {
		if out.by[e.Task] == nil {
			t := &Task{ID: e.Task}
			out.all, out.by[e.Task] = append(out.all, t), t
		}
	}
	return out
}
