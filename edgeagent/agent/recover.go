package agent

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/longshore-run/longshore/edgeagent/internal/supervise"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
)

// pingEvery is how often a quiet engine is asked whether it lives.
const pingEvery = 15 * time.Second

var errStream = errors.New("the engine's event stream ended")

// watch is the loop that follows the engine. The stream of events is opened
// before the list is read, so nothing falls between them; whenever it breaks,
// both are done again. The first list is the recovery after a start.
func (a *Agent) watch(ctx context.Context) {
	for tries := 0; ; {
		began := a.Now()
		err := a.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		if a.Now().Sub(began) > time.Minute {
			tries = 0
		}
		if !errors.Is(err, errStream) {
			a.setHealth(silentReason(err))
		}
		if !sleep(ctx, a.backoff(tries, 100*time.Millisecond, 10*time.Second), nil) {
			return
		}
		tries++
	}
}

func (a *Agent) follow(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var pulse sync.WaitGroup
	defer pulse.Wait()
	defer cancel(nil)
	info, err := a.Engine.Info(ctx)
	if err != nil {
		return err
	}
	events, err := a.Engine.Watch(ctx)
	if err != nil {
		return err
	}
	// An engine that hangs is noticed also while a long list is read.
	pulse.Go(func() { cancel(a.ping(ctx)) })
	if err := a.look(ctx, &info); err != nil {
		return cmp.Or(context.Cause(ctx), err)
	}
	a.setHealth("")
	recheck := time.NewTicker(a.backoff(0, a.Setting.RecheckEach, a.Setting.RecheckEach))
	defer recheck.Stop()
	for {
		s, ok, look := nextEvent(ctx, events, recheck.C)
		a.turn("watch")
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case look: // T10
			if err := a.look(ctx, nil); err != nil {
				return cmp.Or(context.Cause(ctx), err)
			}
		case !ok:
			return errStream
		default:
			a.route(s)
		}
	}
}

// nextEvent waits for an event of the stream (ok: there was one), for the time to
// look at everything, or for the end of ctx. What happened comes first.
func nextEvent(ctx context.Context, events <-chan Seen, recheck <-chan time.Time) (s Seen, ok, look bool) {
	select {
	case s, ok = <-events:
		return s, ok, false
	default:
	}
	select {
	case <-ctx.Done():
	case s, ok = <-events:
	case <-recheck:
		look = true
	}
	return s, ok, look
}

