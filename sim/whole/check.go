package whole

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// checks is what the world knows of the tables, from each commit, to hold the
// next one against.
type checks struct {
	tasks    map[string]*control.Task
	order    []string // ids, as they were made
	on       map[string]map[string]*control.Task
	ledgers  map[string]*control.Ledger
	lives    map[string]*control.Live
	lived    map[string]int // copies at the last commit, by service
	serving  map[string]int // tasks that are not STOPPED, by service
	services map[string]*control.Service
	reaped   map[string][]time.Time // by zone
	started  map[string]string      // task: its attempt and host that started a container
	exits    map[string]int         // codes of containers that ended, by task/attempt/container
	made     int                    // checks
	commits  int
}

func newChecks() checks {
	return checks{
		tasks: map[string]*control.Task{}, on: map[string]map[string]*control.Task{}, ledgers: map[string]*control.Ledger{}, lives: map[string]*control.Live{},
		serving: map[string]int{}, lived: map[string]int{}, services: map[string]*control.Service{}, reaped: map[string][]time.Time{}, started: map[string]string{}, exits: map[string]int{},
	}
}

// committed judges what has just been committed.
func (w *World) committed(by *call) {
	x := &w.check
	x.commits++
	changes := w.store.TakeChanges()
	old := map[string]*control.Ledger{}
	for _, c := range changes {
		if l, ok := c.Old.(*control.Ledger); ok {
			old[l.ID] = l
		}
	}
	hosts := map[string]bool{}
	for _, c := range changes {
		switch r := recordOf(c).(type) {
		case *control.Task:
			k, _ := c.Old.(*control.Task)
			if c.New == nil {
				if k.LastStatus != task.Stopped {
					w.fail("I12 task %s was removed while %s", short(k.ID), k.LastStatus)
				}
				w.forget(k)
				continue
			}
			w.judgeTask(k, r, old)
			w.remember(k, r)
			if r.Instance != "" {
				hosts[r.Instance] = true
			}
			if k != nil && k.Instance != "" {
				hosts[k.Instance] = true
			}
		case *control.Ledger:
			hosts[r.ID] = true
			if c.New == nil {
				delete(x.ledgers, r.ID)
				continue
			}
			if k, ok := c.Old.(*control.Ledger); ok {
				w.judgeLedger(k, r, by)
			}
			x.ledgers[r.ID] = r
		case *control.Live:
			x.lives[r.Key()] = r
		case *control.Service:
			x.services[r.Cluster+"/"+r.Name] = r
		case *control.Lease:
			if k, ok := c.Old.(*control.Lease); ok && c.New != nil && r.Sent.Before(k.Sent) {
				w.fail("I8 the lease of %s was set back", w.hostName(r.ID))
			}
		}
	}
	for id := range hosts {
		w.judgeInstance(id)
	}
	for key, l := range x.lives {
		if x.serving[key] != l.Live {
			w.fail("I11 service %s: live is %d, its tasks are %d", key, l.Live, x.serving[key])
		}
		if s := x.services[key]; s != nil && s.Status == control.ServiceActive && s.Strategy != "DAEMON" && len(s.Deployments) > 0 {
			if most := s.Desired * s.MaximumPercent / 100; l.Live > most && l.Live > x.lived[key] {
				w.fail("I11 service %s has %d copies of %d", key, l.Live, s.Desired)
			}
		}
		x.lived[key] = l.Live
	}
	x.made++
}

func recordOf(c control.Change) control.Record {
	if c.New != nil {
		return c.New
	}
	return c.Old
}

func (w *World) hostName(id string) string {
	if h := w.byID[id]; h != nil {
		return h.name
	}
	return id
}

func (w *World) remember(k, t *control.Task) {
	x := &w.check
	w.forget(k)
	if x.tasks[t.ID] == nil && k == nil {
		x.order = append(x.order, t.ID)
	}
	x.tasks[t.ID] = t
	if t.LastStatus.Open() {
		if x.on[t.Instance] == nil {
			x.on[t.Instance] = map[string]*control.Task{}
		}
		x.on[t.Instance][t.ID] = t
	}
	if t.Service != "" && t.LastStatus != task.Stopped {
		x.serving[t.Cluster+"/"+t.Service]++
	}
}

func (w *World) forget(k *control.Task) {
	x := &w.check
	if k == nil || x.tasks[k.ID] == nil {
		return
	}
	delete(x.tasks, k.ID)
	delete(x.on[k.Instance], k.ID)
	if k.Service != "" && k.LastStatus != task.Stopped {
		x.serving[k.Cluster+"/"+k.Service]--
	}
}

