package ecsapi_test

import (
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
)

func TestEvent_AMissedRunIsExact(t *testing.T) {
	r := newRig(t)
	r.put(&control.Schedule{Name: "nightly", Runs: []control.ScheduledRun{{
		At: r.now, Cluster: "default", Tasks: []string{"00000000000000000000000000000003"}, Outcome: control.OutcomeMissed, Reason: control.MissedNoRoom,
		Detail: "task 00000000000000000000000000000003 waited for room until its starting deadline: RESOURCE:MEMORY", Decided: r.now.Add(10 * time.Minute),
	}}})
	golden(t, "event-missed.json", pretty(t, announced(r)[r.control.RuleARN("nightly")]))
}
