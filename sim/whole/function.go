package whole

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/wire"
)

// call is one call of a function: a use case that runs on a goroutine of its own,
// each of its calls a gate, until it ends, runs out of time or is killed.
type call struct {
	process
	w     *World
	kind  string
	doom  doom
	ended bool
	done  func(died bool)
}

// invoke calls a function.
func (w *World) invoke(kind string, timeout time.Duration, run func(ctx context.Context, c *control.Control), done func(died bool)) {
	w.calls++
	c := &call{w: w, kind: kind, done: done, process: process{stage: &w.stage, name: fmt.Sprintf("%s-%d", kind, w.calls)}}
	ctx, cancel := context.WithTimeout(w.ctx, timeout)
	c.cancel = cancel
	w.inflight[c] = true
	if w.chance(w.plan.functionKilled) {
		c.doom = doom{calls: 1 + w.random.IntN(12), after: w.chance(0.5)}
	}
	w.push(timeout+time.Millisecond, 0, "time out", func() {
		if !c.ended {
			w.count("function timed out")
			c.die()
		}
	})
	n := 0
	use := &control.Control{
		Store: store{c}, Queue: sender{c}, Metrics: nothing{}, Log: w.logger(c.name), Now: time.Now, Setting: w.control,
		NewID: func() string { n++; return w.newID(c.name, n) },
		Pause: func(ctx context.Context, try int) {
			_ = c.wait(ctx, "pause", func(g *gate) {
				w.push(w.between(0, 5*time.Millisecond<<min(try, 6)), 0, "pause", func() {
					if !g.over() {
						g.answer(nil)
					}
				})
			})
		},
	}
	go func() {
		defer cancel()
		defer func() {
			if p := recover(); p != nil {
				bad := fmt.Sprintf("PANIC in %s: %v\n%s", c.name, p, debug.Stack())
				_ = c.wait(context.Background(), "panics", func(g *gate) { w.fail("%s", bad); g.answer(nil) })
			}
		}()
		run(ctx, use)
		_ = c.wait(context.Background(), "ends", func(g *gate) {
			g.answer(nil)
			c.end(false)
		})
	}()
}

func (c *call) end(died bool) {
	if c.ended {
		return
	}
	c.ended = true
	delete(c.w.inflight, c)
	c.w.say("%s ends", c.name)
	if c.done != nil {
		c.done(died)
	}
}

// die ends a call of a function in its middle.
func (c *call) die() {
	c.w.say("%s dies", c.name)
	c.kill()
	c.end(true)
}

// do is a call of a use case: something that has an effect once it goes on.
func (c *call) do(ctx context.Context, what string, harm func() (before, after error), do func() error) error {
	w := c.w
	if err := ctx.Err(); err != nil {
		return fault.Wrap(fault.Unavailable, err, "%s", what)
	}
	return c.wait(context.Background(), what, func(g *gate) { // its time-out ends the call as a whole
		takes := w.between(time.Millisecond, 15*time.Millisecond)
		if w.chance(w.plan.storeSlow) {
			w.count("call slow")
			takes = w.between(time.Second, 20*time.Second)
		}
		w.push(takes, 0, what, func() {
			if g.over() {
				return
			}
			if c.doom.strikes(false) {
				w.count("function killed before a call")
				c.die()
				return
			}
			before, after := harm()
			if time.Now().Before(w.outage) {
				before = fault.New(fault.Unavailable, "outage")
			}
			err := before
			if err == nil {
				if err = do(); err == nil {
					err = after
				}
			}
			w.note(c.name, what, err)
			if c.doom.strikes(true) {
				w.count("function killed after a call")
				c.die()
				return
			}
			g.answer(err)
		})
	})
}

func (c *call) read() (before, after error) {
	if c.w.chance(c.w.plan.storeFails) {
		c.w.count("read failed")
		return fault.New(fault.Unavailable, "throttled"), nil
	}
	return nil, nil
}

func (c *call) write() (before, after error) {
	w := c.w
	if w.chance(w.plan.conflicts) {
		w.count("transaction conflict")
		return fault.New(fault.Conflict, "another transaction was in the way"), nil
	}
	return w.unsure(w.plan.storeFails, "write failed", "answer of a write lost")
}

// unsure is a call that may fail, or be carried out without an answer.
func (w *World) unsure(chance float64, failed, lost string) (before, after error) {
	switch {
	case w.chance(chance):
		w.count(failed)
		return fault.New(fault.Unavailable, "throttled"), nil
	case w.chance(chance):
		w.count(lost)
		return nil, fault.New(fault.Unavailable, "the answer was lost")
	}
	return nil, nil
}

// store is the tables, as one call of a function sees them.
type store struct{ c *call }

func (s store) Load(ctx context.Context, records ...control.Record) error {
	return s.c.do(ctx, "Load", s.c.read, func() error { return s.c.w.store.Load(ctx, records...) })
}

func (s store) Commit(ctx context.Context, writes ...control.Write) error {
	return s.c.do(ctx, "Commit", s.c.write, func() error {
		err := s.c.w.store.Commit(ctx, writes...)
		if err == nil {
			s.c.w.committed(s.c)
		} else if fault.Is(err, fault.Conflict) {
			s.c.w.count("commit in real conflict")
		}
		return err
	})
}

func (s store) Renew(ctx context.Context, r control.Renewal) (lease *control.Lease, renewed bool, err error) {
	err = s.c.do(ctx, "Renew", s.c.read, func() (err error) { lease, renewed, err = s.c.w.store.Renew(ctx, r); return err })
	return lease, renewed, err
}