func (w *World) judgeTask(k, n *control.Task, ledgers map[string]*control.Ledger) {
	name := short(n.ID)
	w.say("task %s/%d %s desired %s on %s e%d %s", name, n.Attempt, n.LastStatus, n.DesiredStatus, w.hostName(n.Instance), n.Epoch, n.StoppedReason)
	if n.LastStatus == task.Provisioning && n.DesiredStatus == task.DesiredStopped {
		w.fail("I3 task %s is to stop and still waits", name)
	}
	if t := n.StartedAt; !t.IsZero() && (t.Before(n.AdmittedAt) || t.After(time.Now())) {
		w.fail("U1 task %s started when a host's clock says: %s, admitted %s", name, t, n.AdmittedAt)
	}
	if n.LastStatus.Open() && (k == nil || !k.LastStatus.Open()) {
		w.judgeAdmission(k, n, ledgers[n.Instance])
	}
	if n.LastStatus == task.Stopped && (k == nil || k.LastStatus != task.Stopped) {
		w.judgeEnd(n)
	}
	if k == nil {
		return
	}
	switch {
	case n.Attempt < k.Attempt || n.Attempt == k.Attempt && n.LastStatus.Rank() < k.LastStatus.Rank() || k.DesiredStatus == task.DesiredStopped && n.DesiredStatus != k.DesiredStatus:
		w.fail("I5 task %s went back from %s/%d to %s/%d", name, k.LastStatus, k.Attempt, n.LastStatus, n.Attempt)
	case n.Attempt == k.Attempt && n.Incarnation == k.Incarnation && n.N < k.N:
		w.fail("I5 task %s took n %d after n %d", name, n.N, k.N)
	case k.Held != nil && n.Held != nil && !reflect.DeepEqual(*k.Held, *n.Held):
		w.fail("I4 what task %s holds was changed", name)
	case k.LastStatus.Open() && n.LastStatus == task.Stopped && n.StopCause == task.LostCause:
		if l := w.check.ledgers[k.Instance]; l == nil || l.Cause != control.ReapedCause || k.Epoch >= l.Epoch {
			w.fail("I8 task %s was closed, which no reaping covers", name)
		}
	}
}

// judgeAdmission is I2 and I7, against the ledger as it was.
func (w *World) judgeAdmission(k, n *control.Task, l *control.Ledger) {
	name := short(n.ID)
	if k != nil && (k.LastStatus != task.Provisioning || k.DesiredStatus != task.DesiredRunning) {
		w.fail("I2 task %s was admitted while %s, desired %s", name, k.LastStatus, k.DesiredStatus)
	}
	switch {
	case l == nil || l.Status != control.Active || !l.Connected:
		w.fail("I2 task %s was given to an instance that takes no work", name)
		return
	case l.Stale != 0:
		w.fail("I7 task %s was given to an instance with stale tasks", name)
	case n.Epoch != l.Epoch:
		w.fail("I2 task %s was given under another epoch than the instance's", name)
	}
	h := w.byID[n.Instance]
	m := h.state().Meta
	in := &control.Instance{ID: h.id}
	must(w.store.Load(context.Background(), in))
	if in.Incarnation != m.Incarnation {
		return
	}
	if m.Epoch != l.Epoch {
		w.fail("I7 task %s was given to %s before the epoch was echoed: it knows %d, not %d", name, h.name, m.Epoch, l.Epoch)
	}
	strange := 0
	for _, b := range h.engine.running() {
		if t := w.check.on[h.id][b.seen.Task]; t == nil || t.Attempt != b.seen.Attempt {
			strange += b.memory
		}
	}
	if l.Held.MemoryMiB+n.Held.MemoryMiB+strange > h.memory {
		w.fail("PHYS task %s was given to %s beside containers that its ledger does not know", name, h.name)
	}
}

// judgeEnd wants nothing of a task that is STOPPED here to run, unless fenced.
func (w *World) judgeEnd(n *control.Task) {
	h := w.byID[n.Instance]
	if h == nil {
		return
	}
	epoch := int64(0)
	if l := w.check.ledgers[n.Instance]; l != nil {
		epoch = l.Epoch
	}
	for _, b := range h.engine.boxes {
		if b.seen.Running && b.seen.Task == n.ID && b.seen.Attempt == n.Attempt && b.seen.Epoch >= epoch {
			w.fail("PHYS a container of task %s runs on %s, its attempt has ended (%s) and its epoch is not fenced", short(n.ID), h.name, n.StoppedReason)
		}
	}
}

func (w *World) judgeLedger(k, n *control.Ledger, by *call) {
	if n.Epoch < k.Epoch {
		w.fail("I8 the epoch of %s went back", w.hostName(n.ID))
	}
	if n.Epoch == k.Epoch {
		return
	}
	w.say("%s: epoch %d, cause %s, stale %d", w.hostName(n.ID), n.Epoch, n.Cause, n.Stale)
	if by == nil || by.kind != "reaper" || n.Cause != control.ReapedCause {
		return
	}
	w.count("instance reaped")
	scan, err := w.store.Leases(context.Background())
	must(err)
	var mark time.Time
	for _, p := range scan.Probes {
		if p.SeenSent.After(mark) {
			mark = p.SeenSent
		}
	}
	zone, all := "", 0
	for _, l := range scan.Leases {
		if l.ID == n.ID {
			zone = l.Zone
			late := func(since time.Time) bool { return mark.Sub(since) > w.control.ReapAfter }
			if !late(l.Sent) && (l.Impaired.IsZero() || !late(l.Impaired)) {
				w.fail("I8 %s was reaped, which is not late by what came through the queue", w.hostName(n.ID))
			}
		}
	}
	for _, l := range scan.Leases {
		if l.Zone == zone && (l.Stage != control.StageLost || l.ID == n.ID) {
			all++
		}
	}
	// A budget is set at most every 50 s: one minute sees two of them at most.
	x := &w.check
	x.reaped[zone] = append(x.reaped[zone], time.Now())
	lately := 0
	for _, at := range x.reaped[zone] {
		if time.Since(at) < 50*time.Second {
			lately++
		}
	}
	if most := 2 * max(1, min((all+lately)/10, 5)); lately > most {
		w.fail("I9 %d instances of zone %s were reaped within a minute, which has %d", lately, zone, all)
	}
}

