package agent_test

import (
	"context"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/edgeagent/agent"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// The trigger of design §4 R: reports held up for an hour, clean-up wait 1 s,
// the start delivered again.
func TestReports_HeldBackForAnHourNothingRunsTwiceAndNothingIsForgotten(t *testing.T) {
	for name, hold := range map[string]func(r *rig, on bool){
		"SQS cannot be reached": func(r *rig, on bool) {
			if on {
				r.outbox.Fail(fault.New(fault.Unavailable, "no route"))
			} else {
				r.outbox.Fail(nil)
			}
		},
		"nobody reads the queue": func(r *rig, on bool) { r.set(func() { r.acks = !on }) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(r *rig) {
				r.setting.CleanupWait = time.Second
				r.engine.OnStart = exits(7, 10*time.Second)
				r.up()
				hold(r, true)
				const tasks = 25 // more than one batch
				for n := range tasks {
					r.put(r.assign(n, 1))
				}
				for range 2 {
					r.pass(20 * time.Minute)
					for n := range tasks {
						r.put(r.assign(n, 1))
					}
				}
				r.pass(20 * time.Minute)
				if n := len(r.engine.Containers()); n != tasks {
					t.Errorf("%d containers while no end is acknowledged, want all %d", n, tasks)
				}
				if len(r.state().Tasks) != tasks {
					t.Errorf("%d of %d tasks are remembered", len(r.state().Tasks), tasks)
				}
				hold(r, false)
				r.pass(15 * time.Minute)
				for n := range tasks {
					r.ended(n, "STOPPED 7")
					r.starts(n, 1, 1)
					if rec := r.state().Tasks[id(n)]; !rec.Tomb || !rec.Acked {
						t.Errorf("task %d is not cleaned up: %+v", n, rec)
					}
				}
				if n := len(r.engine.Containers()); n != 0 {
					t.Errorf("%d containers are left", n)
				}
				r.down()
			})
		})
	}
}

func TestReports_GoInOrderOfTheirNAndEndsAreRepeatedEverMoreRarely(t *testing.T) {
	bubble(t, func(r *rig) {
		r.set(func() { r.acks = false })
		r.engine.OnStart = exits(0, time.Second)
		r.up()
		for n := range 30 {
			r.put(r.assign(n, 1))
		}
		r.pass(10 * time.Second)
		var before int64
		for _, m := range sent[*wire.Report](r) {
			if m.N <= before {
				t.Fatalf("n %d was sent after n %d", m.N, before)
			}
			before = m.N
		}
		r.outbox.Forget()
		r.pass(time.Hour)
		if got := len(r.reports(1)); got < 6 || got > 12 {
			t.Errorf("an end was repeated %d times in an hour", got)
		}
		for _, m := range sent[*wire.Report](r) {
			if m.Status != task.Stopped {
				t.Errorf("a report of %s was repeated", m.Status)
			}
		}
		r.down()
	})
}

func TestReports_AllEndsAreRepeatedAtOnceWhenTheLinkIsBack(t *testing.T) {
	bubble(t, func(r *rig) {
		r.set(func() { r.acks = false })
		r.engine.OnStart = exits(0, time.Second)
		r.up()
		for n := range 25 {
			r.put(r.assign(n, 1))
		}
		r.pass(57 * time.Minute) // the back-off's next turn is after 65 minutes
		r.inbox.Fail(fault.New(fault.Unavailable, "no route"))
		r.pass(3 * time.Minute)
		r.outbox.Forget()
		r.inbox.Fail(nil)
		r.pass(time.Minute) // the receive loop's own pause
		for n := range 25 {
			if len(r.reports(n)) == 0 {
				t.Errorf("task %d: its end was not repeated", n)
			}
		}
		r.down()
	})
}

