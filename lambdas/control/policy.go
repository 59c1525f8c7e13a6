package control

import (
	"cmp"
	"context"
	"time"
)

// keptLookEvery is for how long at most nobody looks at the kept tasks of a LOST
// instance: tags that change when they are to end are obeyed by then.
const keptLookEvery = 15 * time.Minute

// policy is what becomes of a task whose instance is LOST, as the tags say now.
type policy struct {
	keeps bool
	// confirmed: it is kept until its end is confirmed, however long that takes.
	confirmed bool
	// asked: its owner wants it to outlive the instance's being LOST in any case.
	asked   bool
	keepFor time.Duration
}

// until is when a kept task is ended: zero for not by time, and at once if it is
// to be kept no more.
func (p policy) until(t *Task) time.Time {
	switch {
	case p.confirmed:
		return time.Time{}
	case p.keeps:
		return t.Kept.Add(p.keepFor)
	}
	return t.Kept
}

// policies read the tags that say what becomes of tasks: a task's own win, then
// its service's, which hold for tasks that were started before, then its cluster's.
type policies struct {
	keepFor  time.Duration // where no tag says
	clusters map[string]*Cluster
	services map[string]*Service
}

// policiesOf loads what the tasks' policies rest on, each once.
func (c *Control) policiesOf(ctx context.Context, tasks []*Task) (*policies, error) {
	p := &policies{keepFor: c.Setting.KeepFor, clusters: map[string]*Cluster{}, services: map[string]*Service{}}
	var records []Record
	for _, t := range tasks {
		if p.clusters[t.Cluster] == nil {
			k := &Cluster{Name: t.Cluster}
			p.clusters[t.Cluster], records = k, append(records, k)
		}
		if s := serviceOf(t); t.Service != "" && p.services[s.Key()] == nil {
			p.services[s.Key()], records = s, append(records, s)
		}
	}
	if len(records) == 0 {
		return p, nil
	}
	return p, c.Store.Load(ctx, records...)
}

func serviceOf(t *Task) *Service { return &Service{Cluster: t.Cluster, Name: t.Service} }

func (p *policies) of(t *Task) policy {
	value := func(tag string) string {
		var service map[string]string
		if t.Service != "" {
			service = p.services[serviceOf(t).Key()].Tags
		}
		return cmp.Or(t.Tags[tag], service[tag], p.clusters[t.Cluster].Tags[tag])
	}
	out := policy{confirmed: value(replaceAfterTag) == afterConfirmed, keepFor: p.keepFor}
	out.asked = value(disconnectTag) == onDisconnectKeep
	out.keeps = out.confirmed || out.asked
	if d, err := time.ParseDuration(value(keepForTag)); err == nil {
		out.keepFor = d
	}
	return out
}

// keep is what closing does with a task that is kept (design: Policy): it goes on
// in the raised epoch, open and held, with a mark that the inventory which echoes
// the epoch clears. Lost again before that, it is kept since the first time.
func keep(t *Task, l *Ledger, p policy, now time.Time) {
	restamp(t, l)
	if t.Kept.IsZero() {
		t.Kept = now
	}
	l.lookAtKept(p.until(t), now)
}

// lookAtKept notes when the reaper looks at the instance's kept tasks: at until,
// zero for no time of its own, if nothing is due sooner.
func (r *Ledger) lookAtKept(until, now time.Time) {
	soonest := now.Add(keptLookEvery)
	for _, at := range []time.Time{until, r.KeptUntil} {
		if !at.IsZero() && at.Before(soonest) {
			soonest = at
		}
	}
	r.KeptUntil = soonest
}

// kept is how many tasks of a LOST instance are kept: what is open there and of no
// older epoch.
func (r *Ledger) kept() int { return r.Open - r.Stale }
