package command_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/longshore-run/longshore/cli/internal/exit"
	"github.com/longshore-run/longshore/shared/task"
)

func TestInstances_ListsAndDescribesThem(t *testing.T) {
	b := newBench(t)
	b.api.NewID = numbered(b)
	b.some()
	golden(t, "instances.txt", b.must("instances", "list"))
	for id := range b.api.Memory.Ledgers() {
		golden(t, "describe-instance.txt", b.must("describe", "instance", id[:12]))
	}
	if out := b.must("instances", "list", "--status", "DRAINING"); out != "no instance is registered\n" {
		t.Errorf("lists %s", out)
	}
}

func TestDrain_IsDrainedOnlyWhenNothingIsLeft(t *testing.T) {
	b := newBench(t)
	id := b.api.Instance("i", 100, 100)
	b.must("run", "app", "--detach")
	b.api.Place()
	job := ids(b)[0]
	b.api.Report(job, task.Running, 0)
	if out := b.must("instances", "drain", id); !strings.Contains(out, "DRAINING") || strings.Contains(out, "drained") {
		t.Errorf("says %s", out)
	}
	b.fails(exit.Timeout, "to be drained", "instances", "drain", id, "--wait", "--timeout", "20ms")
	b.api.Report(job, task.Stopping, 0) // neither running nor pending, and it still holds
	b.fails(exit.Timeout, "to be drained", "instances", "drain", id, "--wait", "--timeout", "20ms")
	b.api.Report(job, task.Stopped, 0)
	if out := b.must("instances", "drain", id, "--wait"); !strings.Contains(out, "drained") {
		t.Errorf("says %s", out)
	}
	if out := b.must("instances", "undrain", id); !strings.Contains(out, "ACTIVE") {
		t.Errorf("says %s", out)
	}
}

func TestFence_TakesTheWordAndAsksAboutWhatIsConnected(t *testing.T) {
	b := newBench(t)
	id := b.api.Instance("i", 100, 100)
	b.must("run", "app", "--detach")
	b.api.Place()
	b.fails(exit.Usage, "add --confirmed-off", "instances", "fence", id)
	b.fails(exit.Failed, "still connected", "instances", "fence", id, "--confirmed-off")
	b.terminal, b.in = true, "no\n"
	if code := b.run("instances", "fence", id, "--confirmed-off"); code != exit.Failed || b.api.Ledger(id).Open != 1 {
		t.Errorf("exit code %d, ledger %+v", code, b.api.Ledger(id))
	}
	b.in = id[:4] + "\n"
	if out := b.must("instances", "fence", id, "--confirmed-off"); !strings.Contains(out, "LOST") {
		t.Errorf("says %s", out)
	}
	if l := b.api.Ledger(id); l.Open != 0 || l.EndCause != task.ConfirmedOff {
		t.Errorf("ledger %+v", l)
	}
	b.terminal = false
	if out := b.must("instances", "fence", id, "--confirmed-off", "-o", "json"); !strings.Contains(out, `"agentConnected": false`) {
		t.Errorf("says %s", out)
	}
	for _, s := range b.api.Signatures() {
		if !strings.Contains(s, "/lambda/aws4_request") {
			t.Errorf("signed %s", s)
		}
	}
}

func TestDrain_TheDeadlineIsATagOfTheInstanceBeforeItDrains(t *testing.T) {
	b := newBench(t)
	id := b.api.Instance("i", 100, 100)
	var calls []string
	b.api.Stub = func(operation string, _ []byte) (string, bool) {
		if strings.HasSuffix(operation, "Resource") || strings.HasPrefix(operation, "Update") {
			calls = append(calls, operation)
		}
		return "", false
	}
	b.must("instances", "drain", id, "--deadline", "30m")
	if out := b.must("describe", "instance", id); !strings.Contains(out, "longshore:drainDeadline=30m0s") || !strings.Contains(out, "DRAINING") {
		t.Errorf("says %s", out)
	}
	b.must("instances", "drain", id, "--deadline", "none")
	b.must("instances", "undrain", id)
	if out := b.must("describe", "instance", id); strings.Contains(out, "drainDeadline") || !strings.Contains(out, "ACTIVE") {
		t.Errorf("says %s", out)
	}
	b.must("instances", "undrain", id) // there is no tag any more
	const state = "UpdateContainerInstancesState"
	if !slices.Equal(calls, []string{"TagResource", state, "TagResource", state, state, "UntagResource", state}) {
		t.Errorf("calls %v", calls)
	}
	for _, bad := range []string{"-5m", "0s", "soon"} {
		b.fails(exit.Usage, "--deadline", "instances", "drain", id, "--deadline", bad)
	}
}