// Each loop has a pause of its own when the link is mended, whenever that is; the
// first to get through ends the others'.
func TestLink_BackAfterAnHourEverythingGoesOnWithinHalfAMinute(t *testing.T) {
	for phase := range 6 {
		bubble(t, func(r *rig) {
			r.engine.OnStart = exits(3, 5*time.Minute)
			r.up()
			for n := range 3 {
				r.put(r.assign(n, 1))
			}
			down := fault.New(fault.Unavailable, "no route")
			r.inbox.Fail(down)
			r.outbox.Fail(down)
			r.pass(time.Hour + time.Duration(phase)*11*time.Second)
			r.outbox.Forget()
			r.inbox.Fail(nil)
			r.outbox.Fail(nil)
			r.inbox.Put(r.assign(3, 1))
			r.pass(25 * time.Second) // the shortest pause is 20 s
			beats := 0
			for _, m := range r.outbox.Sent() {
				if _, ok := m.(*wire.Heartbeat); ok {
					beats++
				}
			}
			if beats == 0 {
				t.Errorf("phase %d: no heartbeat", phase)
			}
			for n := range 4 {
				if len(r.reports(n)) == 0 {
					t.Errorf("phase %d: no report of task %d", phase, n)
				}
			}
			r.down()
		})
	}
}

func TestReportWait_PastItEverythingIsKeptAndSaid(t *testing.T) {
	bubble(t, func(r *rig) {
		r.set(func() { r.acks = false })
		r.setting.CleanupWait, r.setting.ReportWait = time.Second, 3*time.Hour
		r.engine.OnStart = exits(1, time.Second)
		r.up()
		r.put(r.assign(1, 1))
		r.pass(2 * time.Hour)
		r.down()
		r.up()
		r.pass(50 * time.Minute)
		const text = "its clean-up is given up"
		if strings.Contains(r.logs.String(), text) {
			t.Error("given up before its time")
		}
		r.pass(24 * time.Hour)
		if got := strings.Count(r.logs.String(), text); got != 1 {
			t.Errorf("said %d times", got)
		}
		if len(r.engine.Containers()) != 1 || len(r.state().Tasks) != 1 {
			t.Error("it was not kept")
		}
		r.set(func() { r.acks = true })
		r.pass(15 * time.Minute)
		if len(r.engine.Containers()) != 0 {
			t.Error("an acknowledgement that came after all was not used")
		}
		r.down()
	})
}

func TestTombstone_IsKeptForRunningTimeAlone(t *testing.T) {
	bubble(t, func(r *rig) {
		r.setting.CleanupWait = time.Second
		r.engine.OnStart = exits(1, time.Second)
		r.up()
		r.put(r.assign(1, 1))
		r.pass(time.Hour)
		r.down()
		r.pass(48 * time.Hour) // the machine was off; the command queue kept its messages as long
		r.up()
		r.pass(30 * time.Minute)
		r.put(r.assign(1, 1))
		r.pass(time.Minute)
		r.starts(1, 1, 1)
		r.ended(1, "STOPPED 1")
		r.down()
	})
}

// waiting puts ends that nobody has acknowledged into the journal.
func (r *rig) waiting(from, to int) {
	r.t.Helper()
	meta := r.state().Meta
	c := agent.Change{Meta: &meta}
	meta.Epoch, meta.Rebuilt = 100, true
	for n := from; n < to; n++ {
		meta.N++
		var rec agent.Record
		rec.N, rec.Epoch = meta.N, 100
		rec.State.ID, rec.State.Attempt, rec.State.Status, rec.State.Desired = id(n), 1, task.Stopped, task.DesiredStopped
		c.Put = append(c.Put, rec)
	}
	if err := r.journal.Commit(c); err != nil {
		r.t.Fatal(err)
	}
}

