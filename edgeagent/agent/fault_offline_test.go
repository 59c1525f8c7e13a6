package agent_test

import (
	"slices"
	"testing"
	"time"

	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/taskdef"
	"github.com/longshore-run/longshore/shared/wire"
)

// Six hours without a link, in which containers crash and run again by their
// policy, end for good at different times and become unhealthy, and the agent is
// killed twice. Nothing stops for want of the link. Back online each task's reports
// come in the order in which they were written, each end once, in half a minute.
func TestFault_OfflineForSixHours(t *testing.T) {
	bubble(t, func(r *rig) {
		const restarted, ending, steady = 5, 10, 5
		p := r.planed()
		r.up()
		policy := &taskdef.RestartPolicy{Enabled: new(true), RestartAttemptPeriod: new(60)}
		for n := range restarted {
			p.Assign(r.assign(n, 1, taskdef.ContainerDefinition{Name: "app", Image: "busybox", RestartPolicy: policy}))
		}
		for n := restarted; n < restarted+ending+steady; n++ {
			p.Assign(r.assign(n, 1))
		}
		r.pass(time.Minute)
		gone := fault.New(fault.Unavailable, "no route to host")
		r.outbox.Fail(gone)
		r.inbox.Fail(gone)
		r.outbox.Forget()
		for hour := range 6 {
			for n := range restarted {
				r.engine.Exit(app(n, 1), 9)
				r.pass(2 * time.Minute)
			}
			for n := range ending {
				if n%6 == hour {
					r.engine.Exit(app(restarted+n, 1), 10+n)
				}
			}
			if hour%3 == 1 {
				r.kill()
				r.up()
			}
			r.pass(50 * time.Minute)
		}
		for n := range restarted {
			r.starts(n, 1, 7)
		}
		for n := range restarted + ending + steady {
			ends := n >= restarted && n < restarted+ending
			if r.engine.Containers()[app(n, 1)].Running == ends {
				t.Errorf("task %d runs: %v", n, !ends)
			}
		}
		if n := len(r.outbox.Sent()); n > 0 {
			t.Fatalf("%d messages got through", n)
		}
		r.outbox.Fail(nil)
		r.inbox.Fail(nil)
		r.pass(30 * time.Second)
		r.agree(p)
		for n := range ending {
			if told := p.Tasks()[id(restarted+n)]; !told.Over() || !slices.Equal(told.Codes, []int{10 + n}) || told.Ends != 1 {
				t.Errorf("task %d is %+v", restarted+n, told)
			}
		}
		newest := map[string]int64{}
		for _, m := range sent[*wire.Report](r) {
			again := m.N == newest[m.Task] && m.Status == task.Stopped // not acknowledged yet
			if m.N <= newest[m.Task] && !again {
				t.Errorf("of task %s n %d came after n %d", m.Task[28:], m.N, newest[m.Task])
			}
			newest[m.Task] = m.N
		}
		var first []int64 // of each end
		for _, m := range sent[*wire.Report](r) {
			if m.Status == task.Stopped && !slices.Contains(first, m.N) {
				first = append(first, m.N)
			}
		}
		if !slices.IsSorted(first) {
			t.Errorf("ends were told in the order %v", first)
		}
		r.pass(r.setting.CleanupWait)
		r.agree(p)
		r.down()
	})
}
