package agent_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// heap is how many bytes are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// cost is what an agent holds and does for finished tasks that wait.
type cost struct {
	goroutines int
	wakes      int64 // of its goroutines, in an hour
	bytes      int64 // that are given back when the agent ends
}

// waits has tasks end and wait, for their acknowledgement or, with it, for their
// clean-up.
func waits(t *testing.T, tasks int, acknowledged bool) (c cost) {
	bubble(t, func(r *rig) {
		r.setting.CleanupWait = 3 * time.Hour
		r.set(func() { r.acks = acknowledged })
		r.engine.OnStart = exits(0, time.Second)
		var wakes atomic.Int64
		r.turn = func(string) { wakes.Add(1) }
		environment := make([]taskdef.KeyValuePair, 10)
		for i := range environment {
			environment[i] = taskdef.KeyValuePair{Name: fmt.Sprint("VARIABLE_", i), Value: strings.Repeat("x", 40)}
		}
		r.up()
		for n := range tasks {
			r.inbox.Put(r.assign(n, 1,
				taskdef.ContainerDefinition{Name: "app", Image: "busybox", Environment: environment, Command: []string{"sh", "-c", "true"}},
				taskdef.ContainerDefinition{Name: "sidecar", Image: "busybox", Environment: environment, Essential: new(false)}))
			if n%100 == 99 {
				r.pass(5 * time.Second)
			}
		}
		r.pass(70 * time.Minute) // the back-off of repeats has come to its end
		wakes.Store(0)
		r.pass(time.Hour)
		c.wakes, c.goroutines = wakes.Load(), r.goroutines()
		look := r.agent.Look()
		ended := 0
		for _, l := range look.Tasks {
			if l.Ended() && l.Acknowledged == acknowledged {
				ended++
			}
		}
		if ended != tasks || len(look.Tasks) != tasks {
			t.Fatalf("%d of %d tasks have ended and wait", ended, tasks)
		}
		if listed := len(last[*wire.Heartbeat](r).Inventory); !acknowledged && listed != tasks || acknowledged && listed != 0 {
			t.Errorf("an inventory of %d", listed)
		}
		r.outbox.Forget()
		with := heap()
		r.down()
		r.agent, r.life = nil, nil
		c.bytes = with - heap()
	})
	return c
}

// R3, and design's fourth must: a thousand finished tasks have no goroutine, no
// timer and little memory each.
func TestWaiting_AThousandFinishedTasksCostAFewKilobytesEachAndNothingElse(t *testing.T) {
	const tasks = 1000
	for name, acknowledged := range map[string]bool{"for their acknowledgement": false, "for their clean-up": true} {
		none, all := waits(t, 0, acknowledged), waits(t, tasks, acknowledged)
		each := (all.bytes - none.bytes) / tasks
		t.Logf("%s: goroutines %d and %d, wakes in an hour %d and %d, %d bytes a task", name, none.goroutines, all.goroutines, none.wakes, all.wakes, each)
		if all.goroutines > none.goroutines {
			t.Errorf("%s: %d goroutines without tasks, %d with %d", name, none.goroutines, all.goroutines, tasks)
		}
		// An end is repeated every ten minutes until it is acknowledged, many at once;
		// one that is acknowledged wakes nobody.
		most := none.wakes + 10
		if !acknowledged {
			most = none.wakes + tasks/2
		}
		if all.wakes > most {
			t.Errorf("%s: %d wakes in an hour, want at most %d", name, all.wakes, most)
		}
		if each > 8<<10 || each < 256 {
			t.Errorf("%s: %d bytes a task", name, each)
		}
	}
}
