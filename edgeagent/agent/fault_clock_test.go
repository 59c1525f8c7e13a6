package agent_test

import (
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// wall is a clock as a process has it: what it shows may be set, and how much time
// went by between two readings is measured all the same. In a bubble times have no
// monotonic reading, so it is put in, where package time keeps it.
type wall struct {
	began time.Time
	off   atomic.Int64
}

func (w *wall) set(by time.Duration) { w.off.Store(int64(by)) }

func (w *wall) now() time.Time {
	type inside struct { // of a time.Time
		wall uint64
		ext  int64
		loc  *time.Location
	}
	const since1885 = 2682374400 // the seconds from 1885, from which these count, to 1970
	real := time.Now()
	shown := real.Add(time.Duration(w.off.Load()))
	t := inside{
		wall: 1<<63 | uint64(shown.Unix()+since1885)<<30 | uint64(shown.Nanosecond()),
		ext:  1 + real.Sub(w.began).Nanoseconds(),
		loc:  time.UTC,
	}
	return *(*time.Time)(unsafe.Pointer(&t))
}

func TestWall_IsSetAndMeasuresAllTheSame(t *testing.T) {
	w := &wall{began: time.Now()}
	before := w.now()
	w.set(72 * time.Hour)
	after := w.now()
	if shown := after.Round(0).Sub(before.Round(0)); shown < 71*time.Hour || after.Sub(before) > time.Minute || before.Year() != time.Now().UTC().Year() {
		t.Errorf("set by 72 h it shows %s more, and %s went by; it was %s", shown, after.Sub(before), before)
	}
}

// The clock of the host, and so of the engine, is set while the agent runs: every
// wait takes as long as it would have, nothing is told twice or out of order, and
// restart policies go on.
func TestFault_TheClockIsSetWhileItRuns(t *testing.T) {
	t.Parallel()
	for name, by := range map[string]time.Duration{
		"not at all": 0, "a minute forwards": time.Minute, "an hour back": -time.Hour, "three days forwards": 72 * time.Hour,
		"three days back": -72 * time.Hour, "a year forwards": 365 * 24 * time.Hour, "five years back": -5 * 365 * 24 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				w := &wall{began: time.Now()}
				r.now = w.now
				r.engine.SetClock(func() time.Time { return w.now().Round(0).UTC() })
				r.setting.CleanupWait = time.Hour
				p := r.planed()
				r.up()
				policy := &taskdef.RestartPolicy{Enabled: new(true), RestartAttemptPeriod: new(60)}
				p.Assign(r.assign(1, 1))
				p.Assign(r.assign(2, 1, taskdef.ContainerDefinition{Name: "app", Image: "busybox", RestartPolicy: policy}))
				p.Assign(r.assign(3, 1))
				p.Assign(r.assign(4, 1))
				r.pass(10 * time.Minute)
				r.engine.Exit(app(1, 1), 1) // cleaned up in an hour
				r.pass(10 * time.Minute)
				r.outbox.Forget()
				w.set(by)
				r.pass(10 * time.Minute)
				if n := len(sent[*wire.Heartbeat](r)); n < 9 || n > 13 {
					t.Errorf("%d heartbeats in ten minutes", n)
				}
				for range 2 { // a run that began before, and one that began after
					r.engine.Exit(app(2, 1), 9)
					r.pass(5 * time.Minute)
				}
				r.starts(2, 1, 3)
				if !r.engine.Containers()[app(2, 1)].Running || p.Tasks()[id(2)].Over() {
					t.Errorf("what is restarted by its policy is %+v", p.Tasks()[id(2)])
				}
				r.engine.Exit(app(3, 1), 3)
				r.put(r.stop(4, 1))
				r.pass(15 * time.Minute)
				r.agree(p)
				if r.state().Tasks[id(1)].Tomb { // 45 minutes after its end
					t.Error("it was cleaned up before its time")
				}
				r.pass(20 * time.Minute)
				if !r.state().Tasks[id(1)].Tomb {
					t.Error("it was not cleaned up in time")
				}
				r.put(r.assign(1, 1)) // delivered again, before its tombstone's two hours are over
				r.pass(100 * time.Minute)
				r.put(r.assign(1, 1))
				r.starts(1, 1, 1)
				r.pass(25 * time.Minute)
				if _, known := r.state().Tasks[id(1)]; known {
					t.Error("its tombstone is kept for longer than two hours")
				}
				before := int64(0)
				for _, m := range sent[*wire.Report](r) {
					if m.N < before && m.Status != task.Stopped {
						t.Errorf("n %d after %d", m.N, before)
					}
					before = m.N
				}
				r.agree(p)
				r.down()
			})
		})
	}
}
