package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// line is what one thing that the control plane does costs.
type line struct {
	What string `json:"what"`
	// Requests are DynamoDB's, Sends SQS's.
	Requests float64 `json:"dynamodbRequests"`
	Sends    float64 `json:"sqsRequests"`
	Items    float64 `json:"items"`
	Bytes    float64 `json:"bytes"`
	Read     float64 `json:"readUnits"`
	Write    float64 `json:"writeUnits"`
	// CPU is this process's own computing, Allocated what it took of the heap in
	// all: the store's reading and writing of JSON included.
	CPU       time.Duration `json:"cpuNanoseconds"`
	Allocated float64       `json:"allocatedBytes"`
}

type bench struct {
	*plant
	lines []line
	errs  []error
}

// one measures f, which does per things.
func (b *bench) one(what string, per int, f func(context.Context) error) {
	b.store.TakeChanges()
	*b.store.Bill, *b.queue = controltest.Bill{}, tally{last: b.queue.last}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := computed()
	if err := f(context.Background()); err != nil {
		b.errs = append(b.errs, fmt.Errorf("%s: %w", what, err))
	}
	took := computed() - begun
	runtime.ReadMemStats(&after)
	n, bill := float64(per), *b.store.Bill
	b.lines = append(b.lines, line{
		What: what, Requests: float64(bill.Requests) / n, Sends: float64(b.queue.requests) / n, Items: float64(bill.Items) / n,
		Bytes: float64(bill.Bytes+b.queue.bytes) / n, Read: bill.Read / n, Write: bill.Write / n,
		CPU: took / time.Duration(per), Allocated: float64(after.TotalAlloc-before.TotalAlloc) / n,
	})
}

// computed is how long this process has computed, on all cores.
func computed() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		panic("bench-control: " + err.Error())
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// Lines that the month is worked out from.
const (
	lineBeat   = "heartbeat, nothing new (of a batch of 100)"
	lineTenth  = "heartbeat, every tenth: looked at"
	lineReaper = "reaper run, all well"
	lineProbe  = "probe taken in"
)

func measure(s size) ([]line, error) {
	p, err := newPlant(s)
	if err != nil {
		return nil, err
	}
	b := &bench{plant: p}
	b.heartbeats()
	b.reports()
	b.admission()
	b.reaper()
	return b.lines, errors.Join(b.errs...)
}

func (b *bench) fail(err error) bool {
	if err != nil {
		b.errs = append(b.errs, err)
	}
	return err != nil
}

func (b *bench) heartbeats() {
	hosts := b.agents[:100]
	for beat := 1; beat <= 10; beat++ {
		batch, err := b.beats(hosts)
		if b.fail(err) {
			return
		}
		take := func(ctx context.Context) error { return errors.Join(b.Heartbeats(ctx, batch)...) }
		switch beat {
		case 9:
			b.one(lineBeat, len(batch), take)
		case 10:
			b.one(lineTenth, len(batch), take)
		default:
			b.fail(take(context.Background()))
		}
	}
}

func (b *bench) reports() {
	b.reportsOf("report of an end (10 of 10 instances)", b.agents[100:110])
	if b.Tasks/b.Instances >= 10 {
		b.reportsOf("report of an end (10 of one instance)", slices.Repeat(b.agents[120:121], 10))
	}
}

func (b *bench) reportsOf(what string, hosts []*host) {
	batch, err := b.ends(hosts)
	if !b.fail(err) {
		b.one(what, len(batch), func(ctx context.Context) error { return errors.Join(b.IngestReports(ctx, batch)...) })
	}
}