// judgeInstance is what an instance's tasks and its ledger must come to (I1, I4, I8).
func (w *World) judgeInstance(id string) {
	x := &w.check
	l := x.ledgers[id]
	if l == nil {
		return
	}
	var tasks []*control.Task
	for _, t := range x.on[id] {
		tasks = append(tasks, t)
	}
	x.made++
	if bad := controltest.Broken(tasks, []*control.Ledger{l}, nil); len(bad) > 0 {
		w.fail("%s: %s", w.hostName(id), strings.Join(bad, "; "))
	}
}

// commanded judges a command that is being sent.
func (w *World) commanded(by *call, h *host, m wire.Message) {
	x := &w.check
	x.made++
	open := func(id string, attempt int) *control.Task {
		if t := x.on[h.id][id]; t != nil && t.Attempt == attempt {
			return t
		}
		return nil
	}
	l := x.ledgers[h.id]
	wanted := func(id string, attempt int) bool {
		t := open(id, attempt)
		return t != nil && t.DesiredStatus == task.DesiredRunning && !(l != nil && t.Epoch < l.Epoch && l.EndCause != "")
	}
	switch m := m.(type) {
	case *wire.Stop:
		if wanted(m.Task, m.Attempt) {
			w.fail("I12 a stop is sent of task %s, which is to run on %s", short(m.Task), h.name)
		}
	case *wire.Ack:
		if open(m.Task, m.Attempt) != nil {
			w.fail("I6 an end of task %s on %s is acknowledged that is not known here", short(m.Task), h.name)
		}
	case *wire.Fence:
		for _, a := range m.Closed {
			if wanted(a.Task, a.Attempt) {
				w.fail("I12 a fence closes task %s, which is to run on %s", short(a.Task), h.name)
			}
		}
	}
}

// journalled judges what an agent has just written: it forgets no end that is not
// known upstream (I6).
func (w *World) journalled(h *host, c agent.Change) {
	if c.Meta != nil {
		if c.Meta.N < h.seenN {
			w.fail("I5 the n of %s went back from %d to %d", h.name, h.seenN, c.Meta.N)
		}
		h.seenN = c.Meta.N
	}
	for _, r := range c.Put {
		if t := w.check.on[h.id][r.ID()]; (r.Acked || r.Tomb) && t != nil && t.Attempt == r.Attempt() {
			w.fail("I6 %s forgot the end of task %s, which is not known upstream", h.name, short(r.ID()))
		}
	}
}

// started judges a container that begins to run.
func (w *World) started(h *host, b *box) {
	x := &w.check
	x.made++
	id := b.seen.Task
	w.say("%s: %s/%d %s starts", h.name, short(id), b.seen.Attempt, b.seen.Container)
	w.note(h.name, "container "+id, nil)
	w.count("container started")
	if n := h.engine.starts[b.seen.ContainerID]; n > 1 {
		w.fail("RUNS-TWICE a container of task %s/%d was started %d times on %s", short(id), b.seen.Attempt, n, h.name)
	}
	place := fmt.Sprintf("%s/%d", h.name, b.seen.Attempt)
	if was := x.started[id]; was != "" && was != place {
		w.fail("RUNS-TWICE task %s was started on %s and now on %s", short(id), was, place)
	}
	x.started[id] = place
	memory := b.memory
	for _, o := range h.engine.boxes {
		if o.seen.Running {
			memory += o.memory
		}
	}
	if memory > h.memory {
		w.fail("PHYS containers of %d MiB run on %s, which has %d", memory, h.name, h.memory)
	}
	t := x.on[h.id][id]
	if l := x.ledgers[h.id]; l != nil && b.seen.Epoch >= l.Epoch && (t == nil || t.Attempt != b.seen.Attempt) {
		w.fail("PHYS a container of task %s starts on %s, its attempt is not open and its epoch not fenced", short(id), h.name)
	}
}

// anyTask is one of the tasks that may be.
func (w *World) anyTask(may func(*control.Task) bool) *control.Task {
	var all []*control.Task
	for _, id := range w.check.order {
		if t := w.check.tasks[id]; t != nil && may(t) {
			all = append(all, t)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[w.random.IntN(len(all))]
}
