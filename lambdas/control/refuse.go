package control

import (
	"context"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// Bounds of what a ledger remembers of refusals.
const (
	refusalsKept = 16
	refusedPorts = 20 // of each protocol, in one
)

// IngestRefused takes in one refusal.
func (c *Control) IngestRefused(ctx context.Context, s Sender, m *wire.Refused) error {
	return c.IngestReports(ctx, []Told{{Sender: s, Refused: m}})[0]
}

// refused ends an attempt that never ran (design: Refusal): released, and back
// in the queue for another, unless it is to stop or was not to wait. A task
// that was seen running can not be refused: that it ran is known, so it is
// never queued again.
func (x *intake) refused(ctx context.Context, t *Task, m *wire.Refused) error {
	remember(x.ledger, refusalOf(t, m, x.now.Add(x.c.Setting.RefusalMemory)), x.now)
	x.c.Log.InfoContext(ctx, "task refused", logkey.Task, t.ID, logkey.Attempt, t.Attempt, logkey.Instance, x.in.ID, logkey.Reason, string(m.Code), logkey.Message, cut(m.Reason, 256))
	if t.DesiredStatus == task.DesiredRunning && !t.NoWait && t.LastStatus == task.Pending {
		requeue(t, x.ledger)
		t.WaitingReason = cut(string(m.Code), 64)
		x.queued = append(x.queued, t.ID)
		x.gaveRoom(t)
		return nil
	}
	e := ending{cause: task.RefusedCause, now: x.now, keepFor: x.c.Setting.StoppedTasksFor}
	if m.Reason != "" {
		e.reason = task.EndOf(task.RefusedCause).Reason + ": " + cut(m.Reason, maxReason)
	}
	if t.StopCause != "" {
		e.cause, e.reason = "", ""
	}
	endOpen(t, x.ledger, task.Ended, e)
	x.gaveRoom(t)
	return x.countDown(ctx, t)
}

// refusalOf is what the instance is not offered until then: the ports a stranger
// has there, else tasks of that shape.
func refusalOf(t *Task, m *wire.Refused, until time.Time) Refusal {
	if len(m.TCP)+len(m.UDP) > 0 {
		return Refusal{TCP: first(distinct(m.TCP), refusedPorts), UDP: first(distinct(m.UDP), refusedPorts), Until: until}
	}
	return Refusal{Shape: ShapeOf(t), Until: until}
}

// remember notes a refusal in place of an equal one, drops those that have run
// out, and keeps the newest.
func remember(l *Ledger, r Refusal, now time.Time) {
	all := slices.DeleteFunc(slices.Clone(l.Refusals), func(o Refusal) bool {
		return !o.Until.After(now) || o.Shape == r.Shape && slices.Equal(o.TCP, r.TCP) && slices.Equal(o.UDP, r.UDP)
	})
	all = append(all, r)
	l.Refusals = all[max(0, len(all)-refusalsKept):]
}
