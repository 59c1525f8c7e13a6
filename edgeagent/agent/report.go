package agent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/logkey"
	"github.com/longshore-run/longshore/shared/wire"
)

// An end is repeated until it is acknowledged, ever more rarely.
const (
	firstRepeat = 15 * time.Second
	mostRepeat  = 10 * time.Minute
	mostWait    = time.Hour // the loop looks by itself at least that often
)

// sending is what the report loop knows of one task's latest report.
type sending struct {
	n     int64     // that was sent
	tries int       // so many times
	due   time.Time // when it is due again, if it is an end
}

// item is one report that is due.
type item struct {
	id      string
	n       int64
	message wire.Message
}

// report is the loop that tells the control plane what tasks are. One loop and
// one timer serve any number of waiting ends.
func (a *Agent) report(ctx context.Context) {
	sent := map[string]*sending{}
	for tries := 0; ; {
		now := a.Now()
		due, wake := a.dueReports(sent, now)
		if len(due) == 0 {
			if !sleep(ctx, wake, a.reports) {
				return
			}
			continue
		}
		if a.sendReports(ctx, due, sent) {
			tries = 0
			continue
		}
		if !sleep(ctx, a.backoff(tries, time.Second, time.Minute), nil) {
			return
		}
		tries++
	}
}

// dueReports lists the next reports in order of their n, and how long to sleep
// if there is none.
func (a *Agent) dueReports(sent map[string]*sending, now time.Time) ([]item, time.Duration) {
	a.mu.Lock()
	again, repeat := a.again, a.repeat
	a.again, a.repeat = map[string]bool{}, false
	a.mu.Unlock()
	wake := mostWait
	var due []item
	var rest []string
	a.book.view(func(p *page) {
		if p.meta.Epoch == 0 { // reports of an incarnation nobody knows count for nothing
			rest = slices.Collect(maps.Keys(again))
			return
		}
		for id := range again {
			delete(sent, id)
			if r, ok := p.book.tombs[id]; ok { // tombstones answer when they are asked
				due = append(due, item{id: id, n: r.N})
			}
		}
		for r := range p.all {
			d, isDue := a.dueReport(r, sent, again[r.ID()], repeat, now)
			switch {
			case isDue:
				due = append(due, item{id: r.ID(), n: r.N})
			case d > 0:
				wake = min(wake, d)
			}
		}
		for id := range sent {
			if _, ok := p.book.tasks[id]; !ok {
				delete(sent, id)
			}
		}
		slices.SortFunc(due, func(x, y item) int { return cmp.Compare(x.n, y.n) })
		for _, it := range due[min(len(due), MaxBatch):] {
			if again[it.id] {
				rest = append(rest, it.id)
			}
		}
		due = due[:min(len(due), MaxBatch)]
		for i, it := range due {
			r, _ := p.task(it.id)
			due[i].message = r.message(a.instance, p.meta.Incarnation)
		}
	})
	a.putBack(rest)
	return due, max(wake, time.Millisecond)
}

// dueReport says whether a record's report is to be sent now, or else in how
// long; 0 for never.
func (a *Agent) dueReport(r *Record, sent map[string]*sending, again, repeat bool, now time.Time) (time.Duration, bool) {
	s := sent[r.ID()]
	switch {
	case r.N == 0 || r.Acked && !again:
		delete(sent, r.ID())
		return 0, false
	case s == nil || s.n != r.N:
		return 0, true
	case !r.ended():
		return 0, false
	}
	if repeat {
		s.due = now
	}
	d := s.due.Sub(now)
	return d, d <= 0
}

// putBack keeps what was asked for and is not sent yet.
func (a *Agent) putBack(ids []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		a.again[id] = true
	}
}

// sendReports sends a batch; false if some of it has to be tried again.
func (a *Agent) sendReports(ctx context.Context, due []item, sent map[string]*sending) bool {
	messages := make([]wire.Message, len(due))
	for i, it := range due {
		messages[i] = it.message
	}
	all := true
	for i, err := range a.Outbox.SendReports(ctx, messages) {
		it := due[i]
		if ctx.Err() != nil {
			return false
		}
		switch {
		case fault.Is(err, fault.Invalid):
			a.Log.Error("report cannot be sent", logkey.Task, it.id, logkey.Error, err)
		case err != nil:
			if all {
				a.Log.Warn("reports wait", logkey.Error, err, logkey.Count, len(due))
			}
			all = false
			a.sayAgain(it.id)
			continue
		}
		s := sent[it.id]
		if s == nil || s.n != it.n {
			s = &sending{n: it.n}
			sent[it.id] = s
		}
		s.due = a.Now().Add(a.backoff(s.tries, firstRepeat, mostRepeat))
		s.tries++
	}
	return all
}

// sayAgain has the latest report about a task sent once more.
func (a *Agent) sayAgain(id string) {
	a.mu.Lock()
	a.again[id] = true
	a.mu.Unlock()
	a.reports.ring()
}
