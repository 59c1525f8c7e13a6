package control_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/longshore-run/longshore/lambdas/control"
	"github.com/longshore-run/longshore/lambdas/control/controltest"
	"github.com/longshore-run/longshore/shared/fault"
	"github.com/longshore-run/longshore/shared/task"
	"github.com/longshore-run/longshore/shared/wire"
)

// largest is a report as full as a message may be, n times over with other texts.
func largest(t *testing.T, e *edge, id string, status task.Status, n int) *wire.Report {
	t.Helper()
	text := func(bytes int) string { return strings.Repeat(string(rune('a'+n)), bytes) }
	r := e.report(id, 1, status)
	r.Reason, r.Containers = text(wire.MaxReason), nil
	for k := range 14 {
		c := task.Container{Name: fmt.Sprintf("%03d", k) + strings.Repeat("n", 252), Status: task.ContainerRunning, Reason: text(1500), Image: text(2048), ImageDigest: text(wire.MaxText), RuntimeID: text(255), StartedAt: e.w.Clock.Now()}
		if status == task.Stopped {
			c.Status, c.ExitCode = task.ContainerStopped, new(1)
		}
		for b := range 40 {
			c.Bindings = append(c.Bindings, task.Binding{BindIP: text(wire.MaxAddress), ContainerPort: 60000 + b, HostPort: 60000 + b, Protocol: "tcp", ContainerPortRange: text(wire.MaxRange), HostPortRange: text(wire.MaxRange)})
		}
		for g := range 10 {
			c.GPUs = append(c.GPUs, fmt.Sprintf("%04d", k*10+g)+text(wire.MaxGPUID-4))
		}
		r.Containers = append(r.Containers, c)
	}
	b, err := wire.Encode(r)
	if err != nil {
		t.Fatalf("it is not as large as allowed, but larger: %v", err)
	}
	t.Logf("a report of %d bytes", len(b))
	return r
}

// A transaction takes 4 MB, and closing an instance writes 40 tasks in one: tasks
// that are as large as their agent can make them must fit, or a stolen agent could
// keep what it was given from ever being closed.
func TestAttack_TheLargestReportsLeaveTasksThatCanBeClosed(t *testing.T) {
	const most = 4<<20/40 - 24<<10 // less what a caller may give a task: tags and overrides
	w := controltest.NewWorld(t)
	e := host(t, w, "i")
	id := e.given()
	for n, status := range []task.Status{task.Running, task.Stopping, task.Running} {
		w.Clock.Move(time.Second)
		if err := deliver(w, e.sender(), largest(t, e, id, status, n)); err != nil {
			t.Fatal(err)
		}
	}
	b, err := json.Marshal(w.Task(id))
	if err != nil || len(b) > most {
		t.Errorf("the task has %d bytes, and at most %d may be; %v", len(b), most, err)
	}
	w.Clock.Move(time.Second)
	if err := deliver(w, e.sender(), largest(t, e, id, task.Stopped, 4)); err != nil {
		t.Fatal(err)
	}
	if b, err = json.Marshal(w.Task(id)); err != nil || len(b) > most || w.Task(id).LastStatus != task.Stopped {
		t.Errorf("the ended task has %d bytes, and at most %d may be; %v", len(b), most, err)
	}
}

func TestAttack_NoTextOfAReportIsWithoutABound(t *testing.T) {
	e := newEdge(t, controltest.NewWorld(t), "i")
	long := strings.Repeat("x", 5000)
	for name, change := range map[string]func(*task.Container){
		"containers.name": func(c *task.Container) { c.Name = long }, "containers.reason": func(c *task.Container) { c.Reason = long },
		"containers.image": func(c *task.Container) { c.Image = long }, "containers.imageDigest": func(c *task.Container) { c.ImageDigest = long },
		"containers.runtimeId": func(c *task.Container) { c.RuntimeID = long }, "gpus": func(c *task.Container) { c.GPUs = []string{long} },
		"containers.status":                      func(c *task.Container) { c.Status = task.ContainerStatus(long) },
		"containers.healthStatus":                func(c *task.Container) { c.Health = task.Health(long) },
		"containers.bindings.protocol":           func(c *task.Container) { c.Bindings = []task.Binding{{Protocol: long}} },
		"containers.bindings.bindIP":             func(c *task.Container) { c.Bindings = []task.Binding{{BindIP: long}} },
		"containers.bindings.containerPortRange": func(c *task.Container) { c.Bindings = []task.Binding{{ContainerPortRange: long}} },
		"containers.bindings.hostPortRange":      func(c *task.Container) { c.Bindings = []task.Binding{{HostPortRange: long}} },
		"containers.bindings":                    func(c *task.Container) { c.Bindings = []task.Binding{{HostPort: 1 << 40}} },
	} {
		m := e.report(strings.Repeat("0", 32), 1, task.Running)
		m.Containers = []task.Container{{Name: "main", Status: task.ContainerRunning}}
		change(&m.Containers[0])
		if _, err := wire.Encode(m); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), name+": ") || len(err.Error()) > 300 {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAttack_AnInventoryOfAHundredThousandIsRefusedAndItsLeaseRenewed(t *testing.T) {
	e := newEdge(t, controltest.NewWorld(t), "i")
	var all []wire.Entry
	for n := range 100_000 {
		all = append(all, wire.Entry{Task: fmt.Sprintf("%032x", n), Attempt: 1, Phase: wire.PhaseRunning})
	}
	if _, err := wire.Encode(e.beat(all...).Message); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "inventory: has 100000 entries") {
		t.Errorf("%v", err)
	}
	b, err := json.Marshal(e.beat(all...).Message)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wire.Decode(b); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "bytes; at most 262144 are allowed") {
		t.Errorf("%v", err)
	}
}

// The fullest inventory there may be, of tasks nobody knows, costs a bounded number
// of calls and answers, and fences its own instance alone.
func TestAttack_AFullInventoryOfUnknownTasksIsBoundedWork(t *testing.T) {
	victim, thief, _ := robbed(t)
	w := victim.w
	var all []wire.Entry
	for n := range wire.MaxInventory {
		all = append(all, thief.lists(fmt.Sprintf("%032x", 1_000_000+n), 1, wire.PhaseRunning))
	}
	for range 3 {
		w.Clock.Move(time.Second)
		w.Memory.Calls.Reset()
		thief.heard(thief.beat(all...))
		if n, names := w.Memory.Calls.Made(); n > 12 {
			t.Errorf("%d calls: %v", n, names)
		}
		if got := len(w.Sent.TakeCommands(thief.id)); got > 500 {
			t.Errorf("%d commands", got)
		}
	}
	if got := w.Lease(thief.id); got.Stage != control.StageFenced || !strings.HasPrefix(got.StageReason, "UNKNOWN_CONTAINERS") {
		t.Errorf("the thief is %s: %s", got.Stage, got.StageReason)
	}
	if got := w.Lease(victim.id).Stage; got != control.StageConnected {
		t.Errorf("the victim is %s", got)
	}
}
