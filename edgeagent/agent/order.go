package agent

import (
	"cmp"
	"slices"

	"github.com/longshore-run/longshore/edgeagent/internal/supervise"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// verdict is what one look at the journal decides about a command.
type verdict int

const (
	ignored  verdict = iota
	waits            // it cannot be judged yet
	admitted         // a new record was written
	said             // the record that is there is the answer
	ordered          // a running task has its order
)

// assign takes a task in, at most once per attempt (R6).
func (a *Agent) assign(c Command, m *wire.Assign) (bool, error) {
	log := a.Log.With(logkey.Task, m.Task, logkey.Attempt, m.Attempt, logkey.Epoch, m.Epoch)
	recovered := a.isRecovered()
	full, busy, ending, spent := a.full(), a.owned(m.Task), a.isEnding(), a.spent()
	var v verdict
	var why string
	err := a.book.update(func(p *page) error {
		r, ok := p.task(m.Task)
		switch {
		case m.Epoch < p.meta.Epoch:
			why = "it is of an older epoch"
		case ending:
			why = "this instance was deregistered"
		case m.Epoch > p.meta.Epoch:
			v, why = waits, "its epoch is not known here yet"
		case ok && r.Attempt() == m.Attempt:
			v = said
		case ok && r.Attempt() > m.Attempt:
			why = "a newer attempt is here"
		case !recovered:
			v, why = waits, "the engine is still being read"
		case ok && !r.ended():
			v, why = waits, "an older attempt has not ended"
			if r.Stop == nil {
				r.Stop = &supervise.Order{Reason: "a newer attempt was assigned"}
				p.write(r)
			}
		case ok && busy:
			v, why = waits, "an older attempt is being wound up"
		default:
			v = admitted
			r = newRecord(m, a.Setting.StopTimeout)
			if full && r.State.Refusal == nil {
				r.refuse(m.Task, m.Attempt, "the agent has as many tasks as an inventory holds")
			}
			if spent != "" && r.State.Refusal == nil { // what is left is for the ends of those that are here
				r.refuse(m.Task, m.Attempt, "no room for the journal: "+spent)
			}
			if r.State.Refusal != nil {
				p.say(r)
			} else {
				p.write(r)
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	switch v {
	case waits:
		a.orderStop(m.Task)
		return a.hold(c, key(m), why), nil
	case said:
		a.sayAgain(m.Task)
	case admitted:
		log.Info("task assigned", logkey.Definition, m.Family)
		a.reports.ring()
		a.launchOne(m.Task)
	default:
		log.Info("assign is dropped", logkey.Reason, why)
	}
	return true, nil
}

// stop has a task end. One for something unknown leaves its end behind, so that
// an assign which comes later is answered with it.
func (a *Agent) stop(c Command, m *wire.Stop) (bool, error) {
	recovered, busy := a.isRecovered(), a.owned(m.Task)
	o := supervise.Order{Reason: m.Reason}
	var v verdict
	var why string
	err := a.book.update(func(p *page) error {
		r, ok := p.task(m.Task)
		switch {
		case ok && r.Attempt() > m.Attempt:
		case ok && r.Attempt() == m.Attempt && r.ended():
			v = said
		case ok && !r.ended(): // this attempt, or an older one that must go too
			v = ordered
			if r.Stop == nil {
				r.Stop = &o
				p.write(r)
			}
			if r.Attempt() < m.Attempt {
				v, why = waits, "an older attempt has not ended"
			}
		case !recovered:
			v, why = waits, "the engine is still being read"
		case ok && busy:
			v, why = waits, "an older attempt is being wound up"
		default:
			v = admitted
			p.say(stopped(m, p.meta.Epoch, p.now))
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	switch v {
	case waits:
		a.orderStop(m.Task)
		return a.hold(c, key(m), why), nil
	case ordered:
		a.orderStop(m.Task)
	case said:
		a.sayAgain(m.Task)
	case admitted:
		a.Log.Info("stop of an unknown task: its end is remembered", logkey.Task, m.Task, logkey.Attempt, m.Attempt)
		a.reports.ring()
		a.cleanups.ring()
	case ignored:
	}
	return true, nil
}

// orderStop passes on the order in the journal, if there is one.
func (a *Agent) orderStop(id string) {
	if r, ok := a.record(id); ok && r.Stop != nil && !r.ended() && a.isRecovered() {
		a.stopRunning(&r)
	}
}

// acknowledge notes that the control plane knows an end (R4).
func (a *Agent) acknowledge(m *wire.Ack) error {
	err := a.book.update(func(p *page) error {
		if r, ok := p.task(m.Task); ok && r.Attempt() == m.Attempt && r.ended() && !r.Acked {
			r.Acked = true
			p.write(r)
		}
		return nil
	})
	a.cleanups.ring()
	return err
}

// resync says snapshots again, as news.
//
// One that names no task comes from a control plane that does not know this
// instance (any more): it is to register again.
func (a *Agent) resync(m *wire.Resync) error {
	if len(m.Tasks) == 0 {
		a.mu.Lock()
		a.welcomed = false
		a.mu.Unlock()
		a.Log.Warn("this instance is not known: register again")
		a.registers.ring()
	}
	err := a.book.update(func(p *page) error {
		for _, id := range m.Tasks {
			if r, ok := p.task(id); ok {
				p.say(r)
			}
		}
		return nil
	})
	for _, id := range m.Tasks {
		a.sayAgain(id)
	}
	return err
}

// welcome takes in what the control plane says of this instance. What is meant
// for another incarnation is ignored, and the epoch never goes down.
func (a *Agent) welcome(m *wire.Welcome) (bool, error) {
	mine, raised := false, false
	err := a.book.update(func(p *page) error {
		if m.Incarnation != p.meta.Incarnation || m.Epoch < p.meta.Epoch {
			return nil
		}
		mine, raised = true, m.Epoch > p.meta.Epoch
		meta := p.edit()
		meta.Epoch, meta.InstanceARN = m.Epoch, m.ContainerInstanceARN
		meta.HeartbeatEvery = seconds(m.HeartbeatEveryS)
		if m.N > meta.N { // an older copy of this journal was lived with
			meta.N = m.N
			var again []Record
			for r := range p.all {
				if !r.ended() && r.N > 0 {
					again = append(again, r.clone())
				}
			}
			slices.SortFunc(again, func(x, y Record) int { return cmp.Compare(x.N, y.N) })
			for _, r := range again {
				p.say(r)
			}
		}
		return nil
	})
	if err != nil {
		return false, err
	}
	if !mine {
		a.Log.Info("welcome of another incarnation or an older epoch is ignored", logkey.Epoch, m.Epoch)
		return a.known(), nil
	}
	a.mu.Lock()
	first := !a.welcomed
	a.welcomed, a.repeat = true, true
	a.mu.Unlock()
	if first {
		a.Log.Info("welcomed", logkey.Epoch, m.Epoch, logkey.Cluster, m.Cluster)
	}
	a.registers.ring()
	a.confirm(raised)
	return true, nil
}

// fence raises the epoch and has what is closed stopped, in one transaction.
func (a *Agent) fence(m *wire.Fence) (bool, error) {
	mine, old, raised := false, false, false
	var stops []string
	err := a.book.update(func(p *page) error {
		if mine = m.Incarnation == p.meta.Incarnation; !mine || m.Reason == wire.DuplicateIdentity {
			return nil
		}
		old = m.Epoch < p.meta.Epoch || m.Terminal && m.Epoch <= p.meta.EndedEpoch
		if raised = m.Epoch > p.meta.Epoch; raised {
			p.edit().Epoch = m.Epoch
		}
		for _, c := range m.Closed { // what is closed stays so
			r, ok := p.task(c.Task)
			if !ok || r.Attempt() != c.Attempt || r.ended() {
				continue
			}
			if r.Stop == nil {
				r.Stop = &supervise.Order{Cause: task.FencedCause, Reason: task.EndOf(task.FencedCause).Reason}
				p.write(r)
			}
			stops = append(stops, c.Task)
		}
		return nil
	})
	switch {
	case err != nil:
		return false, err
	case !mine:
		a.Log.Info("fence of another incarnation is ignored", logkey.Epoch, m.Epoch)
		return a.known(), nil
	case m.Reason == wire.DuplicateIdentity:
		a.Log.Error("another machine is registered with this identity: this one is kept out until that one has been silent", logkey.Reason, m.Reason)
		return true, nil
	}
	a.Log.Warn("fenced", logkey.Epoch, m.Epoch, logkey.Count, len(stops), logkey.Reason, m.Reason)
	if m.Terminal && !old {
		a.mu.Lock()
		a.ending = true
		a.mu.Unlock()
	}
	for _, id := range stops {
		a.orderStop(id)
	}
	a.checkEnd()
	if !old {
		a.confirm(raised)
	}
	return true, nil
}

// confirm is after the control plane has said which epoch this is.
func (a *Agent) confirm(raised bool) {
	a.mu.Lock()
	if raised || a.confirmed.IsZero() {
		a.confirmed = a.Now()
	}
	a.mu.Unlock()
	a.beats.ring()
	a.reports.ring()
	a.launchWaiting()
	a.wg.Go(func() { // not here: a batch is being handled
		a.turn("held")
		a.retryHeld()
	})
}

// launchOne starts a new task's goroutine, unless it has to wait.
func (a *Agent) launchOne(id string) {
	may, attempt := false, 0
	a.book.view(func(p *page) {
		r, ok := p.task(id)
		attempt = r.Attempt()
		may = ok && !r.ended() && a.mayRun(&r, p.meta)
	})
	if may {
		a.launch(id, attempt)
	}
}

func (a *Agent) isRecovered() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.recovered
}

// full says whether an inventory could not list one task more.
func (a *Agent) full() (yes bool) {
	a.book.view(func(p *page) { yes = len(p.book.tasks) >= wire.MaxInventory })
	return yes
}

// owned says whether a goroutine has the task.
func (a *Agent) owned(id string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.runners[id] != nil
}
