package control

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// reportsPerCommit bounds one transaction: each report may write a task and a
// live count, beside the ledger and the instance.
const reportsPerCommit = 40

// kickTasks is how many tasks a kick may name.
const kickTasks = 10

// Told is a report or a refusal, and who sent it: exactly one of both is set.
type Told struct {
	Sender  Sender
	Report  *wire.Report
	Refused *wire.Refused
}

func (t Told) instance() string {
	if t.Report != nil {
		return t.Report.Instance
	}
	return t.Refused.Instance
}

func (t Told) attempt() (id string, attempt int) {
	if t.Report != nil {
		return t.Report.Task, t.Report.Attempt
	}
	return t.Refused.Task, t.Refused.Attempt
}

// end says whether the message tells of an attempt's end: those are acknowledged.
func (t Told) end() bool { return t.Refused != nil || t.Report.Status == task.Stopped }

// IngestReport takes in one report.
func (c *Control) IngestReport(ctx context.Context, s Sender, m *wire.Report) error {
	return c.IngestReports(ctx, []Told{{Sender: s, Report: m}})[0]
}

// IngestReports takes in reports and refusals: those of one instance in one
// transaction, their order does not matter (I5). The errors are those of the
// messages at the same place: what has one is to be delivered again.
func (c *Control) IngestReports(ctx context.Context, batch []Told) []error {
	errs := make([]error, len(batch))
	groups := map[string][]int{}
	var order []string
	for i, t := range batch {
		if !c.vouched(ctx, t.Sender, t.instance()) {
			continue
		}
		if groups[t.instance()] == nil {
			order = append(order, t.instance())
		}
		groups[t.instance()] = append(groups[t.instance()], i)
	}
	woken := wakings{}
	for _, instance := range order {
		for chunk := range slices.Chunk(groups[instance], reportsPerCommit) {
			if outOfTime(ctx) { // what is done need not be done again
				for _, at := range chunk {
					errs[at] = fault.New(fault.Unavailable, "no time left to take in reports of instance %s", instance)
				}
				continue
			}
			c.ingestChunk(ctx, instance, batch, chunk, errs, woken)
		}
	}
	c.wakeAdmission(ctx, woken)
	return errs
}

// wakings are the kicks of admission that a batch of reports comes to, by cluster.
type wakings map[string][]Kick

// wakeAdmission kicks the clusters in which there is room again, if anything waits
// there: asked after the last commit, the index knows of whatever waited before
// it, or is made up for by the sweep as any kick that is lost. Mostly nothing
// waits, and a look costs less than a kick and the pass that it wakes.
func (c *Control) wakeAdmission(ctx context.Context, woken wakings) {
	for _, cluster := range slices.Sorted(maps.Keys(woken)) {
		kicks := woken[cluster]
		named := slices.ContainsFunc(kicks, func(k Kick) bool { return len(k.Tasks) > 0 })
		if !named {
			ids, _, err := c.Store.TaskIDs(ctx, TaskQuery{Cluster: cluster, Waiting: ForRoom}, Page{Limit: 1})
			if err != nil {
				c.Log.WarnContext(ctx, "not known whether anything waits: admission is woken", logkey.Cluster, cluster, logkey.Error, err)
			} else if len(ids) == 0 {
				continue
			}
		}
		for _, k := range kicks {
			c.kick(ctx, k)
		}
	}
}

// ingestChunk takes in some messages of one instance together; if that fails for
// any reason but the store's being busy, each by itself, so that one that can
// not be judged holds up no other.
func (c *Control) ingestChunk(ctx context.Context, instance string, batch []Told, chunk []int, errs []error, woken wakings) {
	told := make([]Told, len(chunk))
	for i, at := range chunk {
		told[i] = batch[at]
	}
	err := c.ingest(ctx, instance, told, woken)
	if err != nil && len(chunk) > 1 && !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.Conflict) {
		for _, at := range chunk {
			errs[at] = c.ingest(ctx, instance, batch[at:at+1], woken)
		}
		return
	}
	for _, at := range chunk {
		errs[at] = err
	}
}

// intake is one transaction's view: what an instance's messages meet.
type intake struct {
	c      *Control
	now    time.Time
	in     *Instance
	ledger *Ledger
	tasks  map[string]*Task
	lives  lives
	w      changes
	// What is to be done once it is written.
	room     bool
	queued   []string // refused, and waiting again
	stops    []*Task
	services []Kick
}

func (c *Control) ingest(ctx context.Context, instance string, told []Told, woken wakings) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fault.New(fault.Internal, "take in reports of instance %s: %v", instance, p)
			c.Log.ErrorContext(ctx, "report can not be judged", logkey.Instance, instance, logkey.Error, p, "stack", string(debug.Stack()))
		}
	}()
	var x *intake
	err = c.decide(ctx, "take in reports of instance "+instance, func() ([]Write, error) {
		x = &intake{c: c, now: c.Now(), in: &Instance{ID: instance}, ledger: &Ledger{ID: instance}, tasks: map[string]*Task{}, lives: lives{}}
		if err := x.load(ctx, told); err != nil {
			return nil, err
		}
		for _, t := range told {
			if err := x.judge(ctx, t); err != nil {
				return nil, err
			}
		}
		return append(x.w.all(), x.lives.writes()...), nil
	})
	if err != nil {
		return err
	}
	x.tell(ctx, told)
	if k := x.ledger.Cluster; x.room {
		woken[k] = append(woken[k], Kick{Cluster: k, Instance: x.in.ID, Tasks: first(x.queued, kickTasks)})
	}
	return nil
}

