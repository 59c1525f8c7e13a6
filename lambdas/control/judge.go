package control

import (
	"context"
	"fmt"
	"time"

	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// Bounds of what one beat makes the control plane do; the next beat goes on.
const (
	judgePerCommit = 40
	judgeWrites    = 400
	judgeCommands  = 500
	judgeNamed     = 10 // unknown containers in the log; the rest are a number
)

// verdict is what an inventory says about a task that is open here.
type verdict string

const (
	fine     verdict = ""
	vanish   verdict = "vanish"   // write: absent, and known not to come
	adoptIt  verdict = "adopt"    // write: listed, of an older epoch, decided by this inventory
	takeIt   verdict = "take"     // write: listed, and waits here since the tables were restored
	showIt   verdict = "show"     // write: seen for the first time, or kept and back
	redo     verdict = "redo"     // write: its assign or stop is sent again
	older    verdict = "older"    // left to its closing (I8)
	onItsWay verdict = "onItsWay" // a later inventory tells: its assign has just been sent, or its report is newer than this one
)

// answer is what an entry of an inventory is answered with.
type answer string

const (
	noAnswer answer = ""
	resyncIt answer = "resync"  // its snapshot is asked for again
	stopIt   answer = "stop"    // it is known to have ended, and runs
	ackIt    answer = "ack"     // its end is known, with all that its agent could say of it
	unknown  answer = "unknown" // nobody here knows it: kept, and alarms (I12)
	leaveIt  answer = "leave"   // it is left to its closing (I8)
)

// judgement compares one inventory with the tables.
type judgement struct {
	*visit
	entries map[wire.Attempt]wire.Entry
	writes  int

	commands []wire.Message
	resync   []string
	again    []*Task // to be assigned again
	services []Kick
	room     bool
	running  int  // listed as not ended, and known to have ended
	unknowns int  // nobody here knows
	hidden   int  // of these, what may be a task that waits here
	older    int  // listed as not ended, of an older epoch: left to their closing
	settled  bool // nothing is left to be done about this inventory
}

// judge compares the beat's inventory with the tables (design: Heartbeat). Every
// write is conditional on the instance's epoch and incarnation being the beat's;
// an index only finds candidates, each is read strongly.
func (v *visit) judge(ctx context.Context) error {
	j := &judgement{visit: v, entries: map[wire.Attempt]wire.Entry{}, settled: true}
	for _, e := range v.m.Inventory {
		j.entries[wire.Attempt{Task: e.Task, Attempt: e.Attempt}] = e
	}
	tasks, err := j.candidates(ctx)
	if err != nil {
		return err
	}
	if err := j.tables(ctx, tasks); err != nil {
		return err
	}
	if j.over {
		return nil
	}
	j.inventory(tasks)
	j.say(ctx)
	return j.finish(ctx)
}

// candidates are the tasks the inventory names and those the index shows as open
// on the instance, read strongly.
func (j *judgement) candidates(ctx context.Context) (listed, error) {
	out := listedIn(j.m.Inventory)
	for after := ""; ; {
		ids, next, err := j.c.Store.TaskIDs(ctx, TaskQuery{OnInstance: j.in.ID}, Page{After: after})
		if err != nil {
			return out, fmt.Errorf("list the open tasks of instance %s: %w", j.in.ID, err)
		}
		for _, id := range ids {
			if out.by[id] == nil {
				t := &Task{ID: id}
				out.all, out.by[id] = append(out.all, t), t
			}
		}
		if after = next; next == "" {
			break
		}
	}
	if err := load(ctx, j.c.Store, out.all); err != nil {
		return out, fmt.Errorf("load the tasks of instance %s: %w", j.in.ID, err)
	}
	return out, nil
}

// tables goes through the tasks that are open here, and writes what the
// inventory decides about them, some at a time.
func (j *judgement) tables(ctx context.Context, tasks listed) error {
	var chunk []*Task
	flush := func() error {
		if len(chunk) == 0 {
			return nil
		}
		err := j.write(ctx, chunk)
		chunk = nil
		return err
	}
	for _, t := range tasks.all {
		switch j.of(t) {
		case vanish, adoptIt, takeIt, showIt, redo:
			if j.writes++; j.writes > judgeWrites || outOfTime(ctx) {
				j.settled = false
				continue
			}
			if chunk = append(chunk, t); len(chunk) == judgePerCommit {
				if err := flush(); err != nil || j.over {
					return err
				}
			}
		case older, onItsWay:
			j.settled = false
		case fine:
		}
	}
	return flush()
}

// of is the verdict on a task; one that is not open here is fine.
func (j *judgement) of(t *Task) verdict {
	l := j.ledger
	if e, anew := j.listedAnew(t); anew {
		if l.EndCause != "" && l.Stale > 0 || crowded(t, l, e) { // what was there before is ended first
			return onItsWay
		}
		return takeIt
	}
	if t.Version == 0 || !t.LastStatus.Open() || t.Instance != l.ID {
		return fine
	}
	_, isListed := j.entries[wire.Attempt{Task: t.ID, Attempt: t.Attempt}]
	switch {
	case isListed && t.Epoch < l.Epoch && l.Cause == IncarnationCause:
		return adoptIt
	case isListed && t.Epoch < l.Epoch:
		return older
	case isListed && (!t.Shown || !t.Kept.IsZero() && j.back()):
		return showIt
	case isListed:
		return fine
	case t.Epoch < l.Epoch && l.Cause == IncarnationCause, t.Incarnation != j.m.Incarnation:
		return vanish // it was with a journal that is gone
	case t.Epoch < l.Epoch:
		return older
	case t.LastStatus != task.Pending:
		if j.m.N > t.N {
			return vanish
		}
		return onItsWay // the inventory is older than what was reported: the next one tells
	case t.DispatchAt.After(j.now) && t.Kept.IsZero(), !j.back(): // a kept one's assign is of an older epoch
		return onItsWay
	}
	return redo
}

// back says whether the instance has returned if it was LOST: one that beats with a
// broken engine has not, and what is kept there stays kept.
func (j *judgement) back() bool { return j.lease.Stage != StageLost }

// write commits the verdicts on some tasks, read again, in one transaction that
// holds only while the instance is in the beat's epoch and incarnation.
func (j *judgement) write(ctx context.Context, chunk []*Task) error {
	var done judgement
	err := j.c.decide(ctx, "judge the inventory of instance "+j.in.ID, func() ([]Write, error) {
		done = judgement{visit: j.visit, entries: j.entries}
		in, ledger := &Instance{ID: j.in.ID}, &Ledger{ID: j.in.ID}
		if err := j.c.Store.Load(ctx, append(recordsOf(chunk), in, ledger)...); err != nil {
			return nil, err
		}
		j.in, j.ledger = in, ledger
		if in.Incarnation != j.m.Incarnation || ledger.Epoch != j.m.Epoch || ledger.Version == 0 {
			j.over = true // raised meanwhile: a later beat decides
			return nil, errGiveUp
		}
		return done.apply(ctx, chunk)
	})
	if err != nil {
		return err
	}
	j.commands = append(j.commands, done.commands...)
	j.again = append(j.again, done.again...)
	j.services = mergeKicks(j.services, done.services)
	j.room = j.room || done.room
	if len(done.again)+len(done.commands) > 0 {
		j.settled = false
	}
	return nil
}

func mergeKicks(all, more []Kick) []Kick {
	for _, k := range more {
		for _, id := range k.Tasks {
			all = addTo(all, &Task{ID: id, Cluster: k.Cluster, Service: k.Service})
		}
	}
	return all
}

// apply makes the changes of one transaction.
func (j *judgement) apply(ctx context.Context, chunk []*Task) ([]Write, error) {
	w, lives := &changes{}, lives{}
	for _, t := range chunk {
		switch j.of(t) {
		case vanish:
			j.vanish(t)
			if err := lives.down(ctx, j.c.Store, t); err != nil {
				return nil, err
			}
			w.put(t, j.ledger)
		case adoptIt:
			adopt(t, j.ledger, j.m.Incarnation, j.m.N)
			t.Shown = true
			w.put(t, j.ledger)
		case takeIt:
			e, _ := j.listedAnew(t)
			takeIn(t, j.ledger, e, j.m.Incarnation, j.now)
			w.put(t, j.ledger)
		case showIt:
			if t.Shown = true; j.back() {
				t.Kept = time.Time{}
			}
			w.put(t)
		case redo:
			t.Dispatched++
			t.DispatchAt, t.Kept = j.now.Add(dispatchWait(t.Dispatched)), time.Time{} // it is back, without having had it
			w.put(t)
			if t.DesiredStatus == task.DesiredStopped {
				j.commands = append(j.commands, stopMessage(t))
			} else {
				j.again = append(j.again, t)
			}
		case fine, older, onItsWay: // another has written it meanwhile
		}
	}
	if len(w.order) == 0 {
		return nil, errGiveUp
	}
	w.check(j.in, j.ledger)
	return append(w.all(), lives.writes()...), nil
}

// vanish ends a task that its instance no longer has.
func (j *judgement) vanish(t *Task) {
	e := ending{cause: task.VanishedCause, now: j.now, keepFor: j.c.Setting.StoppedTasksFor}
	if t.StopCause != "" { // it was to stop, and it has
		e.cause = ""
	}
	endOpen(t, j.ledger, task.Vanished, e)
	j.room = true
	if t.Service != "" {
		j.services = addTo(j.services, t)
	}
	j.c.Log.Warn("task vanished", logkey.Task, t.ID, logkey.Attempt, t.Attempt, logkey.Instance, j.in.ID)
}

// say sends what the judgement came to.
func (j *judgement) say(ctx context.Context) {
	if len(j.again) > 0 {
		assigns, err := j.c.assignments(ctx, map[string]*Definition{}, j.again...)
		if err != nil {
			j.c.Log.ErrorContext(ctx, "assign not made", logkey.Instance, j.in.ID, logkey.Error, err)
		}
		j.commands = append(j.commands, assigns...)
	}
	if len(j.commands) > judgeCommands {
		j.commands, j.settled = j.commands[:judgeCommands], false
	}
	if len(j.resync) > 0 {
		j.commands = append(j.commands, &wire.Resync{Header: wire.Header{Instance: j.in.ID}, Tasks: j.resync})
	}
	j.c.send(ctx, j.commands...)
	if j.room {
		j.c.kick(ctx, Kick{Cluster: j.ledger.Cluster, Instance: j.in.ID})
	}
	for _, k := range j.services {
		j.c.kickServices(ctx, k)
	}
	if j.unknowns > 0 {
		j.c.Metrics.Count(countUnknownContainers, float64(j.unknowns))
	}
}

// finish notes that the inventory was applied, and if it was clean makes the
// instance schedulable (I7).
func (j *judgement) finish(ctx context.Context) error {
	connected := false
	err := j.c.decide(ctx, "finish the inventory of instance "+j.in.ID, func() ([]Write, error) {
		connected = false
		if err := j.load(ctx); err != nil {
			return nil, err
		}
		if j.lease.Version == 0 || j.in.Incarnation != j.m.Incarnation || j.ledger.Epoch != j.m.Epoch || j.lease.N > j.m.N {
			return nil, errGiveUp // raised, or a later inventory was applied meanwhile
		}
		w := &changes{}
		connected = j.stage(w)
		lease := j.lease
		lease.N = j.m.N
		if lease.Inventory = ""; j.settled && j.unknowns == 0 {
			lease.Inventory = inventoryHash(j.m.Inventory)
		}
		w.put(lease)
		return w.all(), nil
	})
	if err == nil && connected {
		j.c.Log.InfoContext(ctx, "instance takes work", logkey.Instance, j.in.ID, logkey.Cluster, j.ledger.Cluster, logkey.Epoch, j.ledger.Epoch)
		j.c.kick(ctx, Kick{Cluster: j.ledger.Cluster, Instance: j.in.ID})
		j.c.kickServices(ctx, Kick{Cluster: j.ledger.Cluster}) // a DAEMON is to be there, too
	}
	return err
}

// stage is where the whole inventory leaves the instance.
func (j *judgement) stage(w *changes) (connected bool) {
	lease, l := j.lease, j.ledger
	// What this inventory left to its closing may be closed by now, and still runs.
	clean := j.running == 0 && j.older == 0 && j.unknowns == 0 && l.Stale == 0 && lease.Impaired.IsZero() && l.Status != Inactive && lease.Alternations < clonesReturn && !lease.cordoned(j.now)
	switch {
	case clean && (lease.Stage == StageFenced || lease.Stage == StageSuspect):
		setStage(lease, StageConnected, "", j.now)
		l.Connected, l.Cause, l.EndCause, l.KeptUntil = true, NoCause, "", time.Time{}
		w.put(l)
		w.check(j.in)
		return true
	case j.unknowns > 0 && lease.Stage != StageLost:
		reason := fmt.Sprintf("UNKNOWN_CONTAINERS: %d that nobody here knows", j.unknowns)
		heard := l.unheard() && j.hidden == 0 && j.older == 0 && l.Stale == 0
		if heard { // it has shown what it runs, and nothing of it waits here
			l.Cause = NoCause
		}
		if l.Connected || heard {
			l.Connected = false
			w.put(l)
			w.check(j.in)
		}
		setStage(lease, StageFenced, reason, j.now)
	case lease.Stage == StageFenced && j.running > 0:
		setStage(lease, StageFenced, fmt.Sprintf("RETURNED: %d closed tasks still run there", j.running), j.now)
	case lease.Stage == StageFenced && (l.Stale > 0 || j.older > 0):
		setStage(lease, StageFenced, fmt.Sprintf("RETURNED: %d tasks of an older epoch are not decided yet", max(l.Stale, j.older)), j.now)
	}
	return false
}