func TestWaiting_AThousandEndsNeedNoGoroutineOrTimerEach(t *testing.T) {
	goroutines := func(waiting int) (n int) {
		bubble(t, func(r *rig) {
			r.set(func() { r.acks = false })
			r.engine.OnStart = exits(0, time.Second)
			r.waiting(0, waiting)
			r.up()
			for n := range 50 {
				r.inbox.Put(r.assign(2000+n, 1))
			}
			r.pass(5 * time.Minute)
			if got := len(r.state().Tasks); got != waiting+50 {
				t.Fatalf("%d tasks", got)
			}
			if got := len(last[*wire.Heartbeat](r).Inventory); got != waiting+50 {
				t.Errorf("an inventory of %d", got)
			}
			n = r.goroutines()
			r.down()
		})
		return n
	}
	few, many := goroutines(0), goroutines(950)
	if many > few+1 {
		t.Errorf("%d goroutines with 50 waiting ends, %d with 1000", few, many)
	}
}

// goroutines are the fewest that are seen in a minute: one that has just ended is still
// counted for a moment.
func (r *rig) goroutines() int {
	fewest := runtime.NumGoroutine()
	for range 60 {
		r.pass(time.Second)
		fewest = min(fewest, runtime.NumGoroutine())
	}
	return fewest
}

// Tables that were restored know neither the task nor its devices.
func TestInventory_TellsWhichGPUsATaskHas(t *testing.T) {
	bubble(t, func(r *rig) {
		r.up()
		with := r.assign(1, 1)
		with.GPUs = []string{"GPU-1", "GPU-0"}
		r.put(with, r.assign(2, 1))
		r.pass(2 * time.Minute)
		for _, e := range last[*wire.Heartbeat](r).Inventory {
			if want := map[string][]string{id(1): with.GPUs}[e.Task]; !slices.Equal(e.GPUs, want) {
				t.Errorf("task %s is listed with GPUs %v, and has %v", e.Task, e.GPUs, want)
			}
		}
		if n := len(r.inventory()); n != 2 {
			t.Errorf("%d tasks are listed", n)
		}
		r.down()
	})
}

func TestInventory_IsNeverTooLong(t *testing.T) {
	bubble(t, func(r *rig) {
		r.set(func() { r.acks = false })
		r.waiting(0, wire.MaxInventory-1)
		r.up()
		r.put(r.assign(5000, 1), r.assign(5001, 1))
		r.pass(2 * time.Minute)
		if n := r.engine.Starts(app(5000, 1)) + r.engine.Starts(app(5001, 1)); n != 1 {
			t.Errorf("%d of two tasks run, and there is room for one", n)
		}
		r.down()
	})
}

// A text is cut for its bound; what the cut leaves of a character would be longer
// on the wire than it is here, and the end would never be understood.
func TestReports_OfAnEndWithALongReasonInAnyScriptAreUnderstood(t *testing.T) {
	for extra := range 4 {
		bubble(t, func(r *rig) {
			r.engine.Script = func(_ context.Context, verb string, _ agent.ContainerID) error {
				if verb == "start" {
					return fault.New(fault.Invalid, "CannotStartContainerError: %s%s", strings.Repeat("x", extra), strings.Repeat("💥", wire.MaxReason/4))
				}
				return nil
			}
			r.up()
			r.put(r.assign(0, 1))
			r.pass(time.Minute)
			if rec := r.state().Tasks[id(0)]; !rec.Acked {
				t.Errorf("with %d more letters the end was not acknowledged: %s", extra, r.logs)
			}
			r.down()
		})
	}
}

func TestReports_ARefusalForMorePortsThanAMessageHoldsIsUnderstood(t *testing.T) {
	bubble(t, func(r *rig) {
		c := taskdef.ContainerDefinition{Name: "app", Image: "busybox"}
		for p := range wire.MaxPorts + 1 {
			c.PortMappings = append(c.PortMappings, taskdef.PortMapping{ContainerPort: new(1 + p), HostPort: new(20_000 + p), Protocol: "tcp"})
		}
		r.taken = func(tcp, udp []int) ([]int, []int) { return tcp, udp }
		r.up()
		r.put(r.assign(0, 1, c))
		r.pass(time.Minute)
		if all := sent[*wire.Refused](r); len(all) == 0 || len(all[0].TCP) != wire.MaxPorts {
			t.Errorf("%d refusals were sent: %s", len(all), r.logs)
		}
		r.down()
	})
}
