package agent

import (
	"cmp"
	"context"
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
		a.turn("report")
		due, wake := a.dueReports(sent, a.Now())
		if len(due) == 0 {
			if !sleep(ctx, wake, a.reports) {
				return
			}
			continue
		}
		if a.sendReports(ctx, due, sent) {
			if tries > 0 {
				a.gotThrough()
			}
			tries = 0
			continue
		}
		if !a.retry(ctx, a.backoff(tries, time.Second, time.Minute), nil) {
			return
		}
		tries++
	}
}

// dueReports lists the tasks whose reports are due, in order of their n, and
// how long to sleep if there are none.
func (a *Agent) dueReports(sent map[string]*sending, now time.Time) ([]item, time.Duration) {
	a.mu.Lock()
	again, repeat := a.again, a.repeat
	a.again, a.repeat = map[string]bool{}, false
	a.mu.Unlock()
	wake := mostWait
	var due []item
	a.book.view(func(p *page) {
		if p.meta.Epoch == 0 { // reports of an incarnation nobody knows count for nothing
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
	})
	slices.SortFunc(due, func(x, y item) int { return cmp.Compare(x.n, y.n) })
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

// sendReports sends what is due, batch by batch; false if some of it has to be
// tried again.
func (a *Agent) sendReports(ctx context.Context, due []item, sent map[string]*sending) bool {
	for len(due) > 0 {
		batch := due[:min(len(due), MaxBatch)]
		due = due[len(batch):]
		if !a.sendBatch(ctx, a.latest(batch), sent) {
			for _, it := range due {
				a.sayAgain(it.id)
			}
			return false
		}
	}
	return true
}

// latest fills in the reports as they are by now.
func (a *Agent) latest(batch []item) []item {
	filled := make([]item, 0, len(batch))
	a.book.view(func(p *page) {
		for _, it := range batch {
			if r, ok := p.task(it.id); ok {
				filled = append(filled, item{it.id, r.N, r.message(a.instance, p.meta.Incarnation)})
			}
		}
	})
	return filled
}

func (a *Agent) sendBatch(ctx context.Context, batch []item, sent map[string]*sending) bool {
	messages := make([]wire.Message, len(batch))
	for i, it := range batch {
		messages[i] = it.message
	}
	all := true
	for i, err := range a.Outbox.SendReports(ctx, messages) {
		it := batch[i]
		if ctx.Err() != nil {
			return false
		}
		switch {
		case fault.Is(err, fault.Invalid):
			a.Log.Error("report cannot be sent", logkey.Task, it.id, logkey.Error, err)
		case err != nil:
			if all {
				a.Log.Warn("reports wait", logkey.Error, err, logkey.Count, len(batch))
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