func (s store) TaskIDs(ctx context.Context, q control.TaskQuery, page control.Page) (ids []string, next string, err error) {
	err = s.c.do(ctx, "TaskIDs", s.c.read, func() (err error) { ids, next, err = s.c.w.store.TaskIDs(ctx, q, page); return err })
	return ids, next, err
}

func (s store) InstanceIDs(ctx context.Context, cluster string, page control.Page) (ids []string, next string, err error) {
	err = s.c.do(ctx, "InstanceIDs", s.c.read, func() (err error) { ids, next, err = s.c.w.store.InstanceIDs(ctx, cluster, page); return err })
	return ids, next, err
}

func (s store) Leases(ctx context.Context) (scan *control.LeaseScan, err error) {
	err = s.c.do(ctx, "Leases", s.c.read, func() (err error) { scan, err = s.c.w.store.Leases(ctx); return err })
	return scan, err
}

func (s store) ScanLedgers(ctx context.Context, page control.Page) (all []control.Ledger, next string, err error) {
	err = s.c.do(ctx, "ScanLedgers", s.c.read, func() (err error) { all, next, err = s.c.w.store.ScanLedgers(ctx, page); return err })
	return all, next, err
}

func (s store) ScanLiveTasks(ctx context.Context, page control.Page) (all []control.Task, next string, err error) {
	err = s.c.do(ctx, "ScanLiveTasks", s.c.read, func() (err error) { all, next, err = s.c.w.store.ScanLiveTasks(ctx, page); return err })
	return all, next, err
}

func (s store) Clusters(ctx context.Context, page control.Page) (names []string, next string, err error) {
	err = s.c.do(ctx, "Clusters", s.c.read, func() (err error) { names, next, err = s.c.w.store.Clusters(ctx, page); return err })
	return names, next, err
}

func (s store) Families(ctx context.Context, prefix string, page control.Page) (all []control.Family, next string, err error) {
	err = s.c.do(ctx, "Families", s.c.read, func() (err error) { all, next, err = s.c.w.store.Families(ctx, prefix, page); return err })
	return all, next, err
}

func (s store) Services(ctx context.Context, cluster string, page control.Page) (names []string, next string, err error) {
	err = s.c.do(ctx, "Services", s.c.read, func() (err error) { names, next, err = s.c.w.store.Services(ctx, cluster, page); return err })
	return names, next, err
}

func (s store) ServiceDeployments(ctx context.Context, cluster, service string, page control.Page) (ids []string, next string, err error) {
	err = s.c.do(ctx, "ServiceDeployments", s.c.read, func() (err error) {
		ids, next, err = s.c.w.store.ServiceDeployments(ctx, cluster, service, page)
		return err
	})
	return ids, next, err
}

func (s store) Revisions(ctx context.Context, family string, descending bool, page control.Page) (all []control.Definition, next string, err error) {
	err = s.c.do(ctx, "Revisions", s.c.read, func() (err error) {
		all, next, err = s.c.w.store.Revisions(ctx, family, descending, page)
		return err
	})
	return all, next, err
}

// sender is the queues, as one call of a function sees them.
type sender struct{ c *call }

func (s sender) send() (before, after error) {
	return s.c.w.unsure(s.c.w.plan.sendFails, "send of a function failed", "answer of a send lost")
}

func (s sender) Commands(ctx context.Context, commands ...wire.Message) error {
	return s.c.do(ctx, "Commands", s.send, func() error {
		w := s.c.w
		var errs []error
		for _, m := range commands {
			h := w.byID[wire.HeaderOf(m).Instance]
			body, err := wire.Encode(m)
			if err != nil {
				w.fail("WIRE %s sends what cannot be read: %v", s.c.name, err)
				continue
			}
			w.commanded(s.c, h, m)
			if !h.inbox.there {
				errs = append(errs, fault.New(fault.NotFound, "instance %s has no command queue", h.name))
				continue
			}
			w.say("%s sends %s to %s", s.c.name, describe(m), h.name)
			if a, ok := m.(*wire.Assign); ok {
				h.inbox.assigns[a.Task] = body
			}
			h.inbox.put(body, describe(m))
		}
		return errors.Join(errs...)
	})
}

func (s sender) KickAdmission(ctx context.Context, k control.Kick) error {
	return s.c.do(ctx, "KickAdmission", s.send, func() error { s.c.w.admission(k.Cluster).send(letter{what: "kick", kick: &k}); return nil })
}

func (s sender) KickServices(ctx context.Context, k control.Kick) error {
	return s.c.do(ctx, "KickServices", s.send, func() error { s.c.w.services.send(letter{what: "kick of services", kick: &k}); return nil })
}

func (s sender) Probe(ctx context.Context, p wire.Probe) error {
	return s.c.do(ctx, "Probe", s.send, func() error {
		body, err := wire.Encode(&p)
		if err != nil {
			return err
		}
		s.c.w.heartbeats.send(letter{what: "probe", body: body, sender: control.Sender{SentAt: time.Now().Truncate(time.Millisecond)}})
		return nil
	})
}

func (s sender) EnsureInbox(ctx context.Context, instance, _ string) error {
	return s.c.do(ctx, "EnsureInbox", s.send, func() error { s.c.w.byID[instance].inbox.there = true; return nil })
}

func (s sender) RemoveInbox(ctx context.Context, instance string) error {
	return s.c.do(ctx, "RemoveInbox", s.send, func() error {
		q := s.c.w.byID[instance].inbox
		q.there, q.letters = false, nil
		return nil
	})
}

func (s sender) Backlog(ctx context.Context) (n int, err error) {
	err = s.c.do(ctx, "Backlog", s.c.read, func() error { n = len(s.c.w.heartbeats.ready); return nil })
	return n, err
}

type nothing struct{}

func (nothing) Count(string, float64, ...string) {}
