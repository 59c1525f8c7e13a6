package control

import (
	"slices"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// inventory goes through the entries, and answers each that shows more than is
// known here, or is not open here.
func (j *judgement) inventory(tasks listed) {
	for _, e := range j.m.Inventory {
		t := tasks.by[e.Task]
		switch j.entry(t, e) {
		case resyncIt:
			j.settled = false
			if !slices.Contains(j.resync, t.ID) {
				j.resync = append(j.resync, t.ID)
			}
		case ackIt:
			j.settled = false
			j.commands = append(j.commands, ackMessage(j.in.ID, e.Task, e.Attempt))
		case stopIt:
			j.settled = false
			j.running++
			j.commands = append(j.commands, &wire.Stop{Header: wire.Header{Instance: j.in.ID}, Task: e.Task, Attempt: e.Attempt, Reason: t.StoppedReason})
		case unknown:
			if t.Version > 0 && t.LastStatus == task.Provisioning {
				j.hidden++
			}
			if j.unknowns++; j.unknowns > judgeNamed {
				continue
			}
			j.c.Log.Error("container unknown here: it is kept, and its instance fenced", logkey.Task, e.Task, logkey.Attempt, e.Attempt, logkey.Epoch, e.Epoch, logkey.Instance, j.in.ID)
		case leaveIt:
			j.older++
		case noAnswer:
		}
	}
	if j.unknowns > judgeNamed {
		j.c.Log.Error("more containers are unknown here than are named", logkey.Count, j.unknowns, logkey.Instance, j.in.ID)
	}
	j.unknowns += j.m.UnknownLabels
	j.hidden += j.m.UnknownLabels
}

// entry is the answer to one entry of the inventory, after its task was judged.
func (j *judgement) entry(t *Task, e wire.Entry) answer {
	here := t.Version > 0 && t.LastStatus.Open() && t.Instance == j.ledger.ID && t.Attempt == e.Attempt
	switch {
	case takeable(t, e, j.ledger): // what it has there is not free here yet
		return leaveIt
	case here && t.Epoch < j.ledger.Epoch && e.Phase != wire.PhaseEnded:
		return leaveIt
	case here && t.Epoch < j.ledger.Epoch:
		return noAnswer // its report ends it, or its closing (I8)
	case here && (e.Phase == wire.PhaseEnded || e.Phase == wire.PhaseRunning && t.LastStatus == task.Pending):
		return resyncIt // an inventory never changes a status
	case here:
		return noAnswer
	case e.Phase == wire.PhaseEnded && untold(t, e, j.ledger):
		return resyncIt // acknowledged by its report: what it came to would be forgotten else
	case e.Phase == wire.PhaseEnded:
		return ackIt
	case closed(t, e, j.ledger):
		return stopIt
	}
	return unknown
}

// untold says whether a task was ended here before its agent told of its end, so
// that only a report can say what its containers came to (late).
func untold(t *Task, e wire.Entry, l *Ledger) bool {
	return t.Version > 0 && t.LastStatus == task.Stopped && t.Instance == l.ID && t.Attempt == e.Attempt && t.ExecStoppedAt.IsZero()
}