// ping asks a quiet engine whether it lives, until it does not.
func (a *Agent) ping(ctx context.Context) error {
	for sleep(ctx, pingEvery, nil) {
		if err := a.Engine.Ping(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// look reads everything the engine has and compares.
func (a *Agent) look(ctx context.Context, info *EngineInfo) error {
	list, err := a.Engine.List(ctx)
	if err != nil {
		return err
	}
	found, unknown := group(list)
	if err := a.adopt(found, info); err != nil {
		a.Log.Error("the journal cannot be written", logkey.Error, err)
		return nil // the engine is well: the next look tries again
	}
	a.mu.Lock()
	a.unknown = unknown
	first := !a.recovered
	a.recovered = true
	a.mu.Unlock()
	if first {
		a.Log.Info("recovered", logkey.Count, len(list))
	}
	a.compare(found)
	if first {
		a.registers.ring()
		a.beats.ring()
		a.retryHeld()
	}
	return nil
}

// group sorts what was seen by task and attempt; what does not say whose it is
// is only counted.
func group(list []Seen) (found map[string]map[int][]Seen, unknown int) {
	found = map[string]map[int][]Seen{}
	for _, s := range list {
		if s.Task == "" || s.Attempt < 1 || s.Container == "" {
			unknown++
			continue
		}
		if found[s.Task] == nil {
			found[s.Task] = map[int][]Seen{}
		}
		found[s.Task][s.Attempt] = append(found[s.Task][s.Attempt], s)
	}
	return found, unknown
}

// adopt takes in tasks that the engine has and the journal has not, all in one
// transaction: after it the first inventory may be sent.
func (a *Agent) adopt(found map[string]map[int][]Seen, info *EngineInfo) error {
	var adopted []string
	err := a.book.update(func(p *page) error {
		adopted = nil
		if !p.meta.Rebuilt {
			p.edit().Rebuilt = true
		}
		if info != nil && *info != p.meta.Engine {
			p.edit().Engine = *info
		}
		for id, attempts := range found {
			last := newest(attempts)
			if r, ok := p.task(id); ok && (r.Attempt() >= last || !r.ended()) {
				continue
			}
			if r, ok := adoptedRecord(id, last, attempts[last], a.Setting.StopTimeout, p.now); ok {
				p.write(r)
				adopted = append(adopted, id)
			}
		}
		return nil
	})
	if err == nil && len(adopted) > 0 {
		a.Log.Warn("tasks are adopted from the engine: the journal did not have them", logkey.Count, len(adopted))
	}
	return err
}

func newest(attempts map[int][]Seen) int {
	last := 0
	for n := range attempts {
		last = max(last, n)
	}
	return last
}

// labelEssential is the label of a container that may end without its task.
const labelEssential = "run.longshore.essential"

// adoptedRecord rebuilds a record from labels; false for a task of which
// nothing was ever started.
func adoptedRecord(id string, attempt int, seen []Seen, stopTimeout time.Duration, now time.Time) (Record, bool) {
	first := seen[0]
	r := Record{Epoch: first.Epoch, TaskARN: first.TaskARN, Cluster: first.Cluster, Family: first.Family, Revision: first.Revision}
	ran := false
	inner := make([]supervise.Seen, len(seen))
	for i, s := range seen {
		inner[i] = s.inner()
		if s.Error != "" {
			inner[i].Error = withheld // the definition, which tells whether it has secrets, is not known
		}
		ran = ran || !s.Created && s.Container != PauseContainer
	}
	essential := func(s supervise.Seen) bool { return s.Labels[labelEssential] != "false" }
	r.State = supervise.Adopt(id, attempt, inner, essential, stopTimeout, now)
	return r, ran
}

// compare shows every task what the engine has of it, and removes what belongs
// to none.
func (a *Agent) compare(found map[string]map[int][]Seen) {
	type show struct {
		id      string
		attempt int
		seen    []supervise.Seen
	}
	var shows []show
	var strays []Seen
	a.book.view(func(p *page) {
		for r := range p.all {
			if !r.ended() && a.mayRun(r, p.meta) {
				shows = append(shows, show{r.ID(), r.Attempt(), complete(r, found[r.ID()][r.Attempt()])})
			}
		}
		for id, attempts := range found {
			r, known := p.task(id)
			for attempt, seen := range attempts {
				mine := known && attempt == r.Attempt()
				switch {
				case mine && !r.ended(), known && attempt > r.Attempt():
				case mine && startled(&r, seen):
					shows = append(shows, show{id, attempt, complete(&r, seen)})
				case mine && !r.Tomb: // it waits for its clean-up
				default:
					strays = append(strays, seen...)
				}
			}
		}
	})
	for _, s := range shows {
		a.launch(s.id, s.attempt, s.seen...)
	}
	if len(strays) > 0 {
		slices.SortFunc(strays, func(x, y Seen) int {
			return cmp.Or(cmp.Compare(x.Task, y.Task), cmp.Compare(x.Attempt, y.Attempt), cmp.Compare(x.Container, y.Container))
		})
		a.wg.Go(func() { a.removeStrays(strays) })
	}
}

// startled says whether seen concerns a task that has ended: something of it
// runs, or did.
func startled(r *Record, seen []Seen) bool {
	if r.State.Alive() {
		return true
	}
	for _, s := range seen {
		if s.Running {
			return true
		}
	}
	return false
}

// complete adds to what was seen of a task that the rest is not there.
func complete(r *Record, seen []Seen) []supervise.Seen {
	all := make([]supervise.Seen, 0, len(r.State.Containers))
	there := map[string]bool{}
	for _, s := range seen {
		there[s.Container] = true
		all = append(all, s.inner())
	}
	for _, c := range r.State.Containers {
		if !there[c.Name] {
			all = append(all, supervise.Seen{Container: c.Name, Gone: true})
		}
	}
	return all
}

// removeStrays removes containers that no record asks for: of an attempt that
// was refused, or of a task of which nothing was ever started. What runs is
// stopped first.
func (a *Agent) removeStrays(strays []Seen) {
	for _, s := range strays {
		if a.leave.Err() != nil {
			return
		}
		log := a.Log.With(logkey.Task, s.Task, logkey.Attempt, s.Attempt, logkey.Container, s.Container)
		log.Warn("container belongs to no attempt that is known: removed")
		if s.Running {
			if err := a.Engine.Stop(a.leave, s.ContainerID, a.Setting.StopTimeout); err != nil {
				log.Error("stop", logkey.Error, err)
				continue
			}
		}
		err := errors.Join(a.Engine.Remove(a.leave, s.ContainerID), a.Engine.RemoveTask(a.leave, s.Task, s.Attempt))
		if err != nil && !fault.Is(err, fault.NotFound) {
			log.Error("remove", logkey.Error, err)
		}
	}
}

// route passes an event on to the task it is about.
func (a *Agent) route(s Seen) {
	r, ok := a.record(s.Task)
	a.mu.Lock()
	run := a.runners[s.Task]
	a.mu.Unlock()
	switch {
	case !ok || r.Attempt() != s.Attempt: // the next look decides
		a.Log.Debug("event of an unknown container", logkey.Task, s.Task, logkey.Container, s.Container)
	case run != nil, r.ended() && startled(&r, []Seen{s}):
		a.launch(s.Task, s.Attempt, s.inner())
	}
}