func (b *bench) admission() {
	pass := func(what string, tasks, memory int) {
		ids, err := b.wait(tasks, memory)
		if b.fail(err) {
			return
		}
		b.one(what, 1, func(ctx context.Context) error { return b.Admit(ctx, control.Kick{Cluster: cluster, Tasks: ids}) })
	}
	pass("", 1, 64) // warms up
	b.lines = b.lines[:len(b.lines)-1]
	pass("admission pass: one task, fits", 1, 64)
	pass("admission pass: ten tasks, fit", 10, 64)
	pass("admission pass: 100 tasks of ten kicks, fit", 100, 64)
	pass("admission pass: one task, first that fits nowhere", 1, 1<<21)
	pass("admission pass: one task, like others that wait", 1, 1<<20)
	b.one("admission pass: room on one instance, while tasks wait", 1, func(ctx context.Context) error {
		return b.Admit(ctx, control.Kick{Cluster: cluster, Instance: b.agents[0].id})
	})
}

// settle lets what was admitted be RUNNING, and ends what waits.
func (b *bench) settle() {
	ctx := context.Background()
	for _, of := range []control.Waiting{control.ForSign, control.ForRoom} {
		for after := ""; ; {
			ids, next, err := b.Store.TaskIDs(ctx, control.TaskQuery{Cluster: cluster, Waiting: of}, control.Page{After: after})
			if b.fail(err) {
				return
			}
			for _, id := range ids {
				t := &control.Task{ID: id}
				if err := b.Store.Load(ctx, t); b.fail(err) {
					return
				}
				if of == control.ForSign {
					t.LastStatus, t.Shown = task.Running, true
				} else {
					t.LastStatus, t.DesiredStatus, t.StoppedAt = task.Stopped, task.DesiredStopped, b.now
				}
				if b.fail(b.put(t)) {
					return
				}
			}
			if after = next; next == "" {
				break
			}
		}
	}
	b.store.CatchUp()
}

// heard lets every lease be renewed just now.
func (b *bench) heard() {
	for _, h := range b.agents {
		lease, err := b.incarnation(h)
		if err == nil {
			_, _, err = b.Store.Renew(context.Background(), control.Renewal{ID: h.id, Sent: b.now, Incarnation: lease.Incarnation, Session: lease.Session})
		}
		if b.fail(err) {
			return
		}
	}
}

func (b *bench) reaper() {
	tick := func(ctx context.Context) error { return b.Tick(ctx) }
	probe := func(ctx context.Context) error {
		return b.IngestProbe(ctx, control.Sender{SentAt: b.now}, &wire.Probe{ID: b.queue.last.ID})
	}
	b.now = b.now.Add(time.Minute)
	b.one("sweep: tasks wait, 112 assigns are sent again", 1, b.Sweep)
	b.settle()
	b.one("sweep: nothing waits", 1, b.Sweep)
	for range 3 { // until the watermark has moved and the brakes are set
		b.now = b.now.Add(time.Minute)
		b.heard()
		b.fail(tick(context.Background()))
		b.fail(probe(context.Background()))
	}
	b.now = b.now.Add(time.Minute)
	b.heard()
	b.one(lineReaper, 1, tick)
	b.one(lineProbe, 1, probe)
	for _, h := range b.agents[200:203] { // one a zone
		lease, err := b.incarnation(h)
		if b.fail(err) {
			return
		}
		lease.Sent = b.now.Add(-time.Hour)
		if b.fail(b.put(lease)) {
			return
		}
	}
	b.one("reaper run, three instances lost with their tasks", 1, tick)
	b.checkLost()
}

// checkLost holds the last line against what it says: three are LOST, and no other.
func (b *bench) checkLost() {
	scan, err := b.Store.Leases(context.Background())
	if b.fail(err) {
		return
	}
	lost := 0
	for _, l := range scan.Leases {
		if l.Stage == control.StageLost {
			lost++
		} else if l.Stage != control.StageConnected {
			b.errs = append(b.errs, fmt.Errorf("instance %s is %s", l.ID, l.Stage))
		}
	}
	if lost != 3 {
		b.errs = append(b.errs, fmt.Errorf("%d instances are LOST, not 3", lost))
	}
}