func (x *intake) load(ctx context.Context, told []Told) error {
	records := []Record{x.in, x.ledger}
	for _, t := range told {
		id, _ := t.attempt()
		if x.tasks[id] == nil {
			x.tasks[id] = &Task{ID: id}
			records = append(records, x.tasks[id])
		}
	}
	return x.c.Store.Load(ctx, records...)
}

// openHere says whether the attempt is open on the sender's instance.
func (x *intake) openHere(t *Task, attempt int) bool {
	return t.Version > 0 && t.LastStatus.Open() && t.Instance == x.in.ID && t.Attempt == attempt
}

func (x *intake) judge(ctx context.Context, told Told) error {
	id, attempt := told.attempt()
	t := x.tasks[id]
	here := x.openHere(t, attempt)
	switch {
	case here && x.ledger.Version == 0:
		return fault.New(fault.Internal, "task %s is open on instance %s, which has no ledger", id, x.in.ID)
	case here && told.Refused != nil:
		return x.refused(ctx, t, told.Refused)
	case here && told.end():
		return x.ended(ctx, t, told)
	case here:
		x.shown(t, told)
	case told.Report != nil && told.end() && t.LastStatus == task.Stopped && t.Instance == x.in.ID && t.Attempt == attempt:
		if fillIn(t, told) {
			x.w.put(t)
		}
	}
	return nil
}

// ended is I5's "an end always applies while that attempt is open", and I4: in
// this transaction, and no other, the attempt is released.
func (x *intake) ended(ctx context.Context, t *Task, told Told) error {
	r := told.Report
	take(t, told)
	renew(t, told)
	t.N, t.Shown = max(t.N, r.N), true
	e := ending{cause: causeOf(t, r), reason: cut(r.Reason, maxReason), now: x.now, keepFor: x.c.Setting.StoppedTasksFor}
	if t.StopCause != "" { // whoever asked for the stop is why it ended
		e.cause, e.reason = "", ""
	}
	endOpen(t, x.ledger, task.Ended, e)
	if t.ExecStoppedAt.IsZero() {
		t.ExecStoppedAt = told.within(t, r.StoppedAt)
	}
	x.gaveRoom(t)
	return x.countDown(ctx, t)
}

// gaveRoom notes that an open attempt's end was written here.
func (x *intake) gaveRoom(t *Task) {
	x.w.put(t, x.ledger)
	x.room = true
	x.changed(t)
}

func (x *intake) changed(t *Task) {
	if t.Service == "" {
		return
	}
	x.services = addTo(x.services, t)
}

// addTo puts a task into the kick of its service; ten of a service are enough to
// wake it.
func addTo(kicks []Kick, t *Task) []Kick {
	at := slices.IndexFunc(kicks, func(k Kick) bool { return k.Cluster == t.Cluster && k.Service == t.Service })
	if at < 0 {
		return append(kicks, Kick{Cluster: t.Cluster, Service: t.Service, Tasks: []string{t.ID}})
	}
	if k := &kicks[at]; len(k.Tasks) < kickTasks && !slices.Contains(k.Tasks, t.ID) {
		k.Tasks = append(k.Tasks, t.ID)
	}
	return kicks
}

// countDown takes a service's task off its live count (I4).
func (x *intake) countDown(ctx context.Context, t *Task) error {
	if err := x.lives.down(ctx, x.c.Store, t); err != nil {
		return fmt.Errorf("load the live count of service %s: %w", t.Service, err)
	}
	return nil
}

// shown is a report of an attempt that goes on: only the incarnation we know
// counts, and of the one the task is with only a newer report (I5).
func (x *intake) shown(t *Task, told Told) {
	r := told.Report
	if r.Incarnation != x.in.Incarnation || r.Incarnation == t.Incarnation && r.N <= t.N {
		return
	}
	take(t, told)
	if renew(t, told) {
		x.changed(t)
	}
	t.N, t.Incarnation, t.Shown = r.N, r.Incarnation, true
	before := t.LastStatus
	if to := task.Merge(t.LastStatus, r.Status); to != before {
		on, _ := task.SeenAs(to)
		t.LastStatus = move(before, on)
		x.changed(t)
	}
	if t.LastStatus != task.Pending && t.StartedAt.IsZero() && r.Status == task.Running {
		t.StartedAt = told.within(t, r.StartedAt)
	}
	if t.LastStatus == task.Stopping && t.StoppingAt.IsZero() {
		t.StoppingAt = told.within(t, r.StoppingAt)
	}
	x.w.put(t)
	x.w.check(x.in)
	if t.DesiredStatus == task.DesiredStopped && r.Status != task.Stopping && !slices.Contains(x.stops, t) {
		x.stops = append(x.stops, t)
	}
}

// tell acknowledges the ends, repeats stops that were not heeded, and wakes who
// waits. Nothing of it is an error: all of it is made up for (Q9, I6).
func (x *intake) tell(ctx context.Context, told []Told) {
	var commands []wire.Message
	acked := map[wire.Attempt]bool{}
	for _, t := range told {
		id, attempt := t.attempt()
		if a := (wire.Attempt{Task: id, Attempt: attempt}); t.end() && !acked[a] {
			acked[a] = true
			commands = append(commands, ackMessage(x.in.ID, id, attempt))
		}
	}
	for _, t := range x.stops {
		if t.LastStatus.Open() {
			commands = append(commands, stopMessage(t))
		}
	}
	x.c.send(ctx, commands...)
	for _, k := range x.services {
		x.c.kickServices(ctx, k)
	}
}

func first[T any](s []T, n int) []T { return s[:min(n, len(s))] }
